import { createHash, createHmac } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import {
  freeKey,
  giveUpKey,
  keepAnswer,
  RENEW_EVERY_MS,
  renewKeys,
  type TakenKey,
  takeKey,
} from '../../db/tables/idempotency-keys.js';
import type { Vault } from '../../oauth/vault.js';
import type { Logger } from '../../observability/logger.js';

// A POST with an Idempotency-Key is done once (docs/decisions/0028). These are the states of its row in muster.idempotency_keys:
//
//   none ──the request comes──▶ under way ──answered below 500──▶ answered: given again for 24 hours
//                                   │──refused before it began──▶ none
//                                   └──5xx, or the process died──▶ failed ──the same request comes──▶ under way
//
// The response is kept before it is sent. If the process dies between the work and that, the work is done again.

const KEY = /^[\x21-\x7e]{1,255}$/;

/** Describes the header in the OpenAPI document. `keyOf` checks the value, before the rest of the request. */
const IdempotencyHeaders = z.looseObject({
  'Idempotency-Key': z
    .string()
    .regex(KEY, 'must be 1 to 255 visible ASCII characters')
    .exactOptional()
    .describe(
      'The same key and body get the same answer for 24 hours, and the work is not done again. With another body, or at another address: 422.',
    ),
});

/** A caller that repeats a request too early is asked to wait so long. */
const RETRY_SECONDS = 1;

/** A request that has taken its key. */
interface Attempt {
  readonly key: TakenKey;
  /** The request was valid, and the work has begun. */
  begun: boolean;
}

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly body: string;
}

export interface IdempotencyDependencies {
  readonly db: Database;
  readonly vault: Pick<Vault, 'sealAnswer' | 'openAnswer'>;
  readonly logger: Logger;
}

/** Lets every POST of this scope take an Idempotency-Key. To be called after the hooks that refuse callers, and before routes are added. */
export function takeIdempotencyKeys(api: FastifyInstance, { db, vault, logger }: IdempotencyDependencies): void {
  const attempts = new Map<FastifyRequest, Attempt>();
  const renewal = setInterval(() => {
    const keys = [...attempts.values()].map(({ key }) => key);
    if (keys.length > 0)
      renewKeys(db, { keys }).catch((err: unknown) => logger.warn({ err }, 'Idempotency keys could not be renewed'));
  }, RENEW_EVERY_MS).unref();
  api.addHook('onClose', async () => clearInterval(renewal));

  api.addHook('onRoute', (route) => {
    if (route.method === 'POST') route.schema = { headers: IdempotencyHeaders, ...route.schema };
  });

  // This comes before the body is checked: a key that is bound to another body is refused as such even if this body is invalid.
  api.addHook('preValidation', async (request, reply) => {
    const key = request.method === 'POST' ? keyOf(request) : undefined;
    if (key === undefined) return undefined;
    const owner = ownerOf(request);
    const keyHash = createHash('sha256').update(key).digest('base64url');
    const found = await takeKey(db, { owner, keyHash, requestHash: hashOf(request, key) });
    if (found === 'another_request') throw reused();
    if (found === 'under_way') {
      reply.header('retry-after', RETRY_SECONDS);
      throw new MusterError(
        'idempotency_key_in_use',
        'The first call with this Idempotency-Key is still under way: send it again later.',
      );
    }
    if ('answer' in found) return giveAgain(reply, JSON.parse(vault.openAnswer(found.answer, { owner, keyHash })));
    attempts.set(request, { key: found.taken, begun: false });
    return undefined;
  });

  api.addHook('preHandler', async (request) => {
    const attempt = attempts.get(request);
    if (attempt) attempt.begun = true;
  });

  api.addHook('onSend', async (request, reply, payload) => {
    const attempt = attempts.get(request);
    if (!attempt) return payload;
    try {
      const answer = { status: reply.statusCode, type: typeOf(reply), body: textOf(payload) };
      await end(attempt, answer);
    } catch (err) {
      // The work is done, so the caller must get the response. The lease lapses, and a repeated request is then done again.
      logger.error({ err, route: request.routeOptions.url }, 'An answer could not be kept for its Idempotency-Key');
    } finally {
      attempts.delete(request);
    }
    return payload;
  });

  async function end({ key, begun }: Attempt, answer: Answer): Promise<void> {
    if (!begun) return freeKey(db, key);
    if (answer.status >= 500) return giveUpKey(db, key);
    return keepAnswer(db, { ...key, answer: vault.sealAnswer(JSON.stringify(answer), key) });
  }
}

/** Keys belong to callers: no other caller is given the responses that are kept under them. */
function ownerOf({ caller: { tokenId, name } }: FastifyRequest): string {
  return tokenId ?? name;
}

/** Returns the one key of the request. Throws `invalid_request`. */
function keyOf({ raw }: FastifyRequest): string | undefined {
  const [key, second] = raw.headersDistinct['idempotency-key'] ?? [];
  if (key === undefined) return undefined;
  if (second === undefined && KEY.test(key)) return key;
  const message = second === undefined ? 'must be 1 to 255 visible ASCII characters' : 'given twice';
  throw new MusterError('invalid_request', `The request is not valid: idempotency-key: ${message}`, {
    details: { errors: [{ path: 'idempotency-key', message }] },
  });
}

/**
 * Identifies a request. A body may hold a refresh token or personal data, so its hash is keyed by the Idempotency-Key; the table has only
 * a hash.
 */
function hashOf({ routeOptions, params, body }: FastifyRequest, key: string): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([routeOptions.url, inOrder(params), inOrder(body ?? null)]))
    .digest('base64url');
}

/** Sorts the members of a value, since a client may write the same body in another order. */
function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, part]) => [name, inOrder(part)]));
}

function giveAgain(reply: FastifyReply, { status, type, body }: Answer): FastifyReply {
  reply.code(status).header('idempotent-replayed', 'true');
  if (type !== undefined) reply.header('content-type', type);
  return reply.serializer(String).send(body);
}

function typeOf(reply: FastifyReply): string | undefined {
  const type = reply.getHeader('content-type');
  return type === undefined ? undefined : String(type);
}

/** No response to a POST may be a stream, since it could not be repeated. */
function textOf(payload: unknown): string {
  if (payload === undefined || payload === null) return '';
  if (typeof payload === 'string' || Buffer.isBuffer(payload)) return payload.toString();
  throw new MusterError('internal_error', 'The answer is a stream, which cannot be kept');
}

function reused(): MusterError {
  return new MusterError(
    'idempotency_key_reused',
    'This Idempotency-Key was sent with another body, or to another address, within 24 hours: make a new key for a new call.',
  );
}
