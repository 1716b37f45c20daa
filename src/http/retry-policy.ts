import pRetry from 'p-retry';
import type { Clock } from '../core/clock.js';
import { isMusterError } from '../core/errors.js';
import { ServiceError } from './service-error.js';

const ATTEMPTS = 5;
const FIRST_DELAY_MS = 500;
/** If a service asks for a longer wait, the whole run is postponed: waiting here would keep the worker from other runs. */
const LONGEST_WAIT_MS = 60_000;
/** "Retry-After: 0" means now, but several attempts within one millisecond would all meet the same hiccup. */
const SHORTEST_DELAY_MS = 100;
/** This many 429s do not count as attempts: they say nothing about the request, and the budget slows down all requests. */
const FREE_REFUSALS = 15;

export interface RetryOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** `service_refused` is never repeated. */
  readonly takesRefusals?: true | undefined;
  /** 0 to 1; Math.random unless a test owns it. */
  readonly random?: () => number;
  readonly onRetry?: (error: ServiceError, delayMs: number) => void;
}

/**
 * Makes at most five attempts at idempotent work while it fails with a retryable ServiceError: network errors, timeouts, 408, 425, 429, 499, 5xx
 * and responses that are not from the API, with a Retry-After of a minute at most. The first 429s do not count. Other errors, such as errors of a
 * token source, pass through at once: their source has its own retry policy. Rejects with the last error, or with the signal's reason as soon as it aborts.
 */
export function withRetries<T>(
  work: () => Promise<T>,
  { clock, signal, takesRefusals, random = Math.random, onRetry }: RetryOptions,
): Promise<T> {
  let refusals = 0;
  const isWorth = (error: unknown): error is ServiceError =>
    isRetryable(error) && !(takesRefusals && error.code === 'service_refused');
  return pRetry(work, {
    retries: ATTEMPTS - 1,
    minTimeout: 0,
    signal,
    shouldRetry: ({ error }) => isWorth(error),
    onFailedAttempt: async ({ error, retriesConsumed, retriesLeft }) => {
      if (retriesLeft === 0 || !isWorth(error)) return;
      const delay = delayMs(error, retriesConsumed + 1, random());
      onRetry?.(error, delay);
      await clock.sleep(delay, signal);
    },
    // These are the defaults of p-retry. Adding them itself takes it 6 µs, a tenth of a whole request.
    factor: 2,
    maxTimeout: Number.POSITIVE_INFINITY,
    maxRetryTime: Number.POSITIVE_INFINITY,
    randomize: false,
    shouldConsumeRetry: ({ error }) => !isThrottled(error) || ++refusals > FREE_REFUSALS,
  });
}

/**
 * The jitter spreads callers that failed at the same moment, or received the same Retry-After, so that they do not
 * fail again together. The delay is never shorter than the service asked for.
 */
function delayMs(error: ServiceError, attempt: number, random: number): number {
  const { retryAfterMs: asked } = error;
  // The budget decides when the request is sent again.
  if (isThrottled(error) && asked === undefined) return SHORTEST_DELAY_MS * (1 + random);
  const delay = asked === undefined ? FIRST_DELAY_MS * 2 ** (attempt - 1) * (0.5 + random) : asked * (1 + random / 10);
  return Math.max(SHORTEST_DELAY_MS, delay);
}

function isThrottled(error: unknown): boolean {
  return isMusterError(error, 'service_throttled');
}

function isRetryable(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.retryable && (error.retryAfterMs ?? 0) <= LONGEST_WAIT_MS;
}
