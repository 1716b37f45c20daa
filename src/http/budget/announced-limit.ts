type Headers = Readonly<Record<string, string>>;

/**
 * Requests a second that the answer's headers allow: of several policies the strictest one. Read from `RateLimit-Policy` and `RateLimit`
 * (draft-ietf-httpapi-ratelimit-headers: `"burst";q=100;w=10`, before `100;w=10`), and the `RateLimit-Limit` of older drafts. Undefined where none
 * tells a window: a limit alone says nothing of how long it is for.
 */
export function announcedLimit(headers: Headers): number | undefined {
  let strictest: number | undefined;
  for (const name of ['ratelimit-policy', 'ratelimit', 'ratelimit-limit', 'x-ratelimit-limit']) {
    for (const policy of headers[name]?.split(',') ?? []) {
      const quota = Number(/(?:^|;)\s*q=(\d+)/.exec(policy)?.[1] ?? /^\s*(\d+)\s*;/.exec(policy)?.[1]);
      const seconds = Number(/;\s*w=(\d+)/.exec(policy)?.[1]);
      const rate = quota / seconds;
      if (rate > 0 && Number.isFinite(rate)) strictest = Math.min(strictest ?? rate, rate);
    }
  }
  return strictest;
}

/** An instant rather than a duration: some services give the seconds since 1970. */
const EPOCH = 1e9;

/** Milliseconds until the service's window ends, where the headers say that nothing is left of it; undefined where something is, or none says. */
export function exhaustedForMs(headers: Headers, now: number): number | undefined {
  const member = (name: 'r' | 't') => new RegExp(`;\\s*${name}=(\\d+)`).exec(headers['ratelimit'] ?? '')?.[1];
  const remaining = headers['ratelimit-remaining'] ?? headers['x-ratelimit-remaining'] ?? member('r');
  const reset = headers['ratelimit-reset'] ?? headers['x-ratelimit-reset'] ?? member('t');
  if (remaining?.trim() !== '0' || reset === undefined) return undefined;
  const seconds = Number(reset);
  if (!Number.isFinite(seconds)) return undefined;
  return Math.max(0, seconds > EPOCH ? seconds * 1_000 - now : seconds * 1_000);
}
