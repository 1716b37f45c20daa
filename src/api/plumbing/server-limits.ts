import { getHeapStatistics } from 'node:v8';
import { WHOLE_LIST_MS } from '../../db/connection/transaction.js';
import type { LargeResponseLimits } from './large-responses.js';
import type { SocketLimitOptions } from './socket-limit.js';

/** Limits on what callers may take of the process, with or without a token. */
export interface ServerLimits extends SocketLimitOptions, LargeResponseLimits {
  /** The time from the connection, or the first byte of a later request, to the end of the headers, and to the end of the request. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** The interval at which these two are checked: a request may take that much longer. */
  readonly checkMs: number;
  /** The longest silence on a connection whose response is under way. */
  readonly silenceMs: number;
  readonly bodyBytes: number;
  /** Event streams that are open at once. */
  readonly streams: number;
  /** Connections that the system queues until the process takes them. With a shorter queue, a probe in a flood must retry after a second. */
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
  // An onboarding waits up to 120 s for the service.
  silenceMs: 150_000,
  // The removal of a company with some million records takes minutes (WHOLE_LIST_MS).
  workMs: WHOLE_LIST_MS,
  // The largest body is an onboarding with its refresh token.
  bodyBytes: 256 * 1024,
  backlog: 4_096,
  // A text with other than Latin letters takes two bytes of heap a letter.
  largeResponseBytes: getHeapStatistics().heap_size_limit / 4,
  largeResponseMs: 10_000,
};
