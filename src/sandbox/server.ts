import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '../core/clock.js';
import { parseCompanyId } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { type Answer, bodyOf, json, refusal } from './answer.js';
import type { Effect, Faults } from './faults.js';
import type { RequestLog, ServedRequest } from './request-log.js';
import { findRoute, type Route, readObject } from './router.js';

const BODY_LIMIT = 1_000_000;

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  readonly latencyMs: number;
  readonly etags: boolean;
  readonly routes: readonly Route[];
  readonly faults: Faults;
  readonly log: RequestLog;
}

/** Answers requests by their routes, through the faults. */
export class SandboxServer {
  readonly #options: ServerOptions;
  readonly #server: Server;
  readonly #stopping = new AbortController();

  constructor(options: ServerOptions) {
    this.#options = options;
    // One for each answer that is late on purpose, however many these are.
    setMaxListeners(0, this.#stopping.signal);
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      // A client that went away in the middle is no fault of ours.
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  async start(): Promise<URL> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (cause: NodeJS.ErrnoException) => {
        const code = cause.code === 'EADDRINUSE' ? 'port_in_use' : 'internal_error';
        reject(new MusterError(code, `The sandbox cannot listen on ${host}:${port}. Choose another port.`, { cause }));
      });
      this.#server.listen(port, host, resolve);
    });
    const name = host.includes(':') ? `[${host}]` : host;
    return new URL(`http://${name}:${(this.#server.address() as AddressInfo).port}/`);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock, latencyMs, etags, log, faults } = this.#options;
    const method = request.method ?? 'GET';
    const { pathname: path, searchParams: query } = new URL(`http://sandbox${request.url}`);
    const entry = log.add({ at: clock.now(), method, path, input: {} });
    const body = await readBody(request);
    entry.input = loggedInput(entry, query, body ?? '');
    const effect = faults.meet(entry);

    // Real time even under an injected clock: slowness is felt by the client's sockets.
    const wait = latencyMs + (effect?.kind === 'delay' ? effect.ms : 0);
    if (wait > 0) await systemClock.sleep(wait, this.#stopping.signal);
    if (effect?.kind === 'hang' && effect.when === 'before') return;
    if (effect?.kind === 'drop' && effect.when === 'before') return void response.destroy();

    const answer =
      body === undefined
        ? refusal(413, 'too_large', 'The body is too large.')
        : this.#answer(entry, request, query, body, effect);
    if (effect?.kind === 'hang') return;
    if (effect?.kind === 'drop' && effect.when === 'after') return void response.destroy();
    const hasEtag = etags && method === 'GET' && path.startsWith('/api/') && answer.status === 200;
    const whole = Buffer.from(bodyOf(answer, effect?.kind === 'alter' ? effect.members : {}));
    send(response, entry, hasEtag ? withEtag(answer, whole, request.headers['if-none-match']) : answer, whole, effect);
  }

  #answer(
    entry: ServedRequest,
    request: IncomingMessage,
    query: URLSearchParams,
    body: string,
    effect: Effect | undefined,
  ): Answer {
    const found = findRoute(this.#options.routes, entry.method, entry.path);
    const companyId = 'route' in found ? (parseCompanyId(found.companyId) ?? found.companyId) : '';
    if (companyId !== '') entry.companyId = companyId;
    if (effect?.kind === 'status') {
      const { status, headers = {}, body: text } = effect;
      return text === undefined
        ? json(status, { error: 'fault', message: 'Asked for by a test.' }, headers)
        : { status, headers, body: text };
    }
    if (!('route' in found)) {
      if (found.allowed.length === 0) return refusal(404, 'not_found', 'There is no such address.');
      return refusal(405, 'method_not_allowed', `Use ${found.allowed.join(' or ')}.`, { allow: found.allowed.join(', ') });
    }
    // Answered, not thrown: a mistake of the sandbox must not look like a connection that a test let drop.
    try {
      return found.route.handle({
        query,
        contentType: (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '',
        authorization: request.headers.authorization,
        body,
        companyId,
        clamp: effect?.kind === 'clamp' ? effect.take : undefined,
      });
    } catch (error) {
      return refusal(500, 'internal_error', String(error));
    }
  }
}

/** The body as text, or undefined when it is too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= BODY_LIMIT) chunks.push(chunk);
  }
  return size > BODY_LIMIT ? undefined : Buffer.concat(chunks).toString('utf8');
}

/** What the request log shows: of the API the paging input, of the token endpoint no more than the kind of grant. */
function loggedInput({ method, path }: ServedRequest, query: URLSearchParams, body: string): Readonly<Record<string, unknown>> {
  if (path === '/auth/token') return { grant_type: new URLSearchParams(body).get('grant_type') };
  if (!path.startsWith('/api/')) return {};
  return method === 'GET' ? Object.fromEntries(query) : (readObject(body) ?? {});
}

/** The answer with its ETag, and with status 304, by which the server leaves the body out, where the client has it already. */
function withEtag(answer: Answer, whole: Buffer, ifNoneMatch: string | undefined): Answer {
  const etag = `"${createHash('sha256').update(whole).digest('base64url')}"`;
  return { status: etag === ifNoneMatch ? 304 : answer.status, headers: { etag, ...answer.headers } };
}

function send(
  response: ServerResponse,
  entry: ServedRequest,
  { status, headers: own }: Answer,
  whole: Buffer,
  effect: Effect | undefined,
): void {
  const half = whole.subarray(0, whole.length >> 1);
  const body = effect?.kind === 'truncate' ? half : whole;
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(body.length),
    ...own,
  };
  if (effect?.kind === 'drop') {
    response.writeHead(status, headers);
    response.write(half, () => response.destroy());
    return;
  }
  entry.status = status;
  response.writeHead(status, headers).end(body);
}
