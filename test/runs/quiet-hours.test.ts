import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { presentRun } from '../../src/api/runs/run-model.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { QuietHours } from '../../src/core/quiet-hours.js';
import { findOverdue } from '../../src/db/tables/overdue.js';
import { findClaimableRuns } from '../../src/db/tables/runs.js';
import { changeQuietHours, followQuietHours } from '../../src/runs/quiet-hours.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { hurriedClock } from '../support/hurried-clock.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { windowAt } from '../support/quiet.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

const { employees, departments } = ENTRIES;
const ENDPOINTS = endpointsOf({ employees, departments });
const HOUR = 3_600_000;

/** The window lies an hour ahead, whatever the hour of the day; a test enters it by turning the clock of the worker. */
const began = systemClock.now();
const { windows, opens, ends } = windowAt(began + HOUR, 2 * HOUR);
const quiet = new QuietHours({ windows, timezone: 'UTC' });
let turned = 0;
const clock = { ...hurriedClock, now: () => systemClock.now() + turned };

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let company: CompanyKey;
/** Called before each request for a page, with its number among those of the test. */
let onRequest: (n: number) => unknown = () => {};
let asked = 0;
let next = 0;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 16 }, (_, n) => ({ name: `C${n}`, employees: 60, departments: 8 })),
  });
  database = await testDatabase();
  harness = syncHarness(database.db, sandbox, ENDPOINTS, {
    clock,
    quiet,
    beforeRequest: async ({ path }) => {
      if (path.endsWith('/employees')) await onRequest(++asked);
    },
  });
});

afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});

beforeEach(async () => {
  asked = 0;
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
  sandbox.requests.clear();
});

afterEach(() => {
  turned = 0;
  onRequest = () => {};
});

const enter = () => (turned = opens - systemClock.now());
const leave = () => (turned = ends - systemClock.now());
/** The requests of the API. */
const requests = () => sandbox.requests.all('/api/').length;

/** The end of the quiet hours comes for the database, whose time a test cannot turn. */
async function wake(id: string): Promise<void> {
  leave();
  await database.db.pool.query('UPDATE muster.runs SET start_after = now() WHERE id = $1', [id]);
}

const rowOf = (id: string) => database.db.prisma.run.findUniqueOrThrow({ where: { id } });
const told = () => database.db.prisma.notification.count();
const ending = new Date(ends).toISOString();

