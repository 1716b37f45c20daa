import { millisecondsOf, readInstant } from '../retry-after.js';

type Headers = Readonly<Record<string, string>>;

/** Headers that name policies. */
const POLICIES = ['ratelimit-policy', 'ratelimit', 'ratelimit-limit', 'x-ratelimit-limit'];
/**
 * Windows in seconds that are part of a header's name, as Kong sends them. A daily limit is a quota and left out: spread over the day it would slow
 * down a night that it has room for.
 */
const NAMED_WINDOWS = { second: 1, minute: 60, hour: 3_600 } as const;

/**
 * Requests a second that the response headers allow; the strictest of several policies counts. Reads `RateLimit-Policy` and `RateLimit`
 * (draft-ietf-httpapi-ratelimit-headers: `"burst";q=100;w=10`, earlier `100;w=10`), the `RateLimit-Limit` of older drafts, and
 * `X-RateLimit-Limit-Second` and the like. Undefined if no header names a window: a limit without a window is no rate.
 */
export function announcedLimit(headers: Headers): number | undefined {
  const named = Object.entries(NAMED_WINDOWS).map(([unit, seconds]) => numberIn(headers[`x-ratelimit-limit-${unit}`]) / seconds);
  const rates = [...POLICIES.flatMap((name) => membersOf(headers[name]).map(rateOf)), ...named];
  const known = rates.filter((rate) => rate > 0 && Number.isFinite(rate));
  return known.length === 0 ? undefined : Math.min(...known);
}

/** A limit for a window of this many seconds or more is a quota. */
const DAY = 86_400;

/** Requests a second of a policy; NaN if it names no rate or counts anything but requests. */
function rateOf(policy: string): number {
  if (!/^(undefined|requests?)$/.test(String(parameter(policy, 'qu')))) return Number.NaN;
  const quota = parameter(policy, 'q') ?? /^\s*(\d+)\s*;/.exec(policy)?.[1];
  const window = Number(parameter(policy, 'w') ?? parameter(policy, 'window'));
  return window >= DAY ? Number.NaN : Number(quota) / window;
}

/** Milliseconds until the service's window ends, if the headers say that it is used up; undefined otherwise. */
export function exhaustedForMs(headers: Headers, now: number): number | undefined {
  const waits = membersOf(headers['ratelimit']).flatMap((member) => {
    const isExhausted = (parameter(member, 'r') ?? /\bremaining=(\d+)/.exec(headers['ratelimit']!)?.[1]) === '0';
    return isExhausted ? [resetMs(parameter(member, 't') ?? /\breset=(\d+)/.exec(headers['ratelimit']!)?.[1], now)] : [];
  });
  const remaining = headers['ratelimit-remaining'] ?? headers['x-ratelimit-remaining'] ?? headers['x-rate-limit-remaining'];
  const reset = headers['ratelimit-reset'] ?? headers['x-ratelimit-reset'] ?? headers['x-rate-limit-reset'];
  if (numberIn(remaining) === 0) waits.push(resetMs(reset, now));
  // For a longer window it is unknown how much of it has passed.
  if (numberIn(headers['x-ratelimit-remaining-second']) === 0) waits.push(1_000);
  const known = waits.filter((wait) => wait !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** Milliseconds until a reset, given as seconds, as an instant in seconds or milliseconds since 1970, or as a date. */
function resetMs(reset: string | undefined, now: number): number | undefined {
  if (reset === undefined) return undefined;
  const number = numberIn(reset);
  if (number >= 0) return millisecondsOf(number, now);
  const instant = readInstant(reset);
  return instant === undefined ? undefined : Math.max(0, instant - now);
}

/** A number alone, repeated (a header sent twice) or before a total (`0/40`); NaN for anything else. */
function numberIn(value: string | undefined): number {
  const [, number] = /^\s*(\d+(?:\.\d+)?)\s*(?:\/\s*\d+\s*)?(?:,\s*\1\s*)*$/.exec(value ?? '') ?? [];
  return Number(number);
}

/** The members of a structured list. A comma in a quoted text does not separate. */
function membersOf(header: string | undefined): readonly string[] {
  return header?.match(/(?:"(?:[^"\\]|\\.)*"|[^",])+/g) ?? [];
}

/** A parameter of a member, without quotes. A quoted text holds no parameters. */
function parameter(member: string, name: string): string | undefined {
  const bare = member.replace(/^\s*"(?:[^"\\]|\\.)*"/, '');
  return new RegExp(`;\\s*${name}="?([^;",\\s]+)"?\\s*(?:;|$)`).exec(bare)?.[1];
}
