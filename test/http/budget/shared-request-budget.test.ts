import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { readBudgetUse } from '../../../src/db/tables/request-budgets.js';
import { type BudgetStore, databaseBudget } from '../../../src/http/budget/budget-store.js';
import type { Permit } from '../../../src/http/budget/request-budget.js';
import { type SetLimits, SharedRequestBudget } from '../../../src/http/budget/shared-request-budget.js';
import type { RateLimitOptions } from '../../../src/sandbox/rate-limiter.js';
import { emptyTables } from '../../support/empty-tables.js';
import { type ManualDatabase, manualDatabase } from '../../support/manual-database.js';
import { VirtualClock, VirtualTime } from '../../support/virtual-time.js';
import { waitFor } from '../../support/wait-for.js';
import { MemoryBudget } from './memory-budget.js';
import { type Simulation, shares, simulate } from './simulated-service.js';

const logger = pino({ level: 'silent' });
const ANYBODY = { company: 'a', urgent: false };
const answer = (permit: Permit, status = 200, headers: Record<string, string> = {}) => permit.answered({ status, headers });

/** The answer comes in the same moment. */
async function ask(budget: SharedRequestBudget, status = 200, headers: Record<string, string> = {}): Promise<void> {
  answer(await budget.admit(ANYBODY), status, headers);
}

