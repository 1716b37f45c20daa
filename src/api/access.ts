import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Secret } from '../core/secret.js';
import { sendProblem } from './problem.js';

/** Attempts without a right token that one address may make a minute; more of them get 429. Nobody guesses the token: the limit spares log and CPU. */
const FAILED_ATTEMPTS = 600;

/** Lets nobody into this scope without the bearer token. A call with the right token is never limited, whatever came before it. */
export function requireToken(api: FastifyInstance, token: Secret): void {
  const right = digest(token.reveal());
  const countAttempt = api.createRateLimit({ max: FAILED_ATTEMPTS, timeWindow: 60_000 });

  api.addHook('onRequest', async (request, reply) => {
    const [, given] = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    // Digests have one length, so the comparison takes as long for every token.
    if (given !== undefined && timingSafeEqual(digest(given), right)) return undefined;
    const attempt = await countAttempt(request);
    reply.header('www-authenticate', 'Bearer');
    if (!attempt.isAllowed && attempt.isExceeded) {
      reply.header('retry-after', attempt.ttlInSeconds);
      return sendProblem(reply, {
        status: 429,
        code: 'unauthorized',
        detail: 'Too many calls without a right token: wait and try again.',
      });
    }
    return sendProblem(reply, { status: 401, code: 'unauthorized', detail: 'This call needs a bearer token.' });
  });
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
