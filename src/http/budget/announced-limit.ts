import { millisecondsOf, readInstant } from '../retry-after.js';

type Headers = Readonly<Record<string, string>>;

/** Headers that name policies. */
const POLICIES = ['ratelimit-policy', 'ratelimit', 'ratelimit-limit', 'x-ratelimit-limit'];
/**
 * Windows that a header's own name tells, as those of Kong do, in seconds. A limit a day is a quota: spread over the day it would stop a night that
 * it has room for.
 */
const NAMED_WINDOWS = { second: 1, minute: 60, hour: 3_600 } as const;

/**
 * Requests a second that the answer's headers allow: of several policies the strictest one. Read from `RateLimit-Policy` and `RateLimit`
 * (draft-ietf-httpapi-ratelimit-headers: `"burst";q=100;w=10`, before `100;w=10`), the `RateLimit-Limit` of older drafts, and
 * `X-RateLimit-Limit-Second` and its like. Undefined where none tells a window: a limit alone says nothing of how long it is for.
 */
export function announcedLimit(headers: Headers): number | undefined {
  const named = Object.entries(NAMED_WINDOWS).map(([unit, seconds]) => numberIn(headers[`x-ratelimit-limit-${unit}`]) / seconds);
  const rates = [...POLICIES.flatMap((name) => membersOf(headers[name]).map(rateOf)), ...named];
  const known = rates.filter((rate) => rate > 0 && Number.isFinite(rate));
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Seconds of a window from which on a limit is a quota. */
const DAY = 86_400;

/** Requests a second of a policy; NaN where it tells none, or counts something else than requests. */
function rateOf(policy: string): number {
  if (!/^(undefined|requests?)$/.test(String(parameter(policy, 'qu')))) return Number.NaN;
  const quota = parameter(policy, 'q') ?? /^\s*(\d+)\s*;/.exec(policy)?.[1];
  const window = Number(parameter(policy, 'w') ?? parameter(policy, 'window'));
  return window >= DAY ? Number.NaN : Number(quota) / window;
}

/** Milliseconds until the service's window ends, where the headers say that nothing is left of it; undefined where something is, or none says. */
export function exhaustedForMs(headers: Headers, now: number): number | undefined {
  const waits = membersOf(headers['ratelimit']).flatMap((member) => {
    const isExhausted = (parameter(member, 'r') ?? /\bremaining=(\d+)/.exec(headers['ratelimit']!)?.[1]) === '0';
    return isExhausted ? [resetMs(parameter(member, 't') ?? /\breset=(\d+)/.exec(headers['ratelimit']!)?.[1], now)] : [];
  });
  const remaining = headers['ratelimit-remaining'] ?? headers['x-ratelimit-remaining'] ?? headers['x-rate-limit-remaining'];
  const reset = headers['ratelimit-reset'] ?? headers['x-ratelimit-reset'] ?? headers['x-rate-limit-reset'];
  if (numberIn(remaining) === 0) waits.push(resetMs(reset, now));
  // Nobody knows how much of a longer window has passed.
  if (numberIn(headers['x-ratelimit-remaining-second']) === 0) waits.push(1_000);
  const known = waits.filter((wait) => wait !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** A reset as milliseconds from now. It is seconds from now, an instant in seconds or milliseconds since 1970, or a date. */
function resetMs(reset: string | undefined, now: number): number | undefined {
  if (reset === undefined) return undefined;
  const number = numberIn(reset);
  if (number >= 0) return millisecondsOf(number, now);
  const instant = readInstant(reset);
  return instant === undefined ? undefined : Math.max(0, instant - now);
}

/** A number that stands alone, or several times (a header sent twice), or before what it is of (`0/40`); NaN for anything else. */
function numberIn(value: string | undefined): number {
  const [, number] = /^\s*(\d+(?:\.\d+)?)\s*(?:\/\s*\d+\s*)?(?:,\s*\1\s*)*$/.exec(value ?? '') ?? [];
  return Number(number);
}

/** The members of a structured list; a comma in a quoted text parts none. */
function membersOf(header: string | undefined): readonly string[] {
  return header?.match(/(?:"(?:[^"\\]|\\.)*"|[^",])+/g) ?? [];
}

/** A parameter of a member, without quotes. What stands in a quoted text is none. */
function parameter(member: string, name: string): string | undefined {
  const bare = member.replace(/^\s*"(?:[^"\\]|\\.)*"/, '');
  return new RegExp(`;\\s*${name}="?([^;",\\s]+)"?\\s*(?:;|$)`).exec(bare)?.[1];
}
