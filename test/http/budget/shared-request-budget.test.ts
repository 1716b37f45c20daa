import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { readBudgetUse } from '../../../src/db/tables/request-budgets.js';
import type { Permit } from '../../../src/http/budget/request-budget.js';
import { type SetLimits, SharedRequestBudget } from '../../../src/http/budget/shared-request-budget.js';
import { RateLimiter, type RateLimitOptions } from '../../../src/sandbox/rate-limiter.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';
import { waitFor } from '../../support/wait-for.js';
import { type Demand, measuredBudgets } from './measured-budgets.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

const closers: (() => Promise<void>)[] = [];
beforeEach(async () => {
  await database.db.pool.query('TRUNCATE muster.request_budgets, muster.request_shares');
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

function open(worker: string, limits: SetLimits = {}): SharedRequestBudget {
  const logger = pino({ level: 'silent' });
  const budget = new SharedRequestBudget({ db: database.db, clock: systemClock, logger, environment: 'test', worker, limits });
  closers.push(() => budget.close());
  return budget;
}

function measure(demand: Partial<Demand>, options: RateLimitOptions) {
  const limiter = new RateLimiter(options);
  const usual = { workers: 2, companies: 2, pages: 8, latencyMs: 6, limiter: () => limiter };
  const measured = measuredBudgets(database.db, { ...usual, ...demand });
  closers.push(() => measured.stop());
  return measured;
}

const UNLIMITED = { kind: 'log', perSecond: 1e9 } as const;
const ANYBODY = { company: 'a', urgent: false };
const answer = (permit: Permit, status = 200, headers: Record<string, string> = {}) => permit.answered({ status, headers });

/** The answer comes in the same moment. */
async function ask(budget: SharedRequestBudget, status = 200, headers: Record<string, string> = {}): Promise<number> {
  answer(await budget.admit(ANYBODY), status, headers);
  return performance.now();
}

describe('requests a second that are set', () => {
  test('are never exceeded by two workers together, and nearly reached', async () => {
    const { sent } = measure({ limits: { requestsPerSecond: 50 } }, UNLIMITED);
    await sleep(3_000);
    const first = sent[0]!.at;
    for (let from = first; from < first + 2_500; from += 100) {
      const count = sent.filter(({ at }) => at >= from && at < from + 1_000).length;
      // Two that leave late and one that leaves early may meet in a second of a busy machine.
      expect(count).toBeLessThanOrEqual(53);
    }
    expect(sent.filter(({ at }) => at < first + 2_500).length).toBeGreaterThan(75);
    expect(new Set(sent.map(({ company }) => company)).size).toBe(4);
  });

  test('are spread evenly: no burst, also not at the beginning', async () => {
    const budget = open('a', { requestsPerSecond: 20 });
    const begun = performance.now();
    const times = await Promise.all(Array.from({ length: 8 }, () => ask(budget)));
    expect(times.at(-1)! - begun).toBeGreaterThan(300);
  });
});

describe('requests at once that are set', () => {
  test('one, and two workers: never two at once, and both have their turn', async () => {
    const measured = measure({ limits: { requestsAtOnce: 1 }, latencyMs: 10 }, UNLIMITED);
    await waitFor(() => new Set(measured.sent.map(({ company }) => company.at(-1))).size === 2, { what: 'both workers to ask' });
    await waitFor(() => measured.sent.length > 40, { what: 'some requests' });
    expect(measured.mostAtOnce).toBe(1);
  });

  test('five, and three workers: all of them, and no more', async () => {
    const measured = measure({ limits: { requestsAtOnce: 5 }, workers: 3, latencyMs: 20 }, UNLIMITED);
    await waitFor(() => measured.mostAtOnce === 5);
    await sleep(1_500);
    expect(measured.mostAtOnce).toBe(5);
  });

  test('a worker that died gives its share back', async () => {
    const begun = performance.now();
    await database.db.pool.query(
      `INSERT INTO muster.request_shares (environment, worker, wanted, held, waiting, used, refused, seen_at)
       VALUES ('test', 'dead', 2, 2, 0, 0, 0, now() - interval '4 seconds')`,
    );
    await ask(open('living', { requestsAtOnce: 2 }));
    expect(performance.now() - begun).toBeGreaterThan(1_000);
  });
});

describe('what a refusal leads to', () => {
  test('all workers hold a rate, and it is there after a restart', async () => {
    const { sent, stop } = measure({}, { kind: 'bucket', perSecond: 40, retryAfter: false });
    await sleep(3_500);
    await stop();
    const refused = sent.filter(({ isRefused }) => isRefused).length;
    expect(refused).toBeLessThan(40);
    const [row] = await database.db.prisma.requestBudget.findMany();
    expect(row?.rate).toBeGreaterThan(5);

    const budget = open('another');
    const begun = performance.now();
    const times = await Promise.all(Array.from({ length: 9 }, () => ask(budget)));
    expect(times.at(-1)! - begun).toBeGreaterThan((7 * 1_000) / Math.max(row!.rate! * 3, 1));
  });

  test('Retry-After keeps every worker away, be it seconds or a date, and 0 keeps nobody', async () => {
    const [one, other] = [open('one'), open('other')];
    await ask(one);
    await ask(other);
    // A date has no milliseconds: of four seconds, it is three or more.
    for (const retryAfter of [() => '3', () => new Date(Date.now() + 4_000).toUTCString()]) {
      const begun = performance.now();
      await ask(one, 429, { 'retry-after': retryAfter() });
      // A second may pass until another worker knows of it, and another one on a slow machine.
      await sleep(2_000);
      await ask(other);
      expect(performance.now() - begun).toBeGreaterThan(2_900);
    }
    const begun = performance.now();
    await ask(one, 429, { 'retry-after': '0' });
    await ask(one);
    expect(performance.now() - begun).toBeLessThan(2_000);
  });

  test('who waits for a service that wants to be left alone for long is told so, and for how long', async () => {
    const budget = open('a');
    await ask(budget, 429, { 'retry-after': '300' });
    const error = await Promise.resolve(budget.admit(ANYBODY)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'service_throttled', sent: false });
    expect((error as { retryAfterMs: number }).retryAfterMs / 1_000).toBeCloseTo(300, -1);
  });

  test('requests that were refused together teach once', async () => {
    const budget = open('a');
    const permits = await Promise.all([1, 2, 3, 4].map(async () => budget.admit(ANYBODY)));
    for (const permit of permits) answer(permit, 429);
    await waitFor(async () => (await database.db.prisma.requestBudget.findFirst())?.rate === 1);
    await sleep(100);
    expect((await database.db.prisma.requestBudget.findFirst())?.version).toBe(1);
  });
});

describe('what the headers tell', () => {
  test('a policy is held to without a refusal', async () => {
    const { sent } = measure({}, { kind: 'log', perSecond: 30, headers: true });
    await sleep(3_000);
    expect(sent.filter(({ isRefused }) => isRefused).length).toBeLessThan(12);
    expect((await database.db.prisma.requestBudget.findFirst())?.announced).toBe(30);
  });

  test('nothing left: nobody asks until the window ends', async () => {
    const budget = open('a');
    const begun = await ask(budget, 200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' });
    expect((await ask(budget)) - begun).toBeGreaterThan(900);
  });
});

test('what is asked of the service is counted, of all workers together', async () => {
  const [one, other] = [open('one'), open('other')];
  for (let n = 0; n < 5; n += 1) await ask(one);
  await ask(other, 429, { 'retry-after': '0' });
  const use = await waitFor(async () => {
    const [read] = await readBudgetUse(database.db);
    return read?.used === 6 && read;
  });
  expect(use).toMatchObject({ environment: 'test', used: 6, refused: 1, waiting: 0 });
});

test('a request that is given up leaves the queue, and its place to another', async () => {
  const budget = open('a', { requestsAtOnce: 1 });
  const permit = await budget.admit(ANYBODY);
  const given = new AbortController();
  const waiting = Promise.resolve(budget.admit(ANYBODY, given.signal));
  const next = Promise.resolve(budget.admit(ANYBODY));
  given.abort(new Error('given up'));
  await expect(waiting).rejects.toThrow('given up');
  answer(permit);
  answer(await next);
  await expect(Promise.resolve().then(() => budget.admit(ANYBODY, given.signal))).rejects.toThrow('given up');
});

test('whoever waits when it is closed is told, and nobody is let in any more', async () => {
  const budget = open('a', { requestsAtOnce: 1 });
  const permit = await budget.admit(ANYBODY);
  const told = Promise.resolve(budget.admit(ANYBODY)).catch((error: unknown) => error);
  await budget.close();
  expect(await told).toMatchObject({ code: 'stopping' });
  answer(permit);
  await expect(Promise.resolve().then(() => budget.admit(ANYBODY))).rejects.toMatchObject({ code: 'stopping' });
});

test('without a database nobody is let in, and whoever waits is told why', async () => {
  await database.db.pool.query('ALTER TABLE muster.request_budgets RENAME TO away');
  try {
    await expect(Promise.resolve(open('a').admit(ANYBODY))).rejects.toThrow('request_budgets');
  } finally {
    await database.db.pool.query('ALTER TABLE muster.away RENAME TO request_budgets');
  }
});