describe('in simulated time', () => {
  let time: VirtualTime;
  let clock: VirtualClock;
  let memory: MemoryBudget;
  beforeEach(() => {
    time = new VirtualTime();
    clock = new VirtualClock(time);
    memory = new MemoryBudget(() => clock.now());
  });

  function open(worker: string, limits: SetLimits = {}): SharedRequestBudget {
    return new SharedRequestBudget({ store: memory.store(), clock, logger, environment: 'test', worker, limits });
  }

  /** When it was admitted, in milliseconds. */
  async function asked(...given: Parameters<typeof ask>): Promise<number> {
    await time.complete(ask(...given));
    return time.now;
  }

  test('requests a second that are set are spread evenly: no burst, also not at the beginning', async () => {
    const budget = open('a', { requestsPerSecond: 20 });
    const times: number[] = [];
    await time.complete(Promise.all(Array.from({ length: 8 }, () => ask(budget).then(() => times.push(time.now)))));
    for (const [index, at] of times.slice(1).entries()) expect(at - times[index]!).toBeGreaterThan(50);
    expect(times.at(-1)! - times[0]!).toBeLessThan(450);
  });

  test('slots that a worker missed while it stood still are void: it makes up for none of them', async () => {
    clock = new VirtualClock(time, (at) => (at > 2_000 && at < 2_200 ? 2_200 : at));
    const budget = open('a', { requestsPerSecond: 20 });
    const times: number[] = [];
    await time.complete(Promise.all(Array.from({ length: 60 }, () => ask(budget).then(() => times.push(time.now)))));
    const gaps = times.slice(1).map((at, index) => at - times[index]!);
    expect(Math.max(...gaps)).toBeGreaterThan(150);
    expect(Math.min(...gaps)).toBeGreaterThan(35);
  });

  describe('what is set, by several workers', () => {
    const simulated = (set: SetLimits, more: Partial<Simulation> = {}) =>
      simulate({ seed: 1, seconds: 10, limits: [{ from: 0, options: { kind: 'bucket', perSecond: 1e9 } }], set, ...more });

    test('every company has the same share of the requests a second', async () => {
      const { arrivals } = await simulated({ requestsPerSecond: 50 }, { companies: 2 });
      for (const name of ['company 0 of 0', 'company 1 of 0', 'company 0 of 1', 'company 1 of 1']) {
        const share = arrivals.filter(({ company }) => company === name).length / arrivals.length;
        expect(share).toBeGreaterThan(0.2);
        expect(share).toBeLessThan(0.3);
      }
    });

    test('one request at once, and two workers: never two, and both have their turn', async () => {
      const { arrivals, mostAtOnce } = await simulated({ maxConcurrentRequests: 1 }, { companies: 1, seconds: 20 });
      expect(mostAtOnce).toBe(1);
      const first = arrivals.filter(({ company }) => company.endsWith('of 0')).length / arrivals.length;
      expect(first).toBeGreaterThan(0.3);
      expect(first).toBeLessThan(0.7);
    });

    test.each([1, 2, 3, 4, 5])('five requests at once, and three workers: all of them, and no more (seed %i)', async (seed) => {
      expect((await simulated({ maxConcurrentRequests: 5 }, { seed, workers: 3, latencyMs: 600, freezes: 60 })).mostAtOnce).toBe(
        5,
      );
    });

    test('a worker that died gives its share back, and not before', async () => {
      await memory.store().report({ worker: 'dead', wanted: 2, held: 2, waiting: 0, used: 0, refused: 0 });
      const at = await asked(open('living', { maxConcurrentRequests: 2 }));
      expect(at).toBeGreaterThanOrEqual(6_000);
      expect(at).toBeLessThan(6_500);
    });
  });

  test('all workers hold the rate that one of them was refused at', async () => {
    const options: RateLimitOptions = { kind: 'bucket', perSecond: 40, retryAfter: false };
    const outcome = await simulate({ seed: 1, seconds: 10, limits: [{ from: 0, options }] });
    expect(outcome.arrivals.filter(({ isAdmitted }) => !isAdmitted).length).toBeLessThan(20);
    expect(outcome.budget.row!.rate).toBeGreaterThan(25);
  });

  describe('Retry-After', () => {
    test.each([
      ['seconds', '3'],
      ['seconds with a fraction', '2.5'],
      ['an instant in seconds', String(Date.UTC(2026, 0, 15, 0, 0, 3) / 1_000)],
      ['an instant in milliseconds', String(Date.UTC(2026, 0, 15, 0, 0, 3))],
      // A date has no milliseconds, and neither has the virtual clock's beginning.
      ['a date', new Date(Date.UTC(2026, 0, 15, 0, 0, 3)).toUTCString()],
    ])('keeps every worker away: %s', async (_, retryAfter) => {
      const [one, other] = [open('one'), open('other')];
      await asked(one);
      await asked(other);
      expect(await asked(one, 429, { 'retry-after': retryAfter })).toBe(0);
      // The other one knows what it has read last for a second at most.
      await time.run(1_000);
      expect(await asked(other)).toBe(3_000);
    });

    test('of a 503 keeps every worker away, and teaches no rate', async () => {
      const [one, other] = [open('one'), open('other')];
      await asked(one, 503, { 'retry-after': '3' });
      expect(await asked(other)).toBe(3_000);
      expect(memory.row).toMatchObject({ version: 1, rate: null });
    });

    test('of nothing stops no request', async () => {
      const budget = open('one');
      await asked(budget, 429, { 'retry-after': '0' });
      expect(await asked(budget)).toBe(0);
    });

    test.each(['86400', new Date(Date.UTC(2099, 0, 1)).toUTCString()])(
      'of more than an hour is an hour: %s',
      async (retryAfter) => {
        const budget = open('a');
        await asked(budget, 429, { 'retry-after': retryAfter });
        await expect(asked(budget)).rejects.toMatchObject({ code: 'service_throttled', retryAfterMs: 3_600_000 });
      },
    );

    test('of minutes is reported to waiting callers, with the time that is left', async () => {
      const budget = open('a');
      await asked(budget, 429, { 'retry-after': '300' });
      await time.run(20_000);
      const refusal = { code: 'service_throttled', sent: false, retryAfterMs: 280_000 };
      await expect(asked(budget)).rejects.toMatchObject(refusal);
    });
  });

  test('requests that were refused together teach once', async () => {
    const budget = open('a');
    const permits = await time.complete(Promise.all([1, 2, 3, 4].map(async () => budget.admit(ANYBODY))));
    for (const permit of permits) answer(permit, 429);
    await time.run(5_000);
    expect(memory.row).toMatchObject({ version: 1, rate: 1 });
  });

  test('what was refused under a version that another worker has changed teaches nothing', async () => {
    const [one, other] = [open('one'), open('other')];
    const permits = await time.complete(Promise.all([one, other].map(async (budget) => budget.admit(ANYBODY))));
    for (const permit of permits) {
      answer(permit, 429);
      await time.run(100);
    }
    expect(memory.row).toMatchObject({ version: 1, rate: 1 });
  });

  describe('what the headers tell', () => {
    test('a policy is held to without a refusal', async () => {
      const options: RateLimitOptions = { kind: 'log', perSecond: 30, headers: true };
      const outcome = await simulate({ seed: 1, seconds: 10, limits: [{ from: 0, options }] });
      expect(outcome.budget.row).toMatchObject({ announced: 30, rate: null });
      expect(shares(outcome, 30, 3, 10)).toMatchObject({ refused: 0 });
    });

    test('nothing left: no request is sent until the window ends', async () => {
      const budget = open('a');
      await asked(budget, 200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' });
      expect(await asked(budget)).toBe(1_000);
    });
  });

  test('a request that is given up leaves the queue, and its place to another', async () => {
    const budget = open('a', { maxConcurrentRequests: 1 });
    const permit = await time.complete(Promise.resolve(budget.admit(ANYBODY)));
    const given = new AbortController();
    const waiting = Promise.resolve(budget.admit(ANYBODY, given.signal));
    const next = Promise.resolve(budget.admit(ANYBODY));
    given.abort(new Error('given up'));
    await expect(waiting).rejects.toThrow('given up');
    answer(permit);
    answer(await time.complete(next));
    await expect(Promise.resolve().then(() => budget.admit(ANYBODY, given.signal))).rejects.toThrow('given up');
  });

  test('waiting callers get an error when it is closed, and no request is admitted any more', async () => {
    const budget = open('a', { maxConcurrentRequests: 1 });
    const permit = await time.complete(Promise.resolve(budget.admit(ANYBODY)));
    const told = Promise.resolve(budget.admit(ANYBODY)).catch((error: unknown) => error);
    await time.complete(budget.close());
    expect(await told).toMatchObject({ code: 'stopping' });
    answer(permit);
    await expect(Promise.resolve().then(() => budget.admit(ANYBODY))).rejects.toMatchObject({ code: 'stopping' });
  });
});

describe('on PostgreSQL', () => {
  let database: ManualDatabase;
  beforeAll(async () => {
    database = await manualDatabase([{ table: 'muster.request_shares', column: 'seen_at' }]);
  });
  afterAll(() => database.close());

  const closers: (() => Promise<void>)[] = [];
  beforeEach(async () => {
    await emptyTables(database.db, 'muster.request_budgets', 'muster.request_shares');
  });
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });

  function open(worker: string, limits: SetLimits = {}, store = databaseBudget(database.db, 'test')): SharedRequestBudget {
    const budget = new SharedRequestBudget({ store, clock: systemClock, logger, environment: 'test', worker, limits });
    closers.push(() => budget.close());
    return budget;
  }

  test('a rate is there after a restart, and slots are leased by it', async () => {
    const first = open('a');
    await ask(first);
    await ask(first, 429, { 'retry-after': '0' });
    await first.close();
    const { rate, version } = await database.db.prisma.requestBudget.findFirstOrThrow();
    expect({ rate, version }).toEqual({ rate: 1, version: 1 });

    const leases: unknown[] = [];
    const store = databaseBudget(database.db, 'test');
    const told: BudgetStore = { ...store, lease: (request) => (leases.push(request), store.lease(request)) };
    await ask(open('another', {}, told));
    // Warming up, it leaves more room.
    expect(leases[0]).toEqual({ version: 1, slots: 1, interval: 1.15 });
  });

  test('a worker that died gives its share back', async () => {
    const store = databaseBudget(database.db, 'test');
    await store.report({ worker: 'dead', wanted: 2, held: 2, waiting: 0, used: 0, refused: 0 });
    const living = Promise.resolve(open('living', { maxConcurrentRequests: 2 }).admit(ANYBODY));
    let isAdmitted = false;
    void living.then(() => (isAdmitted = true));
    const shareOf = (worker: string) => database.db.prisma.requestShare.findFirst({ where: { worker } });
    await waitFor(() => shareOf('living'), { what: 'the living worker to say that it waits' });
    expect([isAdmitted, (await shareOf('living'))!.held]).toEqual([false, 0]);
    await database.setClock(database.now + 7_000);
    answer(await living);
  });

  test('what is asked of the service is counted, of all workers together', async () => {
    const [one, other] = [open('one'), open('other')];
    for (let n = 0; n < 5; n += 1) await ask(one);
    await ask(other, 429, { 'retry-after': '0' });
    const use = await waitFor(async () => {
      const [read] = await readBudgetUse(database.db);
      return read?.used === 6 && read.waiting === 0 && read;
    });
    expect(use).toMatchObject({ environment: 'test', used: 6, refused: 1 });
  });

  test('without its table no request is admitted, and waiting callers get the reason', async () => {
    await database.db.pool.query('ALTER TABLE muster.request_budgets RENAME TO away');
    try {
      await expect(Promise.resolve(open('a').admit(ANYBODY))).rejects.toThrow('request_budgets');
    } finally {
      await database.db.pool.query('ALTER TABLE muster.away RENAME TO request_budgets');
    }
  });
});
