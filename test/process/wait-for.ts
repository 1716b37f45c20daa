import { waitFor as lookOften } from '../support/wait-for.js';

/** Each look costs a deployment and its database some milliseconds of a processor, which the other files need. */
const INTERVAL_MS = 200;

/** The `waitFor` of all tests, for what takes seconds: it looks less often. */
export function waitFor<T>(
  check: () => T | Promise<T>,
  { intervalMs = INTERVAL_MS, ...options }: { timeoutMs?: number; intervalMs?: number; what?: string } = {},
): Promise<NonNullable<T>> {
  return lookOften(check, { intervalMs, ...options });
}