describe('a run', () => {
  test('that is requested in quiet hours waits for their end', async () => {
    enter();
    const run = presentRun(await harness.runs.request({ company, trigger: 'manual' }));
    expect(run).toMatchObject({ status: 'queued', waits_for: 'quiet_hours', waits_until: ending, started_at: null });
    expect(run).not.toHaveProperty('retry_at');
    expect((await findClaimableRuns(database.db, { limit: 100 })).map(({ id }) => id)).not.toContain(run.id);
    // Another request does not start it before.
    expect(presentRun(await harness.runs.request({ company, trigger: 'manual' }))).toMatchObject({
      id: run.id,
      waits_until: ending,
    });
    await wake(run.id);
    expect(await harness.work(run.id)).toMatchObject({ status: 'succeeded', attempts: 0 });
  });

  test('that was queued before them asks nothing once they have begun, and has not started', async () => {
    const { id } = await harness.runs.request({ company, trigger: 'manual' });
    enter();
    expect(await harness.work(id)).toMatchObject({ status: 'queued', attempts: 0, started_at: null, waits_until: ending });
    expect(requests()).toBe(0);
  });

  test('that is under way stops at the next page, costs nothing, and goes on from its checkpoint', async () => {
    const { id } = await harness.runs.request({ company, trigger: 'manual' });
    onRequest = (n) => n === 3 && enter();
    const before = await told();
    const stopped = await harness.work(id);
    expect(stopped).toMatchObject({ status: 'queued', attempts: 0, waits_for: 'quiet_hours', waits_until: ending });
    expect(stopped.error).toBeUndefined();
    expect(stopped.started_at).not.toBeNull();
    const { pages } = stopped.walks[0]!;
    expect(pages).toBeGreaterThan(0);
    // The company's own record and at most the pages before.
    const sent = requests();
    expect(sent).toBeLessThanOrEqual(1 + 2);
    expect(await harness.work(id)).toEqual(stopped);
    expect(requests()).toBe(sent);

    await wake(id);
    const run = await harness.work(id);
    expect(run).toMatchObject({
      status: 'succeeded',
      attempts: 0,
      walks: [{ verified: true, inserted: 60 }, { verified: true }],
    });
    expect(await mirrored(database.db, 'employees', company.companyId)).toEqual(
      upstream(sandbox, 'employees', company.companyId),
    );
    expect(await told()).toBe(before);
    expect(await rowOf(id)).toMatchObject({ deaths: 0 });
  });

  test('of a verification stops, too', async () => {
    await harness.sync(company);
    asked = 0;
    sandbox.requests.clear();
    onRequest = (n) => n === 2 && enter();
    const stopped = await harness.verify(company);
    expect(stopped).toMatchObject({ kind: 'verify', status: 'queued', attempts: 0, waits_until: ending });
    expect(requests()).toBe(1);
    await wake(stopped.id);
    expect(await harness.work(stopped.id)).toMatchObject({ status: 'succeeded' });
  });

  test('that fails waits for its retry, and from there until they end', async () => {
    sandbox.faults.add({ kind: 'status', status: 503 }, { path: '/departments', times: Infinity });
    const { id } = await harness.runs.request({ company, trigger: 'manual' });
    // The first retry comes after ten seconds.
    turned = opens - systemClock.now() - 5_000;
    const failed = await harness.work(id);
    sandbox.faults.clear();
    expect(failed).toMatchObject({ status: 'queued', attempts: 1, error: { code: 'walks_failed' } });
    expect(failed).not.toHaveProperty('waits_until');
    // A worker that starts does not hasten the retry, which the service may have asked to wait.
    await followQuietHours(database.db, { quiet, clock });
    await changeQuietHours(database.db, { company, quietHours: null }, { quiet, clock });
    expect(await harness.read(id)).toEqual(failed);

    enter();
    await database.db.pool.query('UPDATE muster.runs SET start_after = now() WHERE id = $1', [id]);
    expect(await harness.work(id)).toMatchObject({
      status: 'queued',
      attempts: 1,
      waits_until: ending,
      retry_at: ending,
      error: { code: 'walks_failed' },
    });
  });

  test('keeps what it waits for from the schedule, which replaces only a run that failed', async () => {
    const { id } = await harness.runs.request({ company, trigger: 'manual' });
    onRequest = (n) => n === 3 && enter();
    await harness.work(id);
    await database.db.pool.query('UPDATE muster.connections SET next_sync_at = now() WHERE company_id = $1', [company.companyId]);
    const nextSyncOf = () => new Date(ends + HOUR);
    await harness.runs.requestAll([company], { trigger: 'nightly', mode: 'full', nextSyncOf });
    expect(await harness.read(id)).toMatchObject({ status: 'queued', waits_until: ending });
    expect(await database.db.prisma.run.count({ where: company })).toBe(1);
  });
});

