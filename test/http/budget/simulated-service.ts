import { LEASED_AHEAD_SECONDS } from '../../../src/db/tables/request-budgets.js';
import { BELOW_LIMIT, FREE, type Finding, rateOf, refused } from '../../../src/http/budget/finding.js';
import { InFlightWindow } from '../../../src/http/budget/in-flight-window.js';
import { RateLimiter, type RateLimitOptions } from '../../../src/sandbox/rate-limiter.js';

export interface Simulation {
  readonly seed: number;
  readonly seconds: number;
  /** The service's limit from so many seconds on, the first one from 0. */
  readonly limits: readonly { readonly from: number; readonly options: RateLimitOptions }[];
  readonly workers?: number;
  readonly latencyMs?: number;
  /** Mean of how much later than its slot a request leaves. */
  readonly jitterMs?: number;
  /** Share of requests that leave later by STALL_SECONDS, which is more than a schedule leaves free. */
  readonly stalls?: number;
  /** Requests a second that are set. */
  readonly set?: number;
}

export interface Arrival {
  /** Seconds. */
  readonly at: number;
  readonly isAdmitted: boolean;
}

interface Happening {
  readonly at: number;
  readonly work: () => void;
}

/** What a lease covers, and how long it takes until another worker sees that its slots are void. */
const BLOCK_SECONDS = 0.15;
const STALL_SECONDS = 0.08;

/**
 * Workers that always have something to ask, the row that they share and a service that counts, in simulated time: how often is it refused,
 * and how much of the limit is used? The schedule is leased as SlotSchedule does it; what is learned, learns `refused`.
 */
export function simulate({
  seed,
  seconds,
  limits,
  workers = 2,
  latencyMs = 5,
  jitterMs = 3,
  stalls = 0,
  set,
}: Simulation): Arrival[] {
  const random = randomOf(seed);
  const arrivals: Arrival[] = [];
  const happenings: Happening[] = [];
  const services = limits.map(({ from, options }) => ({ from, limiter: new RateLimiter(options) }));
  const most = BELOW_LIMIT * (set ?? Infinity);
  let now = 0;
  let row = { finding: FREE, version: 0, changedAt: 0, pause: 0, next: 0, changedBy: -1 };

  const later = (delay: number, work: () => void) => void happenings.push({ at: now + delay, work });
  const known = (): Finding & { rate: number } => ({ ...row.finding, rate: row.finding.rate ?? most });
  const isPaced = () => row.finding.rate !== null || set !== undefined;

  function learn(version: number, worker: number, retryAfter: number | undefined): void {
    if (version !== row.version) return;
    const accepted = arrivals.filter(({ at, isAdmitted }) => isAdmitted && at > now - 1).length;
    const { finding, pause } = refused(isPaced() ? { ...known() } : row.finding, {
      accepted,
      elapsed: now - row.changedAt,
      paused: row.pause,
      lead: Math.max(0, row.next - now),
      retryAfter,
    });
    row = {
      finding,
      version: version + 1,
      changedAt: now,
      pause,
      next: Math.max(now + pause, Math.min(row.next, now + LEASED_AHEAD_SECONDS)),
      changedBy: worker,
    };
  }

  /** `version`: of the row, as the worker knew it. */
  function send(worker: number, version: number, done: (isAdmitted: boolean) => void): void {
    const way = (latencyMs / 2_000) * (0.5 + random());
    later(way, () => {
      const { limiter } = services.findLast(({ from }) => from <= now)!;
      const { isAdmitted, headers } = limiter.admit(now * 1_000 + 370);
      arrivals.push({ at: now, isAdmitted });
      later(way, () => {
        if (!isAdmitted)
          learn(version, worker, headers['retry-after'] === undefined ? undefined : Number(headers['retry-after']));
        done(isAdmitted);
      });
    });
  }

  for (let worker = 0; worker < workers; worker += 1) {
    const window = new InFlightWindow();
    let inFlight = 0;
    const sendFreely = () => {
      while (!isPaced() && inFlight < Math.min(64, window.size)) {
        inFlight += 1;
        send(worker, row.version, (isAdmitted) => {
          inFlight -= 1;
          if (isAdmitted) window.answered(latencyMs, true);
          sendFreely();
        });
      }
    };
    const lease = () => {
      if (!isPaced()) return later(0.05, lease);
      const rate = Math.min(most, rateOf(known()));
      const slots = Math.max(1, Math.ceil(rate * BLOCK_SECONDS));
      const first = Math.max(row.next, now);
      row.next = first + slots / rate;
      row.finding = { ...row.finding, progress: row.finding.progress + slots / rate };
      const { version } = row;
      for (let slot = 0; slot < slots; slot += 1) {
        const late = (-Math.log(random()) * jitterMs) / 1_000;
        const stall = random() < stalls ? STALL_SECONDS : 0;
        later(first - now + slot / rate + late + stall, () => {
          const isVoid = version !== row.version && (worker === row.changedBy || now - row.changedAt > BLOCK_SECONDS);
          if (!isVoid) send(worker, version, () => {});
        });
      }
      return later(Math.max(0.001, first - now + (slots - 1) / rate - 0.05), lease);
    };
    later(random() * 0.3, () => {
      sendFreely();
      lease();
    });
  }

  for (;;) {
    const next = happenings.reduce((first, each) => (each.at < first.at ? each : first));
    if (next.at > seconds) return arrivals;
    happenings.splice(happenings.indexOf(next), 1);
    now = next.at;
    next.work();
  }
}

/** Shares of 1: of the limit that was used, and of the requests that were refused, between two moments in seconds. */
export function shares(
  arrivals: readonly Arrival[],
  perSecond: number,
  from: number,
  to: number,
): { used: number; refused: number } {
  const within = arrivals.filter(({ at }) => at >= from && at < to);
  const admitted = within.filter(({ isAdmitted }) => isAdmitted).length;
  return { used: admitted / (perSecond * (to - from)), refused: 1 - admitted / within.length };
}

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
