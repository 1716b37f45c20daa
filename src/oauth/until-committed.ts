import pRetry from 'p-retry';
import { isMusterError } from '../core/errors.js';

/**
 * Repeats a write that must not be given up: a token pair that the service has just granted exists nowhere else. For
 * about a minute, whatever the database's error; then the error passes, and the row still says that an attempt was under way.
 * The work must be harmless when repeated, since a commit whose answer was lost may have taken effect.
 */
export function untilCommitted<T>(work: () => Promise<T>): Promise<T> {
  return pRetry(work, {
    retries: 14,
    minTimeout: 200,
    maxTimeout: 5_000,
    randomize: true,
    shouldRetry: ({ error }) => !isMusterError(error) || error.retryable,
  });
}
