const SECONDS = /^\d{1,10}$/;

/** Retry-After in both of its forms (RFC 9110, 10.2.3) as milliseconds from `now`; undefined when absent or neither form. */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim();
  if (!text) return undefined;
  if (SECONDS.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
