import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type BudgetStore, databaseBudget } from '../../../src/http/budget/budget-store.js';
import { emptyTables } from '../../support/empty-tables.js';
import { type ManualDatabase, manualDatabase } from '../../support/manual-database.js';
import { MemoryBudget } from './memory-budget.js';

// The same cases on PostgreSQL and on the budget in memory that simulations use, so that the two cannot drift apart. Both have a clock that
// stands still between the statements.

const BEGIN = Date.UTC(2026, 0, 15);

let database: ManualDatabase;
let now = BEGIN;
beforeAll(async () => {
  const columns = ['next_slot_at', 'changed_at', 'resumes_at'].map((column) => ({ table: 'muster.request_budgets', column }));
  database = await manualDatabase([...columns, { table: 'muster.request_shares', column: 'seen_at' }]);
});
afterAll(() => database.close());

async function setClock(next: number): Promise<void> {
  now = next;
  await database.setClock(next);
}
const passes = (seconds: number) => setClock(now + seconds * 1_000);

async function emptyStores() {
  await setClock(BEGIN);
  await emptyTables(database.db, 'muster.request_budgets', 'muster.request_shares');
  return { postgres: databaseBudget(database.db, 'test'), memory: new MemoryBudget(() => now).store() };
}

const UNKNOWN = { rate: null, fallback: null, seeking: false, progress: 0 };
const HELD = { rate: 20, fallback: 19, seeking: false, progress: 1.5 };
const share = (worker: string, held = 0) => ({ worker, held, wanted: 3, waiting: 2, used: 1, refused: 0 });

describe.each(['postgres', 'memory'] as const)('a budget in %s', (kind) => {
  let store: BudgetStore;
  beforeEach(async () => {
    store = (await emptyStores())[kind];
  });

  test('is added once, and nothing is known of it', async () => {
    expect(await store.read()).toBeUndefined();
    await store.add();
    await store.rememberAtOnce(9);
    await store.add();
    const zero = { elapsed: 0, paused: 0, pause: 0, lead: 0 };
    expect(await store.read()).toEqual({ version: 0, ...UNKNOWN, announced: null, atOnce: 9, ...zero });
  });

  test('leases slots one behind the other, by the version alone', async () => {
    await store.add();
    const request = { version: 0, slots: 4, interval: 0.25 };
    expect(await store.lease({ ...request, version: 1 })).toBeUndefined();
    expect(await store.lease(request)).toEqual({ startsAt: now, now, progress: 1 });
    expect(await store.lease(request)).toEqual({ startsAt: now + 1_000, now, progress: 2 });
    expect(await store.read()).toMatchObject({ lead: 2, progress: 2 });
    await passes(5);
    expect(await store.lease(request)).toEqual({ startsAt: now, now, progress: 3 });
  });

  test('leases no slot far ahead after its clock jumped back, save behind a pause', async () => {
    await store.add();
    await setClock(BEGIN - 3_600_000);
    const request = { version: 0, slots: 1, interval: 1 };
    expect(await store.lease(request)).toMatchObject({ startsAt: BEGIN });
    await setClock(BEGIN + 3_600_000);
    await store.lease(request);
    await setClock(BEGIN + 1_800_000);
    expect(await store.lease(request)).toMatchObject({ startsAt: now + 70_000 });
    await store.pause(600);
    expect(await store.lease({ ...request, version: 1 })).toMatchObject({ startsAt: now + 600_000 });
  });

  test('is changed by one of two that learn of the same version', async () => {
    await store.add();
    await passes(2);
    expect(await store.change({ version: 0, ...HELD, pause: 0.5 })).toBe(true);
    expect(await store.change({ version: 0, ...HELD, rate: 1, pause: 9 })).toBe(false);
    await passes(0.25);
    const times = { elapsed: 0.25, paused: 0.5, pause: 0.25, lead: 0.25 };
    expect(await store.read()).toEqual({ version: 1, ...HELD, announced: null, atOnce: null, ...times });
  });

  test.each([
    ['no sooner than the slots end that others may still use', 0.3, 0.1, 0.3],
    ['but not for slots that lie further ahead than workers lease', 3, 0.1, 0.4],
    ['and not before the pause is over', 0.3, 2, 2],
  ])('begins again after a change: %s', async (_, leased, pause, lead) => {
    await store.add();
    await store.lease({ version: 0, slots: 1, interval: leased });
    await store.change({ version: 0, ...HELD, pause });
    expect((await store.read())!.lead).toBeCloseTo(lead, 6);
  });

  test('is paused by the longest pause that anybody asked for', async () => {
    await store.add();
    await store.pause(10);
    await store.pause(10);
    await store.pause(3);
    expect(await store.read()).toMatchObject({ version: 1, pause: 10, lead: 10 });
    await passes(4);
    await store.pause(7);
    expect(await store.read()).toMatchObject({ version: 2, pause: 7, paused: 7, elapsed: 0 });
    await setClock(BEGIN - 60_000);
    expect(await store.read()).toMatchObject({ pause: 7, elapsed: 0 });
  });

  test('notes an announced limit that is news', async () => {
    await store.announce(5);
    expect(await store.read()).toBeUndefined();
    await store.add();
    for (const limit of [5, 5, 6]) await store.announce(limit);
    expect(await store.read()).toMatchObject({ version: 2, announced: 6 });
  });

  test('gives the shares of workers that live to the worker that divides, one after the other', async () => {
    await store.add();
    await store.divide(({ shares, now: none }) => (expect([shares, none]).toEqual([[], 0]), share('c', 1)));
    await passes(3);
    await store.report(share('a', 2));
    await passes(2.999);
    const living = [share('a', 2), share('c', 1)].map(({ worker, wanted, held }) => ({ worker, wanted, held }));
    const seen: unknown[] = [];
    await store.divide((given) => (seen.push(given), share('a', 4)));
    expect(seen).toEqual([{ shares: living, now: now / 1_000 }]);
    await passes(0.001);
    await store.divide(({ shares }) => (expect(shares).toEqual([{ worker: 'a', wanted: 3, held: 4 }]), share('b', 5)));

    const held: number[][] = [];
    const more = (worker: string) =>
      store.divide(({ shares }) => (held.push(shares.map((each) => each.held)), share(worker, shares.length)));
    await Promise.all([more('d'), more('e'), more('f')]);
    expect(held.map((each) => each.length)).toEqual([2, 3, 4]);
  });
});

