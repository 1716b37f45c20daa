import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey, Environment } from '../../src/core/company.js';
import {
  claimNightExport,
  failNightExport,
  findDueNightExports,
  findLastExport,
  finishNightExport,
  MOST_ATTEMPTS,
  releaseNightExport,
  renewNightExport,
} from '../../src/db/tables/night-exports.js';
import { nightSweep } from '../../src/runs/nights.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { catalogueOf } from './scheduled-fleet.js';

const DAY_MS = 86_400_000;
/** The newest night began three hours ago, by the clock of the database, too. */
const NOW = Math.floor(Date.now() / 60_000) * 60_000;
const BEGAN = new Date(NOW - 3 * 3_600_000);
const NEXT = new Date(BEGAN.getTime() + DAY_MS);
const dayOf = (ago: number) => new Date(BEGAN.getTime() - ago * DAY_MS).toISOString().slice(0, 10);
const RESOURCES = ['employees'];
const WRITTEN = { output: '/exports/a', rows: 1, seq: 1 };

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());
beforeEach(() => emptyTables(database.db, 'muster.nights', 'muster.runs', 'muster.connections'));

/** A company whose nightly run was made for the newest night, and is in this state. */
async function company(
  state: 'to come' | 'queued' | 'running' | 'succeeded' | 'failed',
  { environment = 'test', ago = 0, ...more }: { environment?: Environment; ago?: number; paused?: boolean; reason?: string } = {},
): Promise<CompanyKey> {
  const key: CompanyKey = { environment, companyId: randomUUID() };
  const { prisma } = database.db;
  await prisma.connection.create({
    data: {
      ...key,
      paused: more.paused ?? false,
      reauthorizationReason: more.reason ?? null,
      nextSyncAt: state === 'to come' ? new Date(NOW + 60_000) : NEXT,
    },
  });
  if (state === 'to come') return key;
  const finishedAt = state === 'queued' || state === 'running' ? null : new Date(NOW);
  const createdAt = new Date(BEGAN.getTime() - ago * DAY_MS + 60_000);
  await prisma.run.create({ data: { ...key, trigger: 'nightly', mode: 'full', status: state, createdAt, finishedAt } });
  return key;
}

/** What is due once the nights have been counted, now or so many days later. */
async function due({
  daysLater = 0,
  resources = RESOURCES,
  catalogue = loadCatalogue(),
}: {
  daysLater?: number;
  resources?: string[];
  catalogue?: Catalogue;
} = {}) {
  const sweep = nightSweep({
    db: database.db,
    catalogue,
    schedule: { cron: `${BEGAN.getUTCMinutes()} ${BEGAN.getUTCHours()} * * *`, timezone: 'UTC', spreadMinutes: 120 },
    exports: { to: '/exports', format: 'parquet', resources },
    clock: { ...systemClock, now: () => NOW + daysLater * DAY_MS },
  });
  await sweep();
  return findDueNightExports(database.db, { resources, limit: 10 });
}

const exportOf = (ago = 0, environment: Environment = 'test') => ({
  night: dayOf(ago),
  environment,
  resource: 'employees',
  attempts: 0,
});

test('a night is exported once no run of it is to come or under way', async () => {
  const { companyId } = await company('to come');
  await company('succeeded');
  expect(await due()).toEqual([]);
  const { prisma } = database.db;
  await prisma.connection.updateMany({ where: { companyId }, data: { nextSyncAt: NEXT } });
  const run = await prisma.run.create({ data: { environment: 'test', companyId, trigger: 'nightly', mode: 'full' } });
  expect(await due()).toEqual([]);
  await prisma.run.update({ where: { id: run.id }, data: { status: 'running' } });
  expect(await due()).toEqual([]);
  await prisma.run.update({ where: { id: run.id }, data: { status: 'failed', finishedAt: new Date() } });
  expect(await due()).toEqual([exportOf()]);
  expect(await due({ resources: ['employees', 'departments'] })).toMatchObject([exportOf(), { resource: 'departments' }]);
});

test('companies that are paused or must authorize again are not waited for, nor is another environment', async () => {
  await company('succeeded');
  await company('queued', { paused: true });
  await company('to come', { reason: 'token_refused' });
  await company('running', { environment: 'production' });
  expect(await due()).toEqual([exportOf()]);
});

test('the next night ends the waiting, and a night in which nobody was due is not exported', async () => {
  await company('to come', { paused: true });
  expect(await due()).toEqual([]);
  await company('running');
  expect(await due()).toEqual([]);
  expect(await due({ daysLater: 1 })).toEqual([exportOf()]);
});