describe('a run of one list that waits for their end', () => {
  const listsOf = async (id: string) => (await harness.read(id)).walks.map(({ resource }) => resource);

  test('gets the lists of the night that it stands for', async () => {
    enter();
    const { id } = await harness.runs.request({ company, trigger: 'manual', resources: ['departments'] });
    await database.db.pool.query('UPDATE muster.connections SET next_sync_at = now() WHERE company_id = $1', [company.companyId]);
    await harness.runs.requestAll([company], { trigger: 'nightly', mode: 'full', nextSyncOf: () => new Date(ends + HOUR) });
    expect(await database.db.prisma.run.count({ where: company })).toBe(1);
    expect(await listsOf(id)).toEqual(['employees', 'departments']);
    await wake(id);
    expect(await harness.work(id)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }, { verified: true }] });
  });

  test('gets those that are requested for many, and those that a person names', async () => {
    enter();
    const { id } = await harness.runs.request({ company, trigger: 'manual', resources: ['departments'] });
    await harness.runs.request({ company, trigger: 'manual', resources: ['departments'] });
    expect(await listsOf(id)).toEqual(['departments']);
    await harness.runs.requestMany({ companies: [company] });
    expect(await listsOf(id)).toEqual(['employees', 'departments']);
  });

  test('by its own schedule becomes the run of the person who names more, and stays one for those who name none', async () => {
    enter();
    const { id } = await harness.runs.request({ company, trigger: 'manual', resources: ['departments'] });
    await database.db.prisma.run.update({ where: { id }, data: { trigger: 'scheduled', mode: 'full' } });
    await harness.runs.request({ company, trigger: 'manual', resources: ['departments'] });
    expect(await rowOf(id)).toMatchObject({ trigger: 'scheduled', mode: 'full' });
    await harness.runs.request({ company, trigger: 'manual' });
    expect(await rowOf(id)).toMatchObject({ trigger: 'manual', mode: 'resume' });
    expect(await listsOf(id)).toEqual(['employees', 'departments']);
  });

  test('keeps the place of a walk that has begun', async () => {
    const { id } = await harness.runs.request({ company, trigger: 'manual', resources: ['employees'] });
    onRequest = (n) => n === 3 && enter();
    const { pages } = (await harness.work(id)).walks[0]!;
    await harness.runs.request({ company, trigger: 'manual' });
    expect((await harness.read(id)).walks).toMatchObject([
      { resource: 'employees', pages },
      { resource: 'departments', pages: 0 },
    ]);
  });
});

describe('a change of the quiet hours', () => {
  test('of a company while a run under way is put off does not leave it to the former end', async () => {
    const { id } = await harness.runs.request({ company, trigger: 'manual' });
    onRequest = async (n) => {
      if (n !== 3) return;
      await changeQuietHours(database.db, { company, quietHours: 'none' }, { quiet, clock });
      enter();
    };
    expect(await harness.work(id)).not.toHaveProperty('waits_until');
    expect(await harness.work(id)).toMatchObject({ status: 'succeeded', attempts: 0 });
  });

  test('of a company reaches the run that waits', async () => {
    enter();
    const { id } = await harness.runs.request({ company, trigger: 'manual' });
    await changeQuietHours(database.db, { company, quietHours: 'none' }, { quiet, clock });
    expect(await harness.read(id)).not.toHaveProperty('waits_until');
    expect(await harness.work(id)).toMatchObject({ status: 'succeeded' });
    const own = windowAt(clock.now(), HOUR);
    await changeQuietHours(database.db, { company, quietHours: own.text }, { quiet, clock });
    const again = presentRun(await harness.runs.request({ company, trigger: 'manual' }));
    expect(again).toMatchObject({ waits_for: 'quiet_hours', waits_until: new Date(own.ends).toISOString() });
    await changeQuietHours(database.db, { company, quietHours: null }, { quiet, clock });
    expect(await harness.read(again.id)).toMatchObject({ waits_until: ending });
  });

  test('of the installation reaches the runs of companies without their own', async () => {
    enter();
    const { id } = await harness.runs.request({ company, trigger: 'manual' });
    const later = windowAt(began + HOUR, 3 * HOUR);
    await followQuietHours(database.db, { quiet: new QuietHours({ windows: later.windows, timezone: 'UTC' }), clock });
    expect(await harness.read(id)).toMatchObject({ waits_until: new Date(later.ends).toISOString() });
    await followQuietHours(database.db, { quiet: new QuietHours({ windows: [], timezone: 'UTC' }), clock });
    expect(await harness.read(id)).not.toHaveProperty('waits_until');
  });
});

test('is nothing that waits for a worker', async () => {
  enter();
  const { id } = await harness.runs.request({ company, trigger: 'manual' });
  await database.db.pool.query(`UPDATE muster.runs SET created_at = now() - interval '1 hour' WHERE id = $1`, [id]);
  const { pool } = database.db;
  const overdue = await findOverdue({ query: (text: string, values: unknown[]) => pool.query(text, values) } as never, {
    environments: ['test'],
  });
  expect(overdue.map(({ what }) => what)).not.toContain('waiting_runs');
});
