import { getHeapStatistics } from 'node:v8';
import { WHOLE_LIST_MS } from '../../db/connection/transaction.js';
import type { LargeResponseLimits } from './large-responses.js';
import type { SocketLimitOptions } from './socket-limit.js';

/** What callers may take of the process, whether or not they have shown a token. */
export interface ServerLimits extends SocketLimitOptions, LargeResponseLimits {
  /** From the connection, or the first byte of a later request, to the end of the headers; and to the end of the request. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** How often these two are looked at: a request may take that much longer. */
  readonly checkMs: number;
  /** How long nothing may move on a connection whose answer is under way. */
  readonly silenceMs: number;
  readonly bodyBytes: number;
  /** Event streams that are open at once. */
  readonly streams: number;
  /** Connections that the system keeps while the process has no time to take them. Fewer, and a probe among many waits a second to ask again. */
  readonly backlog: number;
}

export const SERVER_LIMITS: ServerLimits = {
  // Some 20 kB each while headers or a body arrive: 40 MB at most.
  connections: 2_000,
  pipelined: 4,
  streams: 1_000,
  headersMs: 10_000,
  requestMs: 20_000,
  checkMs: 1_000,
  lingerMs: 1_000,
  // An onboarding waits for the service for 120 s before it answers.
  silenceMs: 150_000,
  // To remove a company of some million records takes minutes, and is ended no sooner (db/transaction.ts).
  workMs: WHOLE_LIST_MS,
  // The largest body is an onboarding with its refresh token.
  bodyBytes: 256 * 1024,
  backlog: 4_096,
  // Texts that are no Latin take twice as much of the heap as they have letters.
  largeResponseBytes: getHeapStatistics().heap_size_limit / 4,
  largeResponseMs: 10_000,
};
