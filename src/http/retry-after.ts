const SECONDS = /^\d{1,13}(\.\d*)?$/;
/** Larger numbers are instants, in seconds or in milliseconds since 1970: as a duration, 1e9 seconds would be 30 years. */
const EPOCH_SECONDS = 1e9;
const EPOCH_MS = 1e11;

/**
 * Reads Retry-After (RFC 9110, 10.2.3), fractions of a second included, as milliseconds from `now`, rounded up to a full second. The longest of
 * several values counts. Undefined if absent or in neither form: `Date.parse` would read `1.5` as a date.
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

/** Milliseconds from `now`, for a number of seconds or an instant in seconds or milliseconds since 1970. */
export function millisecondsOf(number: number, now: number): number {
  if (number > EPOCH_MS) return Math.max(0, number - now);
  return number > EPOCH_SECONDS ? Math.max(0, number * 1_000 - now) : number * 1_000;
}

const TIME = String.raw`\d\d:\d\d:\d\d`;
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
/** The three forms of RFC 9110, 5.6.7: the preferred one, RFC 850, and asctime, which implies GMT. */
const HTTP_DATES = [
  new RegExp(`^[a-z]{3}, \\d\\d ${MONTH} \\d{4} ${TIME} GMT$`, 'i'),
  new RegExp(`^[a-z]{6,9}, \\d\\d-${MONTH}-\\d\\d ${TIME} GMT$`, 'i'),
  new RegExp(`^[a-z]{3} ${MONTH} [ \\d]\\d ${TIME} \\d{4}$`, 'i'),
];
/** ISO 8601 with date, time and zone. Without a zone it is no instant. */
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i;

/**
 * Reads an HTTP date, or ISO 8601 with its zone, as milliseconds since 1970; undefined for anything else. `Date.parse` alone would read numbers and
 * single words as dates, and texts without a zone as local time.
 */
export function readInstant(value: string): number | undefined {
  const text = value.trim();
  const [, , asctime] = HTTP_DATES;
  if (!ISO.test(text) && !HTTP_DATES.some((form) => form.test(text))) return undefined;
  const instant = Date.parse(asctime!.test(text) ? `${text} GMT` : text.toUpperCase());
  return Number.isNaN(instant) ? undefined : instant;
}
