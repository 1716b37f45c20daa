import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { systemClock as clock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { type Database, openDatabase } from '../../src/db/connection/database.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { sweeps } from '../../src/jobs/sweeps.js';
import { Runs } from '../../src/runs/runs.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { notQuiet } from '../support/quiet.js';

// A request for more companies than it makes the runs of itself: the others wait in the database for a worker's sweep.

const MANY = 700;
/** Runs that the request makes itself. */
const AT_ONCE = 250;
const REST = MANY - AT_ONCE;
/** More than one sweep takes. */
const VERY_MANY = 2_000;

let database: TestDatabase;
let dispatched: string[];
beforeAll(async () => {
  database = await testDatabase();
});
beforeEach(() => {
  dispatched = [];
});
afterEach(() =>
  emptyTables(
    database.db,
    'muster.connections',
    'muster.run_requests',
    'muster.run_request_lists',
    'muster.lists',
    'muster.runs',
  ),
);
afterAll(() => database.close());

/** What a process has. */
function openRuns(db: Database = database.db): Runs {
  const schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 };
  const dispatcher = { dispatch: async (runs: readonly { id: string }[]) => void dispatched.push(...runs.map(({ id }) => id)) };
  return new Runs({ db, catalogue: loadCatalogue(), quiet: notQuiet, schedule, clock, dispatcher });
}

const newCompanies = (count: number) =>
  database.db.pool.query(
    `INSERT INTO muster.connections (environment, company_id)
     SELECT CASE WHEN n % 2 = 0 THEN 'test' ELSE 'production' END, gen_random_uuid() FROM generate_series(1, $1::int) n`,
    [count],
  );

const countRuns = () => database.db.prisma.run.count();
const countWaiting = () => database.db.prisma.runRequest.count();

async function oneWaiting(): Promise<CompanyKey> {
  return (await database.db.prisma.runRequest.findFirstOrThrow({ orderBy: { companyId: 'desc' } })) as CompanyKey;
}

/** One turn of a worker's sweep. */
async function sweep(): Promise<void> {
  const all = sweeps({ db: database.db, runs: openRuns() } as unknown as Parameters<typeof sweeps>[0]);
  await all.find(({ name }) => name === 'requested-runs')!.run();
}

/** So many turns as all that waits may take. */
async function sweepAll(): Promise<void> {
  for (let turns = 0; turns < VERY_MANY / 1_000 && (await countWaiting()) > 0; turns += 1) await sweep();
}

/** Statements that `work` sends, by whatever client. */
async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  const { query } = pg.Client.prototype;
  let sent = 0;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    sent += 1;
    return Reflect.apply(query as (...all: unknown[]) => unknown, this, args);
  } as typeof query;
  await work().finally(() => {
    pg.Client.prototype.query = query;
  });
  return sent;
}

test('what the request costs does not grow with the number of companies, and each of them gets one run', async () => {
  const runs = openRuns();
  await newCompanies(AT_ONCE);
  expect((await runs.requestMany({})).count).toBe(AT_ONCE);
  expect([await countRuns(), await countWaiting()]).toEqual([AT_ONCE, 0]);
  await database.db.pool.query('TRUNCATE muster.runs CASCADE');
  const few = await statementsOf(() => runs.requestMany({}));

  await database.db.pool.query('TRUNCATE muster.runs CASCADE');
  await newCompanies(VERY_MANY - AT_ONCE);
  let queued = 0;
  const many = await statementsOf(async () => {
    queued = (await runs.requestMany({})).count;
  });
  expect(queued).toBe(VERY_MANY);
  // A company that never had a next sync gets it with its run: one statement a transaction of fifty.
  expect(many).toBeLessThanOrEqual(few + AT_ONCE / 50);
  expect([await countRuns(), await countWaiting()]).toEqual([AT_ONCE, VERY_MANY - AT_ONCE]);

  await sweepAll();
  const { rows } = await database.db.pool.query(
    `SELECT count(*)::int AS runs, count(DISTINCT company_id)::int AS companies, array_agg(DISTINCT concat_ws(' ', trigger, mode, status)) AS kinds,
       (SELECT count(*)::int FROM muster.walks) AS walks FROM muster.runs`,
  );
  expect(rows).toEqual([{ runs: VERY_MANY, companies: VERY_MANY, kinds: ['resync resume queued'], walks: 2 * VERY_MANY }]);
  expect(await countWaiting()).toBe(0);
});

test('the request outlives the process that took it, and workers that sweep at once make each run once', async () => {
  await newCompanies(MANY);
  const api = openDatabase({ url: database.url });
  expect((await openRuns(api).requestMany({})).count).toBe(MANY);
  await api.close();
  dispatched = [];
  await Promise.all([1, 2, 3].map(() => sweepAll()));
  await sweepAll();
  expect([await countRuns(), await countWaiting()]).toEqual([MANY, 0]);
  expect([dispatched.length, new Set(dispatched).size]).toEqual([REST, REST]);
});

test('a second request under way tells of as many companies, and adds none twice', async () => {
  await newCompanies(MANY);
  const runs = openRuns();
  expect((await runs.requestMany({})).count).toBe(MANY);
  const before = await countWaiting();
  expect((await runs.requestMany({ environment: 'test' })).count).toBe(MANY / 2);
  expect(await countWaiting()).toBeLessThanOrEqual(before);
  await sweepAll();
  expect([await countRuns(), await countWaiting()]).toEqual([MANY, 0]);
});

