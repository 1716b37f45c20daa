import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { OutgoingHttpHeaders } from 'node:http';
import { brotliCompressSync, deflateSync } from 'node:zlib';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify';
import { type Clock, systemClock } from '../core/clock.js';
import { parseCompanyId } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { type Members, parseObject } from '../core/json.js';
import { JSON_TYPE, Refusal, sendJson, type Visit, visitOf } from './answer.js';
import type { Effect, Faults } from './faults.js';
import type { RateLimiter } from './rate-limiter.js';
import type { RequestLog } from './request-log.js';

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  readonly latencyMs: number;
  readonly etags: boolean;
  readonly faults: Faults;
  readonly log: RequestLog;
  /** The effect of a lesson on a request without a fault. */
  readonly met: (request: FastifyRequest) => Effect | undefined;
  /** The current limit of the API's requests. */
  readonly limiter: () => RateLimiter | undefined;
}

/** Parsers of bodies by Content-Type. */
const BODIES = { 'application/json': parseObject, 'application/x-www-form-urlencoded': readForm, '*': () => undefined };

/**
 * Serves the routes that `addRoutes` adds, with faults. Handlers get query and form as objects of texts, a JSON object as it is, and undefined
 * for any other body. Throws MusterError `port_in_use`.
 */
export async function serve(
  options: ServerOptions,
  addRoutes: (app: FastifyInstance) => void,
): Promise<{ url: URL; stop(): Promise<void> }> {
  const { host, port } = options;
  const stopping = new AbortController();
  // Each delayed response adds a listener, so there is no limit of listeners.
  setMaxListeners(0, stopping.signal);
  const app = Fastify({ forceCloseConnections: true, exposeHeadRoutes: false, routerOptions: { querystringParser: readForm } });
  app.removeAllContentTypeParsers();
  for (const [type, read] of Object.entries(BODIES)) {
    app.addContentTypeParser(type, { parseAs: 'string' }, async (_request: FastifyRequest, body: string) => read(body));
  }
  meetFaults(app, options, stopping.signal);
  app.setNotFoundHandler(() => {
    throw new Refusal(404, 'not_found', 'There is no such address.');
  });
  // An error of the sandbox itself gets a response too, so that it does not look like a dropped connection.
  app.setErrorHandler((error: Refusal | MusterError | FastifyError, _request, reply) => {
    const { status, code, message } =
      error instanceof Refusal || error instanceof MusterError
        ? error
        : { status: error.statusCode ?? 500, code: error.code ?? 'internal_error', message: String(error) };
    return sendJson(reply, status, { error: code, message }, error instanceof Refusal ? error.headers : {});
  });
  addRoutesAndRefusals(app, addRoutes);

  const address = await app.listen({ host, port }).catch((cause: NodeJS.ErrnoException) => {
    const code = cause.code === 'EADDRINUSE' ? 'port_in_use' : 'internal_error';
    throw new MusterError(code, `The sandbox cannot listen on ${host}:${port}. Choose another port.`, { cause });
  });
  return {
    url: new URL(address),
    async stop() {
      // Connections end first, so that a delayed response does not arrive early.
      app.server.closeAllConnections();
      stopping.abort();
      await app.close();
    },
  };
}

/** Adds the routes, and for each the refusal of every other method. */
function addRoutesAndRefusals(app: FastifyInstance, addRoutes: (app: FastifyInstance) => void): void {
  const allowed = new Map<string, string[]>();
  app.addHook('onRoute', ({ url, method }) => {
    allowed.set(url, [...(allowed.get(url) ?? []), ...[method].flat()]);
  });
  addRoutes(app);
  for (const [url, methods] of allowed) {
    const handler = () => {
      throw new Refusal(405, 'method_not_allowed', `Use ${methods.join(' or ')}.`, { allow: methods.join(', ') });
    };
    app.route({ method: app.supportedMethods.filter((method) => !methods.includes(method)), url, handler });
  }
}

