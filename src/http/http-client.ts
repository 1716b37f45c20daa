import { isUtf8 } from 'node:buffer';
import { Agent, type Dispatcher } from 'undici';
import { connectionFailure } from '../core/connection-failure.js';
import { decodeBody, malformed } from './decode-body.js';
import { Exchange } from './exchange.js';
import { nameOfProxy, Proxies } from './proxy/proxies.js';
import { connectorThrough, throughProxies } from './proxy/through-proxies.js';
import { authenticationFailure } from './proxy/tunnel.js';
import { MAX_HEADER_BYTES, refusedHttp } from './refused-http.js';
import { MemoryShort, type Reservation } from './response-memory.js';
import { ServiceError } from './service-error.js';

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the whole exchange, from the connection to the last byte; 120 s by default. */
  readonly deadlineMs?: number;
  /**
   * Use a new connection. The server may just have closed a kept one, and then it is unknown whether the request
   * arrived: harmless for a page, not for a refresh token.
   */
  readonly freshConnection?: boolean;
  /** Memory for the response. Without it, the response may have 8 MB at most. */
  readonly memory?: Reservation | undefined;
}

export interface HttpResponse {
  readonly status: number;
  readonly url: string;
  /** Names in lower case; repeated headers joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body with its encoding undone. It may not be UTF-8. */
  readonly bytes: Buffer;
}

/** The body without a byte order mark. Throws ServiceError `malformed_response` if it is not UTF-8. */
export function textOf({ bytes }: Pick<HttpResponse, 'bytes'>): string {
  if (!isUtf8(bytes)) throw malformed('is not UTF-8', undefined);
  return new TextDecoder().decode(bytes);
}

export interface HttpLimits {
  readonly connectTimeoutMs?: number;
  /** Longest silence: before the headers, and between two parts of the body. */
  readonly silenceTimeoutMs?: number;
  readonly deadlineMs?: number;
  /** Bytes of a body once decoded. */
  readonly maxBytes?: number;
}

const MEGABYTE = 1024 * 1024;
/** The largest response for which no memory need be reserved. Everything but the pages of lists is far smaller. */
const SMALL = 8 * MEGABYTE;

/**
 * The only way to the service: one pool of kept connections per process, a limit for every wait, no redirects followed.
 * It knows HTTP only; the caller interprets the status. Throws ServiceError `service_unreachable`,
 * `service_timeout`, `response_too_large` or `malformed_response`, MemoryShort, and the signal's reason when it aborts.
 */
export class HttpClient {
  readonly #kept: Dispatcher;
  readonly #fresh: Dispatcher;
  readonly #proxies: Proxies;
  readonly #deadlineMs: number;
  readonly #maxBytes: number;
  /** Errors of requests that were never sent, because there was no connection. */
  readonly #connectErrors = new WeakSet<Error>();

  /** Without `proxies`, every address is requested directly. */
  constructor(limits: HttpLimits = {}, proxies = new Proxies()) {
    const { connectTimeoutMs = 5_000, silenceTimeoutMs = 30_000, deadlineMs = 120_000, maxBytes = 64 * MEGABYTE } = limits;
    const dial = connectorThrough(proxies, connectTimeoutMs);
    const options: Agent.Options = {
      // With HTTP/2, several responses would share the memory that an Exchange gives back.
      allowH2: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: silenceTimeoutMs,
      bodyTimeout: silenceTimeoutMs,
      connect: (target, done) =>
        dial(target, (...[error, socket]) => {
          if (error) {
            this.#connectErrors.add(error);
            done(error, null);
          } else done(null, socket);
        }),
    };
    this.#proxies = proxies;
    this.#kept = throughProxies(new Agent(options), proxies);
    this.#fresh = throughProxies(new Agent({ ...options, pipelining: 0 }), proxies);
    this.#deadlineMs = deadlineMs;
    this.#maxBytes = maxBytes;
  }

  async send(outgoing: HttpRequest): Promise<HttpResponse> {
    const { method, url, headers, body, signal, deadlineMs = this.#deadlineMs, memory } = outgoing;
    signal?.throwIfAborted();
    const maxBytes = memory ? this.#maxBytes : Math.min(this.#maxBytes, SMALL);
    const exchange = new Exchange(maxBytes, memory);
    const timer = setTimeout(() => exchange.abort(tooLate(outgoing, deadlineMs, exchange.hasBegun)), deadlineMs);
    const onAbort = () => exchange.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      (outgoing.freshConnection ? this.#fresh : this.#kept).dispatch(
        {
          method,
          origin: url.origin,
          path: url.pathname + url.search,
          headers: { 'user-agent': 'muster', 'accept-encoding': 'gzip', ...headers },
          ...(body !== undefined && { body }),
        },
        exchange,
      );
      const response = await exchange.response;
      if (response.status === 407) this.#requirePassed(outgoing);
      const bytes = await decodeBody(response, { what: describeRequest(outgoing), maxBytes, memory });
      memory?.settle(bytes);
      return { status: response.status, url: url.href, headers: response.headers, bytes };
    } catch (error) {
      signal?.throwIfAborted();
      throw error instanceof ServiceError || error instanceof MemoryShort
        ? error
        : this.#failure(this.#describe(outgoing), error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Name of the proxy for this address, for messages; undefined if it is requested directly. */
  proxyFor(url: URL): string | undefined {
    const proxy = this.#proxies.proxyFor(url);
    return proxy && `${nameOfProxy(proxy)} (${proxy.variable})`;
  }

  /** Waits for running requests. */
  async close(): Promise<void> {
    await Promise.all([this.#kept.close(), this.#fresh.close()]);
  }

  #describe(outgoing: HttpRequest): string {
    const proxy = this.proxyFor(outgoing.url);
    return `${describeRequest(outgoing)}${proxy === undefined ? '' : ` through the proxy ${proxy}`}`;
  }

  /** Throws if the 407 came from a proxy: it has forwarded nothing. */
  #requirePassed(outgoing: HttpRequest): void {
    const proxy = outgoing.url.protocol === 'http:' ? this.#proxies.proxyFor(outgoing.url) : undefined;
    if (!proxy) return;
    const failure = authenticationFailure(proxy);
    this.#connectErrors.add(failure);
    throw failure;
  }

  #failure(what: string, error: unknown): ServiceError {
    const sent = !(error instanceof Error && this.#connectErrors.has(error));
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (code.startsWith('UND_ERR_') && code.endsWith('_TIMEOUT'))
      return new ServiceError('service_timeout', `${what} got no answer in time (${code})`, { sent, cause: error });
    const refused = refusedHttp(error);
    if (refused !== undefined)
      return new ServiceError(
        'malformed_response',
        `${what} gave an answer that cannot be read: ${refused}; ask the operator of the service, or of the proxy in front of it`,
        { sent, cause: error, retryable: true },
      );
    const problem = sent
      ? 'the connection broke before the answer was complete'
      : `no connection: ${connectionFailure(error)}; check the address and the network`;
    return new ServiceError('service_unreachable', `${what} failed: ${problem}${code && ` (${code})`}`, { sent, cause: error });
  }
}

/** Method, host and path of a request, for messages. The query is left out, because it may hold page tokens and codes. */
export function describeRequest({ method, url }: Pick<HttpRequest, 'method' | 'url'>): string {
  return `${method} ${url.host}${url.pathname}`;
}

function tooLate(outgoing: HttpRequest, deadlineMs: number, sent: boolean): ServiceError {
  return new ServiceError('service_timeout', `${describeRequest(outgoing)} took longer than ${deadlineMs} ms`, { sent });
}