test('only those whose last run failed are asked, of the environment that was named', async () => {
  await newCompanies(MANY);
  await database.db.pool.query(`
    INSERT INTO muster.runs (environment, company_id, trigger, mode, status, finished_at)
    SELECT environment, company_id, 'nightly', 'full', CASE WHEN night = 2 AND hashtext(company_id::text) % 2 = 0 THEN 'failed' ELSE 'succeeded' END, now()
    FROM generate_series(1, 2) night, muster.connections ORDER BY night`);
  const failed = await database.db.prisma.run.findMany({ where: { status: 'failed', environment: 'test' } });
  expect((await openRuns().requestMany({ status: 'failed', environment: 'test' })).count).toBe(failed.length);
  await sweepAll();
  const asked = await database.db.prisma.run.findMany({ where: { trigger: 'resync' } });
  const ids = (of: readonly { companyId: string }[]) => of.map(({ companyId }) => companyId).toSorted();
  expect(ids(asked)).toEqual(ids(failed));
});

test.each<[string, (company: CompanyKey) => Promise<unknown>]>([
  ['was paused', (company) => database.db.prisma.connection.updateMany({ where: company, data: { paused: true } })],
  [
    'must authorize again',
    (company) => database.db.prisma.connection.updateMany({ where: company, data: { reauthorizationReason: 'token_refused' } }),
  ],
  ['was removed', (company) => inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'test', role: 'admin' }))],
])('a company that %s between the request and its run gets none, and its request is gone', async (_what, happens) => {
  await newCompanies(AT_ONCE + 20);
  const runs = openRuns();
  await runs.requestMany({});
  const company = await oneWaiting();
  await happens(company);
  await sweepAll();
  expect([await countRuns(), await countWaiting()]).toEqual([AT_ONCE + 19, 0]);
  expect(await database.db.prisma.run.count({ where: company })).toBe(0);
  // Nothing of the request is left that would begin later, by itself.
  await database.db.prisma.connection.updateMany({ data: { paused: false, reauthorizationReason: null } });
  await sweepAll();
  expect(await countRuns()).toBe(AT_ONCE + 19);
});

test('a company that is being removed while the sweep looks is left to the next', async () => {
  await newCompanies(AT_ONCE + 2);
  const runs = openRuns();
  await runs.requestMany({});
  const company = await oneWaiting();
  await inTransaction(database.db, async (tx) => {
    await removeCompany(tx, company, { name: 'test', role: 'admin' });
    await sweep();
    expect([await countRuns(), await countWaiting()]).toEqual([AT_ONCE + 1, 1]);
  });
  await sweep();
  expect([await countRuns(), await countWaiting()]).toEqual([AT_ONCE + 1, 0]);
});

test('a company that was synced by itself meanwhile keeps the run that it has', async () => {
  await newCompanies(AT_ONCE + 2);
  const runs = openRuns();
  await runs.requestMany({});
  const company = await oneWaiting();
  const { id } = await runs.request({ company, trigger: 'manual', mode: 'full' });
  await sweepAll();
  expect(await database.db.prisma.run.findMany({ where: company })).toMatchObject([{ id, trigger: 'manual' }]);
  expect(await countWaiting()).toBe(0);
});

test('a request of some lists waits with its lists, and a process that dies loses none of them', async () => {
  await newCompanies(MANY);
  const process = openRuns();
  expect((await process.requestMany({ resources: ['departments'] })).count).toBe(MANY);
  expect([await countRuns(), await countWaiting()]).toEqual([AT_ONCE, 0]);
  expect(await database.db.prisma.runRequestList.count()).toBe(REST);
  await sweep();
  expect([await countRuns(), await database.db.prisma.runRequestList.count()]).toEqual([MANY, 0]);
  expect(await database.db.prisma.walk.groupBy({ by: ['resource'], _count: true })).toEqual([
    { resource: 'departments', _count: MANY },
  ]);
});

test('several waiting requests of a company are one run with the lists of all', async () => {
  await newCompanies(3);
  const [some, all, gone] = await database.db.prisma.connection.findMany();
  const waiting = (company: CompanyKey, resource: string) =>
    database.db.prisma.runRequestList.create({
      data: { environment: company.environment, companyId: company.companyId, resource },
    });
  await waiting(some as CompanyKey, 'departments');
  await waiting(some as CompanyKey, 'left_the_catalogue');
  await waiting(all as CompanyKey, 'departments');
  await database.db.prisma.runRequest.create({ data: { environment: all!.environment, companyId: all!.companyId } });
  await waiting(gone as CompanyKey, 'left_the_catalogue');
  await sweep();
  const walks = async ({ companyId }: { companyId: string }) =>
    (await database.db.prisma.walk.findMany({ where: { companyId }, orderBy: { position: 'asc' } })).map(
      ({ resource }) => resource,
    );
  expect([await walks(some!), await walks(all!), await walks(gone!)]).toEqual([
    ['departments'],
    ['employees', 'departments'],
    [],
  ]);
  expect([await countRuns(), await countWaiting(), await database.db.prisma.runRequestList.count()]).toEqual([2, 0, 0]);
});
