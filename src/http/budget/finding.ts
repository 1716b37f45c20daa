// This file finds the rate of an environment's requests. It is pure: time comes in, and a Finding comes out.
//
//   free ──refused──▶ seeking ──refused──▶ holding ⇄ probing
//
// free     nothing was refused yet: no schedule, only a bound on requests at once (in-flight-window.ts).
// seeking  a first guess, which doubles every two seconds of requests until it is refused.
// holding  the rate that was found, a little below where it was refused. Nothing is tried.
// probing  after some seconds of holding, the rate rises, slowly at first. A refusal leads back to holding: below the rate that was reached,
//          and, if that is refused as well, at the rate that held before. A bucket lets more through for a while than it fills by.
//
// Time is counted by the schedule, not by the clock: an unused rate proves nothing and does not rise.

/** The current knowledge of an environment's limit. Rates are requests a second. */
export interface Finding {
  /** The rate at which holding or seeking began; null while free. */
  readonly rate: number | null;
  /** A lower rate that is known to hold, used if the present one is refused too soon. */
  readonly fallback: number | null;
  readonly seeking: boolean;
  /** Seconds of the schedule that were used since `rate` was set. */
  readonly progress: number;
}

export interface Refusal {
  /** Requests accepted in the second before the refusal; used only while free. */
  readonly accepted: number;
  /** Seconds since the rate was set. */
  readonly elapsed: number;
  /** Seconds of `elapsed` during which requests were paused. */
  readonly paused: number;
  /** Seconds of the schedule that are leased but still in the future. */
  readonly lead: number;
  /** Seconds that the service asked us to wait. */
  readonly retryAfter?: number | undefined;
  /** The request was sent at a rate that is set or announced. */
  readonly isBound?: boolean;
}

export const FREE: Finding = { rate: null, fallback: null, seeking: false, progress: 0 };

/** Share of a limit that a schedule uses. The rest is room for late requests, which arrive close together. */
export const BELOW_LIMIT = 0.975;

/** Share of a limit that was found by refusals and is therefore less exact. */
const BELOW_FOUND = 0.96;

/** One request in 50 seconds. A service that accepts fewer must ask for it by Retry-After. */
const LOWEST_RATE = 0.02;
/** Short enough that a doubled limit is found within 20 s. */
const HOLD_SECONDS = 7;
/** A probe costs one or two refusals. With this many requests between probes that is a few percent, however slow the service is. */
const HOLD_REQUESTS = 80;
const LONGEST_HOLD_SECONDS = 300;
/**
 * A probe doubles the rate in so many seconds, or requests of a slow service. It rises by the square of their share: slowly where the limit most likely
 * is, so that the refusal shows it closely and is not followed by another one; quickly where the limit has risen.
 */
const DOUBLING_SECONDS = 10;
const DOUBLING_REQUESTS = 20;
/** A probe that got more than this many seconds' worth of extra requests through was not a burst: the limit has risen. */
const BURST_SECONDS = 3;
/** A refusal sooner than this after a change shows that the change was not enough. */
const SOON_SECONDS = 2.5;

/** If a known limit is refused less often than this, some requests were merely late, and the full limit is soon tried again. */
const SELDOM_SECONDS = 15;

/** The rate to send at. */
export function rateOf({ rate, seeking, progress }: Pick<Finding, 'seeking' | 'progress'> & { rate: number }): number {
  if (seeking) return rate * 2 ** (progress / 2);
  return rate * (1 + (Math.max(0, progress - holdSeconds(rate)) / doublingSeconds(rate)) ** 2);
}

/** How long a probe takes that is not refused until the rate is twice as high. */
function doublingSeconds(rate: number): number {
  return Math.max(DOUBLING_SECONDS, DOUBLING_REQUESTS / rate);
}

/** How long the rate is held before it is probed. */
function holdSeconds(rate: number): number {
  return Math.min(LONGEST_HOLD_SECONDS, Math.max(HOLD_SECONDS, HOLD_REQUESTS / rate));
}

/** Learns from a refusal; `pause` is the seconds without requests. Call it once per episode, not once per refused request. */
export function refused(
  known: Finding,
  { accepted, elapsed, paused, lead, retryAfter, isBound = false }: Refusal,
): { finding: Finding; pause: number } {
  const { rate, fallback, seeking } = known;
  // Requests sent all at once have used up a second's worth, however the service counts.
  if (rate === null) return { finding: { ...FREE, rate: Math.max(1, 0.8 * accepted), seeking: true }, pause: retryAfter ?? 1 };
  const progress = Math.max(0, known.progress - lead);
  const hold = (next: number, back: number | null, pause = 0.2, held = 0) => ({
    finding: {
      rate: Math.max(LOWEST_RATE, next),
      fallback: back,
      seeking: false,
      // A probe that costs a pause comes less often.
      progress: isBound && elapsed > SELDOM_SECONDS ? holdSeconds(next) - 2 : held - 3.5 * Math.min(1, retryAfter ?? 0),
    },
    pause: retryAfter ?? pause,
  });
  // A service that counts the requests of a second has just counted the last second.
  const reached = BELOW_FOUND * rateOf({ ...known, rate, progress: Math.max(0, progress - (seeking ? 0.75 : 0.5)) });
  // A bucket was empty at the last refusal and is empty now: it let through as much as it was filled.
  const filled = (BELOW_FOUND * slotsOf(rate, progress)) / Math.max(elapsed, 0.1);
  if (seeking) return hold(reached, Math.min(reached, Math.max(filled, 0.85 * reached)));
  if (progress > holdSeconds(rate)) {
    const excess = (progress - holdSeconds(rate)) ** 3 / (3 * doublingSeconds(rate) ** 2);
    return hold(reached, Math.min(reached, excess > BURST_SECONDS ? 0.8 * reached : 0.98 * rate));
  }
  if (elapsed - paused > SOON_SECONDS) {
    if (fallback !== null && fallback < 0.97 * rate) return hold(0.95 * rate, Math.min(fallback, 0.95 * rate));
    // The rate held until now: this request may only have been late.
    return hold(0.97 * rate, 0.95 * rate);
  }
  if (fallback !== null && fallback > 0.75 * rate) {
    const next = Math.min(0.95 * rate, Math.max(fallback, 0.93 * rate));
    return hold(next, fallback < 0.97 * next ? fallback : null);
  }
  if (fallback !== null) return hold(fallback, null, 0.2, holdSeconds(fallback) - 3);
  return hold(0.8 * rate, null, 0.5);
}

/** Slots that a seeking schedule has given in so many seconds. */
function slotsOf(rate: number, progress: number): number {
  return (rate * 2 * (2 ** (progress / 2) - 1)) / Math.LN2;
}
