import { readInstant } from './read-instant.js';

const SECONDS = /^\d{1,10}(\.\d*)?$/;

/**
 * Retry-After in both of its forms (RFC 9110, 10.2.3), and with a fraction of a second, as milliseconds from `now`, rounded up to a full second; of
 * several values the longest. Undefined when absent or neither form: `Date.parse` would read `1.5` as a date.
 */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim();
  if (!text) return undefined;
  const waits = text.split(/\s*,\s*/);
  if (waits.every((wait) => SECONDS.test(wait))) return Math.max(...waits.map((wait) => Math.ceil(Number(wait)) * 1000));
  const instant = readInstant(text);
  return instant === undefined ? undefined : Math.max(0, instant - now);
}
