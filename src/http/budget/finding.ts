// How the rate of an environment's requests is found. Pure: time comes in, and what is known comes out.
//
//   free ──refused──▶ seeking ──refused──▶ holding ⇄ probing
//
// free     nothing was refused yet: no schedule, only a bound on requests at once (in-flight-window.ts).
// seeking  a first guess, which doubles every two seconds of requests until it is refused.
// holding  the rate that was found, a little below where it was refused. Nothing is tried.
// probing  behind some seconds of that, the rate rises by a tenth a second. A refusal leads back to holding: below what was reached, and, if
//          that is refused as well, at what held before. A bucket lets more through for a while than it fills by.
//
// Time is counted by the schedule, not by the clock: a rate that nobody uses proves nothing, and does not rise.

/** What is known of an environment's limit. Rates are requests a second. */
export interface Finding {
  /** The rate at which holding or seeking began; null while free. */
  readonly rate: number | null;
  /** A lower rate that is known to hold: back to it when the present one is refused before it has held. */
  readonly fallback: number | null;
  readonly seeking: boolean;
  /** Seconds of the schedule that were used since `rate` was set. */
  readonly progress: number;
}

export interface Refusal {
  /** Requests that were accepted in the second before it; only asked while free. */
  readonly accepted: number;
  /** Seconds since the rate was set. */
  readonly elapsed: number;
  /** Of these, seconds in which nobody should ask. */
  readonly paused: number;
  /** Seconds of the schedule that were given out and are still to come. */
  readonly lead: number;
  /** Seconds that the service asked to be left alone. */
  readonly retryAfter?: number | undefined;
  /** Whether it was sent at a rate that is set or announced. */
  readonly isBound?: boolean;
}

export const FREE: Finding = { rate: null, fallback: null, seeking: false, progress: 0 };

/** How far a schedule stays below a limit: room for requests that are late, and so come close behind each other. */
export const BELOW_LIMIT = 0.975;

/** The same below a limit that was found by being refused, which is known less well. */
const BELOW_FOUND = 0.96;

/** One in 50 seconds: a service that takes less is not found to, but asks for it by Retry-After. */
const LOWEST_RATE = 0.02;
/** Short enough that a doubled limit is found within 20 s. */
const HOLD_SECONDS = 7;
/** So many requests that the one or two that a probe costs are a few hundredths, however slow the service is. */
const HOLD_REQUESTS = 80;
const LONGEST_HOLD_SECONDS = 300;
/** By this share of the rate it rises in a second. */
const RISE = 0.1;
/** A probe that brought more requests than this many seconds' worth was no burst that the service allows: the limit has risen. */
const BURST_SECONDS = 3;
/** What is refused sooner behind a change than this says that the change was not enough. */
const SOON_SECONDS = 2.5;

/** A limit that is told and is refused less often is soon tried again in full: some requests were late. Where many are, more room is left. */
const SELDOM_SECONDS = 15;

/** The rate to send at. */
export function rateOf({ rate, seeking, progress }: Pick<Finding, 'seeking' | 'progress'> & { rate: number }): number {
  return seeking ? rate * 2 ** (progress / 2) : rate * (1 + RISE * Math.max(0, progress - holdSeconds(rate)));
}

/** How long the rate is held before it is probed. */
function holdSeconds(rate: number): number {
  return Math.min(LONGEST_HOLD_SECONDS, Math.max(HOLD_SECONDS, HOLD_REQUESTS / rate));
}

/** What a refusal teaches, and for how many seconds nobody should ask. To be called once an episode, not once a refused request. */
export function refused(
  known: Finding,
  { accepted, elapsed, paused, lead, retryAfter, isBound = false }: Refusal,
): { finding: Finding; pause: number } {
  const { rate, fallback, seeking } = known;
  // What came all at once has used up a second's worth, whatever way the service counts.
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
  // A service that counts the requests of a second has just counted those of the last one.
  const reached = BELOW_FOUND * rateOf({ ...known, rate, progress: Math.max(0, progress - (seeking ? 0.75 : 0.5)) });
  // A bucket was empty at the last refusal, and is empty now: what it let through is what it fills by.
  const filled = (BELOW_FOUND * slotsOf(rate, progress)) / Math.max(elapsed, 0.1);
  if (seeking) return hold(reached, Math.min(reached, Math.max(filled, 0.85 * reached)));
  if (progress > holdSeconds(rate)) {
    const excess = (RISE / 2) * (progress - holdSeconds(rate)) ** 2;
    return hold(reached, Math.min(reached, excess > BURST_SECONDS ? 0.8 * reached : 0.98 * rate));
  }
  if (elapsed - paused > SOON_SECONDS) {
    if (fallback !== null && fallback < 0.97 * rate) return hold(0.95 * rate, Math.min(fallback, 0.95 * rate));
    // It held until now: a request may only have been late, and so may the next one.
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
