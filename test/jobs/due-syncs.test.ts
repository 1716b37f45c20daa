import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { systemClock as clock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { followSchedule, nightlySyncs } from '../../src/runs/nightly-syncs.js';
import { Runs } from '../../src/runs/runs.js';
import { nextSyncsAfter, type Schedule } from '../../src/runs/schedule.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { notQuiet } from '../support/quiet.js';
import { waitFor } from '../support/wait-for.js';

// Yearly and half a year away, so that no occurrence comes while a test runs.
const month = ((new Date().getUTCMonth() + 6) % 12) + 1;
const OLD: Schedule = { cron: `0 2 10 ${month} *`, timezone: 'UTC', spreadMinutes: 120 };
const NEW: Schedule = { cron: `30 4 20 ${month} *`, timezone: 'Europe/Copenhagen', spreadMinutes: 60 };

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => emptyTables(database.db, 'muster.connections', 'muster.runs'));
afterAll(() => database.close());

/** Prisma ends a transaction after 5 s unless told otherwise. */
const PATIENT = { timeout: 80_000 };
const given = (schedule: Schedule, company: CompanyKey) => nextSyncsAfter(schedule, Date.now())(company);
const runsOf = (company: CompanyKey) => database.db.prisma.run.count({ where: company });

async function newCompany(
  nextSync: Date | Schedule,
  state: { paused?: boolean; reauthorizationReason?: string } = {},
): Promise<CompanyKey> {
  const company: CompanyKey = { environment: 'test', companyId: randomUUID() };
  const at = nextSync instanceof Date ? nextSync : given(nextSync, company);
  await database.db.prisma.connection.create({ data: { ...company, ...state, nextSyncAt: at } });
  return company;
}

async function nextSyncOf(company: CompanyKey): Promise<Date | null> {
  return (await database.db.prisma.connection.findUniqueOrThrow({ where: { environment_companyId: company } })).nextSyncAt;
}

/** The sweep as a process that has just started makes it. */
function started(schedule: Schedule): () => Promise<void> {
  const { db } = database;
  const runs = new Runs({
    db,
    catalogue: loadCatalogue(),
    quiet: notQuiet,
    schedule,
    clock,
    dispatcher: { dispatch: async () => {} },
  });
  return nightlySyncs({ db, runs, schedule, clock, logger: pino({ enabled: false }) });
}

test.each<[string, Parameters<typeof newCompany>[1]]>([
  ['active', {}],
  ['paused', { paused: true }],
  ['to authorize again', { reauthorizationReason: 'token_refused' }],
])('a changed schedule moves the next sync of a company that is %s, and starts none', async (_what, state) => {
  const company = await newCompany(OLD, state);
  await started(NEW)();
  expect(await nextSyncOf(company)).toEqual(given(NEW, company));
  expect(await runsOf(company)).toBe(0);
});

test.each<[string, Schedule]>([
  ['cron', { ...OLD, cron: NEW.cron }],
  ['time zone', { ...OLD, timezone: 'America/New_York' }],
  ['window', { ...OLD, spreadMinutes: 60 }],
])('so does another %s alone', async (_what, schedule) => {
  const company = await newCompany(OLD);
  await started(schedule)();
  expect(await nextSyncOf(company)).toEqual(given(schedule, company));
  expect(given(schedule, company)).not.toEqual(given(OLD, company));
});

test('what is due is not put off: it runs at once, or when the company may be synced again', async () => {
  const past = new Date(Date.now() - 60_000);
  const active = await newCompany(past);
  const paused = await newCompany(past, { paused: true });
  const turn = started(NEW);
  await turn();
  expect([await runsOf(active), await nextSyncOf(active)]).toEqual([1, given(NEW, active)]);
  expect([await runsOf(paused), await nextSyncOf(paused)]).toEqual([0, past]);
  await database.db.prisma.connection.updateMany({ where: paused, data: { paused: false } });
  await turn();
  expect([await runsOf(paused), await nextSyncOf(paused)]).toEqual([1, given(NEW, paused)]);
});

test('a company that somebody made due by hand is synced once', async () => {
  const company = await newCompany(OLD);
  // To the microsecond, which no Date holds.
  await database.db.pool.query(`UPDATE muster.connections SET next_sync_at = date_trunc('second', now()) - interval '123 us'`);
  const sweep = started(OLD);
  await sweep();
  expect(await nextSyncOf(company)).toEqual(given(OLD, company));
  expect(await runsOf(company)).toBe(1);
});

test('a sync that becomes due before it is moved is not put off', async () => {
  const company = await newCompany(OLD);
  const past = new Date(Date.now() - 1_000);
  let following: Promise<number> | undefined;
  await database.db.prisma.$transaction(async (tx) => {
    await tx.connection.updateMany({ where: company, data: { nextSyncAt: past } });
    following = followSchedule(database.db, NEW);
    await waitFor(async () => {
      const { rows } = await database.db.pool.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows.length === 1;
    });
  }, PATIENT);
  expect(await following).toBe(0);
  expect(await nextSyncOf(company)).toEqual(past);
});

test('the same schedule moves nothing, and only the first turn of a process looks', async () => {
  const company = await newCompany(OLD);
  expect(await followSchedule(database.db, OLD)).toBe(0);
  const turn = started(NEW);
  await turn();
  await database.db.prisma.connection.updateMany({ where: company, data: { nextSyncAt: given(OLD, company) } });
  await turn();
  expect(await nextSyncOf(company)).toEqual(given(OLD, company));
});

test('workers that start at once move each of many companies once', async () => {
  const companies = Array.from({ length: 1_200 }, (): CompanyKey => ({ environment: 'test', companyId: randomUUID() }));
  await database.db.prisma.connection.createMany({
    data: companies.map((company) => ({ ...company, nextSyncAt: given(OLD, company) })),
  });
  const moved = await Promise.all([1, 2, 3, 4].map(() => followSchedule(database.db, NEW)));
  expect(moved.reduce((sum, count) => sum + count)).toBe(companies.length);
  const rows = await database.db.prisma.connection.findMany();
  const next = new Map(rows.map(({ companyId, nextSyncAt: at }) => [companyId, at]));
  for (const company of companies) expect(next.get(company.companyId)).toEqual(given(NEW, company));
});