test('only the newest night that is over is due', async () => {
  await company('succeeded', { ago: 1 });
  expect(await due()).toEqual([exportOf(1)]);
  await company('succeeded');
  expect(await due()).toEqual([exportOf()]);
  expect(await claimNightExport(database.db, exportOf(1))).toBeUndefined();
});

test('one worker has an export, for as long as it says so', async () => {
  await company('succeeded');
  await due();
  const { db } = database;
  const claims = await Promise.all([1, 2, 3].map(() => claimNightExport(db, exportOf())));
  const claim = claims.find((each) => each !== undefined);
  expect(claims.filter((each) => each !== undefined)).toEqual([{ ...exportOf(), attempts: 1 }]);
  expect(await due()).toEqual([]);
  expect(await renewNightExport(db, claim!)).toBe(true);

  await db.pool.query('UPDATE muster.night_exports SET next_attempt_at = now()');
  const heir = await claimNightExport(db, exportOf());
  expect(heir).toMatchObject({ attempts: 2 });
  expect(await renewNightExport(db, claim!)).toBe(false);
  await finishNightExport(db, claim!, WRITTEN);
  await failNightExport(db, claim!, { error: { code: 'export_failed', message: 'late' }, delaySeconds: 0 });
  await releaseNightExport(db, claim!);
  expect(await findLastExport(db.prisma)).toMatchObject({ written: 0, waiting: 1, failed: 0 });

  await releaseNightExport(db, heir!);
  expect(await due()).toEqual([{ ...exportOf(), attempts: 1 }]);
  await finishNightExport(db, (await claimNightExport(db, exportOf()))!, WRITTEN);
  expect(await due()).toEqual([]);
  expect(await findLastExport(db.prisma, { environment: 'test' })).toMatchObject({
    night: dayOf(0),
    written: 1,
    waiting: 0,
    problem: null,
  });
  expect(await findLastExport(db.prisma, { environment: 'production' })).toBeUndefined();
});

test('attempts are limited, and the next night has its own', async () => {
  await company('succeeded');
  await due();
  const { db } = database;
  for (let n = 1; n <= MOST_ATTEMPTS; n += 1) {
    const claim = (await claimNightExport(db, exportOf()))!;
    expect(claim.attempts).toBe(n);
    await failNightExport(db, claim, { error: { code: 'export_failed', message: 'no room' }, delaySeconds: 0 });
  }
  expect(await due()).toEqual([]);
  expect(await findLastExport(db.prisma)).toMatchObject({ failed: 1, problem: 'no room', finishedAt: null });
  await company('succeeded', { ago: -1 });
  await db.prisma.connection.updateMany({ data: { nextSyncAt: new Date(NEXT.getTime() + DAY_MS) } });
  expect(await due({ daysLater: 1 })).toEqual([exportOf(-1)]);
});

test('where every list has a schedule of its own, a night is exported once the next one has begun, if a list was walked in it', async () => {
  const catalogue = catalogueOf({ employees: '0 * * * *' });
  const walked = async () => {
    const key: CompanyKey = { environment: 'test', companyId: randomUUID() };
    await database.db.prisma.connection.create({ data: key });
    const walk = { ...key, resource: 'employees', position: 0, status: 'succeeded', verified: true };
    const [createdAt, finishedAt] = [new Date(BEGAN.getTime() + 60_000), new Date(NOW)];
    const run = { ...key, trigger: 'scheduled', mode: 'full', status: 'succeeded', createdAt, finishedAt };
    await database.db.prisma.run.create({ data: { ...run, walks: { create: [walk] } } });
  };
  expect(await due({ catalogue, daysLater: 1 })).toEqual([]);
  await emptyTables(database.db, 'muster.nights');
  await walked();
  expect(await due({ catalogue })).toEqual([]);
  expect(await due({ catalogue, daysLater: 1 })).toEqual([exportOf()]);
});

test('a list with a schedule of its own is not among those that a night still has to read', async () => {
  await company('to come');
  const catalogue = catalogueOf({ employees: null, departments: null, plans: '0 3 * * 0' });
  await due({ catalogue });
  const [night] = await database.db.prisma.night.findMany({ where: { environment: 'test' }, orderBy: { night: 'desc' } });
  expect(night).toMatchObject({ due: 1, lists: 2, verified: 0 });
});
