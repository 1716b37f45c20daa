const SECONDS = /^\d{1,13}(\.\d*)?$/;
/** An instant rather than a duration, in seconds or in milliseconds since 1970: as a duration, the one is 30 years, the other as an instant 3,000. */
const EPOCH_SECONDS = 1e9;
const EPOCH_MS = 1e11;

/**
 * Retry-After in both of its forms (RFC 9110, 10.2.3), and with a fraction of a second, as milliseconds from `now`, rounded up to a full second; of
 * several values the longest. Undefined when absent or neither form: `Date.parse` would read `1.5` as a date.
 */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim();
  if (!text) return undefined;
  const waits = text.split(/\s*,\s*/);
  if (waits.every((wait) => SECONDS.test(wait)))
    return Math.max(...waits.map((wait) => millisecondsOf(Math.ceil(Number(wait)), now)));
  const instant = readInstant(text);
  return instant === undefined ? undefined : Math.max(0, instant - now);
}

/** Milliseconds from `now` that a number of seconds tells, or an instant in seconds or milliseconds since 1970. */
export function millisecondsOf(number: number, now: number): number {
  if (number > EPOCH_MS) return Math.max(0, number - now);
  return number > EPOCH_SECONDS ? Math.max(0, number * 1_000 - now) : number * 1_000;
}

const TIME = String.raw`\d\d:\d\d:\d\d`;
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
/** The three forms of RFC 9110, 5.6.7: the preferred one, that of RFC 850, and that of asctime, which is in GMT without saying so. */
const HTTP_DATES = [
  new RegExp(`^[a-z]{3}, \\d\\d ${MONTH} \\d{4} ${TIME} GMT$`, 'i'),
  new RegExp(`^[a-z]{6,9}, \\d\\d-${MONTH}-\\d\\d ${TIME} GMT$`, 'i'),
  new RegExp(`^[a-z]{3} ${MONTH} [ \\d]\\d ${TIME} \\d{4}$`, 'i'),
];
/** ISO 8601 with a date, a time and a zone: without a zone it says nothing. */
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i;

/**
 * Reads a header that holds an instant: an HTTP date, or ISO 8601 with its zone. In milliseconds since 1970; undefined for anything else. `Date.parse` alone reads
 * numbers and single words as dates, and texts without a zone in that of this machine.
 */
export function readInstant(value: string): number | undefined {
  const text = value.trim();
  const [, , asctime] = HTTP_DATES;
  if (!ISO.test(text) && !HTTP_DATES.some((form) => form.test(text))) return undefined;
  const instant = Date.parse(asctime!.test(text) ? `${text} GMT` : text.toUpperCase());
  return Number.isNaN(instant) ? undefined : instant;
}