type Command = (store: BudgetStore) => Promise<unknown>;

const ms = (max: number) => fc.integer({ min: 0, max }).map((each) => each / 1_000);
const version = fc.integer({ min: 0, max: 12 });
const workers = fc.constantFrom('a', 'b', 'c');
const commands: fc.Arbitrary<{ readonly passed: number; readonly command: Command }> = fc.record({
  passed: fc.oneof(ms(900), ms(8_000), fc.constantFrom(3_700, -30, -300)),
  command: fc.oneof(
    { weight: 3, arbitrary: fc.tuple(version, fc.integer({ min: 1, max: 9 }), ms(4_000)).map(([...given]) => leasing(...given)) },
    { weight: 3, arbitrary: fc.tuple(version, ms(50_000), ms(3_000), fc.boolean()).map(([...given]) => changing(...given)) },
    ms(20_000).map((pause) => (store: BudgetStore) => store.pause(pause)),
    fc.integer({ min: 1, max: 3 }).map((limit) => (store: BudgetStore) => store.announce(limit)),
    fc.tuple(workers, fc.nat(9)).map(
      ([worker, held]) =>
        (store: BudgetStore) =>
          store.report(share(worker, held)),
    ),
    workers.map((worker) => (store: BudgetStore) => store.divide(({ shares }) => share(worker, shares.length))),
    fc.constant((store: BudgetStore) => store.removeOldShares()),
  ),
});

/** `behind`: of the version that is known. */
const versionOf = async (store: BudgetStore, behind: number) => (await store.read())!.version - (behind > 8 ? 1 : 0);

function leasing(behind: number, slots: number, interval: number): Command {
  return async (store) => store.lease({ version: await versionOf(store, behind), slots, interval });
}

function changing(behind: number, rate: number, pause: number, seeking: boolean): Command {
  return async (store) =>
    store.change({ version: await versionOf(store, behind), rate, fallback: null, seeking, progress: 0, pause });
}

/** What PostgreSQL rounds to microseconds, and what comes from sums in another order. */
function rounded(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (_, each: unknown) => (typeof each === 'number' ? Number(each.toFixed(3)) : each)),
  );
}

test('whatever is done in whatever order, both budgets answer the same', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(commands, { minLength: 5, maxLength: 20 }), async (given) => {
      const { postgres, memory } = await emptyStores();
      const stores = [postgres, memory];
      for (const store of stores) await store.add();
      for (const { passed, command } of given) {
        await passes(passed);
        const [one, other] = await Promise.all(stores.map(async (store) => [await command(store), await store.read()]));
        expect(rounded(other)).toEqual(rounded(one));
      }
      const seen: unknown[] = [];
      for (const store of stores) await store.divide((shares) => (seen.push(shares), share('looks')));
      expect(seen[1]).toEqual(seen[0]);
    }),
    { numRuns: 20 },
  );
});
