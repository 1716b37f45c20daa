import pRetry from 'p-retry';
import type { Clock } from '../core/clock.js';
import { isMusterError } from '../core/errors.js';
import { ServiceError } from './service-error.js';

const ATTEMPTS = 5;
const FIRST_DELAY_MS = 500;
/** A service that asks for more patience is left alone by the whole run: waiting here would keep a worker from others. */
const LONGEST_WAIT_MS = 60_000;
/** "Retry-After: 0" means now, but several attempts within one millisecond would burn them all on the same hiccup. */
const SHORTEST_DELAY_MS = 100;
/** Refusals for asking too often that cost a request none of its attempts: they say nothing of it, and the budget slows all down. */
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
 * Repeats idempotent work, at most five times in all, while it fails with a retryable ServiceError: network errors,
 * timeouts, 408, 425, 429, 499, 5xx and what is no answer of the API, with a Retry-After of a minute at most. The first refusals by 429 count for nothing. Other errors, a token source's among them, pass through at
 * once: whoever raised them has a retry policy of its own. Rejects with the last error, or with the signal's reason as soon as it aborts.
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
    // As p-retry has them by itself: to add what is not given takes it 6 µs, a tenth of what a request takes in all.
    factor: 2,
    maxTimeout: Number.POSITIVE_INFINITY,
    maxRetryTime: Number.POSITIVE_INFINITY,
    randomize: false,
    shouldConsumeRetry: ({ error }) => !isThrottled(error) || ++refusals > FREE_REFUSALS,
  });
}

/**
 * The jitter spreads callers that failed at the same moment, or were told the same Retry-After, so that they do not
 * return at the same moment and fail again together. It never comes back earlier than the service asked.
 */
function delayMs(error: ServiceError, attempt: number, random: number): number {
  const { retryAfterMs: asked } = error;
  // When it leaves again is for the budget to say.
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
