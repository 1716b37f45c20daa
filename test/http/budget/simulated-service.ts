import { pino } from 'pino';
import { isMusterError } from '../../../src/core/errors.js';
import { type SetLimits, SharedRequestBudget } from '../../../src/http/budget/shared-request-budget.js';
import { RateLimiter, type RateLimitOptions } from '../../../src/sandbox/rate-limiter.js';
import { VirtualClock, VirtualTime } from '../../support/virtual-time.js';
import { MemoryBudget } from './memory-budget.js';

export interface Simulation {
  readonly seed: number;
  readonly seconds: number;
  /** The service's limit from so many seconds on, the first one from 0. */
  readonly limits: readonly { readonly from: number; readonly options: RateLimitOptions }[];
  readonly workers?: number;
  /** Companies of a worker, each with so many requests to make at any time. */
  readonly companies?: number;
  readonly pages?: number;
  readonly latencyMs?: number;
  /** Mean of how much later than it was admitted a request leaves. */
  readonly jitterMs?: number;
  /** Share of requests that leave later by STALL_MS, which is more than a schedule leaves free. */
  readonly stalls?: number;
  /** Pauses of the machine in a minute: all of it, or one worker, stands still for 20 to 500 ms. */
  readonly freezes?: number;
  readonly set?: SetLimits;
}

export interface Arrival {
  /** Seconds. */
  readonly at: number;
  readonly company: string;
  readonly isAdmitted: boolean;
}

export interface Outcome {
  readonly arrivals: readonly Arrival[];
  /** The most requests that were under way at once, of all workers together. */
  readonly mostAtOnce: number;
  readonly budget: MemoryBudget;
}

const STALL_MS = 80;
/** A timer wakes so much late at most. */
const TIMER_MS = 1.2;
/** Where the service's full seconds begin, and how far the database's clock is ahead: nothing may rest on them. */
const SERVICE_MS = 370;
const DATABASE_MS = 7_123;
const logger = pino({ level: 'silent' });

/**
 * Workers that always have something to ask, the rows that they share and a service that counts, in simulated time: how often is it refused,
 * and how much of the limit is used? The workers are Muster's own budgets.
 */
export async function simulate({
  seed,
  seconds,
  limits,
  workers = 2,
  companies = 4,
  pages = 16,
  latencyMs = 5,
  jitterMs = 3,
  stalls = 0,
  freezes = 0,
  set = {},
}: Simulation): Promise<Outcome> {
  const random = randomOf(seed);
  const exponential = (mean: number) => -Math.log(1 - random()) * mean;
  const time = new VirtualTime();
  const arrivals: Arrival[] = [];
  const services = limits.map(({ from, options }) => ({ from: from * 1_000, limiter: new RateLimiter(options) }));
  const budget = new MemoryBudget(() => Date.UTC(2026, 0, 15) + DATABASE_MS + time.now);
  const frozen = freezesOf(random, { seconds, workers, freezes });
  let atOnce = 0;
  let mostAtOnce = 0;

  /** To the database or back: mostly a millisecond, seldom many. */
  const trip = () => 0.4 + exponential(random() < 0.01 ? 15 : 0.4);

  function openWorker(worker: number) {
    const awake = (at: number) => frozen.reduce((later, freeze) => (freeze.stops(worker, later) ? freeze.to : later), at);
    const arrive = (ms: number) => time.reach(awake(time.now + ms), time.now + ms);
    const clock = new VirtualClock(time, (at) => awake(at + random() * TIMER_MS));
    const store = budget.store(
      () => time.reach(time.now + trip()),
      () => arrive(trip()),
    );
    const shared = new SharedRequestBudget({
      store,
      clock,
      logger,
      environment: 'test',
      worker: `worker ${worker}`,
      limits: set,
    });
    return { shared, awake, arrive };
  }

  async function ask({ shared, awake, arrive }: ReturnType<typeof openWorker>, company: string): Promise<void> {
    for (;;) {
      const permit = await shared.admit({ company, urgent: false });
      mostAtOnce = Math.max(mostAtOnce, (atOnce += 1));
      const way = (latencyMs / 2) * (0.5 + random());
      const late = exponential(jitterMs) + (random() < stalls ? STALL_MS : 0);
      await time.reach(awake(time.now + late) + way);
      const { limiter } = services.findLast(({ from }) => from <= time.now)!;
      const { isAdmitted, headers } = limiter.admit(time.now + SERVICE_MS);
      arrivals.push({ at: time.now / 1_000, company, isAdmitted });
      await arrive(way);
      atOnce -= 1;
      permit.answered({ status: isAdmitted ? 200 : 429, headers });
      if (!isAdmitted) await arrive(1_000 * Number(headers['retry-after'] ?? 0.5));
    }
  }

  for (let worker = 0; worker < workers; worker += 1) {
    time.plan(random() * 300, () => {
      const opened = openWorker(worker);
      for (let requester = 0; requester < companies * pages; requester += 1) {
        // No request is rejected in these scenarios: one that is ends the run.
        ask(opened, `company ${requester % companies} of ${worker}`).catch((error: unknown) =>
          time.plan(time.now, () => fail(error)),
        );
      }
    });
  }
  await time.run(seconds * 1_000);
  return { arrivals, mostAtOnce, budget };
}

function fail(error: unknown): never {
  throw isMusterError(error) ? new Error(`A request was rejected: ${error.code}`, { cause: error }) : error;
}

interface Freeze {
  /** Milliseconds. */
  readonly to: number;
  stops(worker: number, at: number): boolean;
}

/** In the order of their ends: what is put off by one may be put off by the next. */
function freezesOf(random: () => number, { seconds, workers, freezes }: { seconds: number; workers: number; freezes: number }) {
  const count = Math.round((freezes * seconds) / 60);
  const all = Array.from({ length: count }, (): Freeze => {
    const from = random() * seconds * 1_000;
    const to = from + 20 + random() * 480;
    // One in three stops the whole machine.
    const only = random() < 1 / 3 ? undefined : Math.floor(random() * workers);
    return { to, stops: (worker, at) => at >= from && at < to && (only ?? worker) === worker };
  });
  return all.toSorted((one, other) => one.to - other.to);
}

/** Shares of 1: of the limit that was used, and of the requests that were refused, between two moments in seconds. */
export function shares(
  { arrivals }: Pick<Outcome, 'arrivals'>,
  perSecond: number,
  from: number,
  to: number,
): { used: number; refused: number } {
  const within = arrivals.filter(({ at }) => at >= from && at < to);
  const admitted = within.filter(({ isAdmitted }) => isAdmitted).length;
  return { used: admitted / (perSecond * (to - from)), refused: 1 - admitted / within.length };
}

/** The most requests that arrived in any second. */
export function mostInSecond({ arrivals }: Pick<Outcome, 'arrivals'>): number {
  let first = 0;
  return arrivals.reduce((most, { at }, index) => {
    while (arrivals[first]!.at <= at - 1) first += 1;
    return Math.max(most, index - first + 1);
  }, 0);
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
