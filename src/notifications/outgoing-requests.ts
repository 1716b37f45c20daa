import { Agent, type Dispatcher, request as sendRequest } from 'undici';
import { orAborted } from '../core/clock.js';
import type { DeliveryError } from '../db/tables/notifications.js';
import { Proxies } from '../http/proxy/proxies.js';
import { connectorThrough, throughProxies } from '../http/proxy/through-proxies.js';

/** Status and headers, or why there was no response. */
export type Outcome =
  | { readonly status: number; readonly headers: Dispatcher.ResponseData['headers'] }
  | { readonly error: DeliveryError };

interface OutgoingRequest {
  readonly method: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Limit for one request, from the connection to the status line. A receiver that needs longer must respond first and work later. */
const DEADLINE_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** Sends requests to the addresses that an operator has set: the webhook and the monitor. Ignores bodies and follows no redirects. */
export class OutgoingRequests {
  readonly #deadlineMs: number;
  /** Keeps no connections: requests are minutes or hours apart, and a hanging one must not block the next. */
  readonly #agent: Dispatcher;

  constructor({
    deadlineMs = DEADLINE_MS,
    proxies = new Proxies(),
  }: { deadlineMs?: number | undefined; proxies?: Proxies | undefined } = {}) {
    this.#deadlineMs = deadlineMs;
    const connect = connectorThrough(proxies, CONNECT_TIMEOUT_MS);
    this.#agent = throughProxies(new Agent({ connect, pipelining: 0, maxHeaderSize: 16_384 }), proxies);
  }

  /** Sends once. Rejects only with the signal's reason. */
  async send(url: URL, { headers, ...options }: OutgoingRequest, signal?: AbortSignal): Promise<Outcome> {
    signal?.throwIfAborted();
    const late = AbortSignal.timeout(this.#deadlineMs);
    const ended = signal ? AbortSignal.any([late, signal]) : late;
    const request = { ...options, headers: { 'user-agent': 'muster', ...headers }, dispatcher: this.#agent, signal: ended };
    try {
      // undici checks the signal only once the request has its connection.
      const response = await orAborted(sendRequest(url, request), ended);
      response.body.on('error', () => {}).destroy();
      return { status: response.statusCode, headers: response.headers };
    } catch (error) {
      signal?.throwIfAborted();
      return { error: describe(error, late.aborted) };
    }
  }

  /** Ends running requests. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function describe(error: unknown, isLate: boolean): DeliveryError {
  const { code: cause = '' } = error as NodeJS.ErrnoException;
  if (isLate || /^UND_ERR_.*_TIMEOUT$/.test(cause)) return { code: 'timeout' };
  return { code: 'unreachable', ...(/^[A-Z0-9_]{1,64}$/.test(cause) && { cause }) };
}