/** Writes the log and applies faults, some before the handler, the others to its response. */
function meetFaults(
  app: FastifyInstance,
  { clock, latencyMs, etags, faults, log, limiter, met }: ServerOptions,
  stopped: AbortSignal,
): void {
  app.decorateRequest('visit', null);

  app.addHook('onRequest', async (request) => {
    const { company_id } = request.params as { company_id?: string };
    const entry = log.add({
      at: clock.now(),
      method: request.method,
      path: request.url.split('?', 1)[0] ?? '',
      input: {},
      ...(company_id !== undefined && { companyId: parseCompanyId(company_id) ?? company_id }),
    });
    request.setDecorator<Visit>('visit', { entry });
  });

  app.addHook('preValidation', async (request, reply) => {
    const visit = visitOf(request);
    visit.entry.input = loggedInput(request, visit.entry.path);
    const admission = isApi(visit.entry.path) ? limiter()?.admit(clock.now()) : undefined;
    if (admission) reply.headers(admission.headers);
    if (admission?.isAdmitted === false) return sendJson(reply, 429, { error: 'too_many_requests', message: 'Slow down.' });
    const effect = faults.meet(visit.entry) ?? met(request);
    visit.effect = effect;
    if (effect?.kind === 'hold') await faults.cleared(stopped);
    // Delays use real time even with an injected clock, since the client's sockets do.
    const wait = latencyMs + (effect?.kind === 'delay' ? effect.ms : 0);
    if (wait > 0) await systemClock.sleep(wait, stopped);
    if (effect?.kind === 'hang' && effect.when === 'before') return reply.hijack();
    if (effect?.kind === 'drop' && effect.when === 'before') {
      request.socket.destroy();
      return reply.hijack();
    }
    if (effect?.kind === 'raw') {
      request.socket.end(effect.text);
      return reply.hijack();
    }
    if (effect?.kind !== 'status') return undefined;
    const { status, headers = {}, body } = effect;
    if (body === undefined)
      return sendJson(reply, status, { error: 'fault', message: 'The sandbox was asked to fail.' }, headers);
    return reply.code(status).type(JSON_TYPE).headers(headers).send(body);
  });

  app.addHook('onSend', async (request, reply, payload: string | null) => {
    const { entry, effect } = visitOf(request);
    const plain = Buffer.from(payload ?? '');
    const whole = effect?.kind === 'encode' ? ENCODERS[effect.coding](plain) : plain;
    const half = whole.subarray(0, whole.length >> 1);
    if (effect?.kind === 'hang') return never();
    if (effect?.kind === 'drop' && effect.when === 'after') request.socket.destroy();
    if (effect?.kind === 'drop' && effect.when === 'midway') {
      const headers = reply.header('content-length', whole.length).getHeaders() as OutgoingHttpHeaders;
      reply.raw.writeHead(reply.statusCode, headers).write(half, () => request.socket.destroy());
    }
    if (effect?.kind === 'drop') return never();
    if (effect?.kind === 'alter') reply.headers(effect.headers ?? {});
    if (effect?.kind === 'encode') reply.header('content-encoding', effect.coding);
    const hasEtag = etags && request.method === 'GET' && isApi(entry.path) && reply.statusCode === 200;
    const etag = hasEtag ? `"${createHash('sha256').update(whole).digest('base64url')}"` : undefined;
    if (etag !== undefined) reply.header('etag', etag);
    const isKnown = etag !== undefined && etag === request.headers['if-none-match'];
    if (isKnown) reply.code(304);
    entry.status = reply.statusCode;
    return isKnown ? null : effect?.kind === 'truncate' ? half : whole;
  });
}

const ENCODERS = { br: brotliCompressSync, deflate: deflateSync };

/** Never resolves, so that the response is never sent. */
const never = () => new Promise<never>(() => {});

function isApi(path: string): boolean {
  return path.startsWith('/api/') || path.startsWith('/odata/');
}

/** The input for the request log: the paging of the API, and only the kind of grant of the token endpoint. */
function loggedInput({ method, query, body }: FastifyRequest, path: string): Members {
  if (path === '/auth/token') return { grant_type: (body as Members | undefined)?.grant_type ?? null };
  return isApi(path) ? (((method === 'GET' ? query : body) ?? {}) as Members) : {};
}

function readForm(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}
