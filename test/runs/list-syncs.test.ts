import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { findDueSyncs } from '../../src/db/tables/connections.js';
import { findOverdue } from '../../src/db/tables/overdue.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { catalogueOf, NIGHT, ScheduledFleet, type StartedRun } from './scheduled-fleet.js';

const CATALOGUE = catalogueOf({ employees: null, shifts: '*/10 * * * *', plans: '0 3 * * 0', departments: null });
const MINUTE = 60_000;

let database: TestDatabase;
let fleet: ScheduledFleet;
beforeAll(async () => {
  database = await testDatabase();
  fleet = await ScheduledFleet.open(database.url);
});
beforeEach(async () => {
  await emptyTables(fleet.db, 'muster.connections', 'muster.runs', 'muster.run_requests', 'muster.run_request_lists');
  await fleet.set('2036-06-04T12:00:30Z');
});
afterAll(async () => {
  await fleet.close();
  await database.close();
});

/** Lets time pass in steps of so many minutes, and ends every run after each. Returns what was started. */
async function live(minutes: number, worker: ReturnType<ScheduledFleet['worker']>, step = 1): Promise<StartedRun[]> {
  const started: StartedRun[] = [];
  for (let minute = 0; minute < minutes; minute += step) {
    await fleet.pass(step);
    await worker.nights();
    await worker.lists();
    started.push(...(await fleet.queued()));
    await fleet.end();
  }
  return started;
}

const one = async (state = {}): Promise<CompanyKey> => (await fleet.onboard(1, state))[0]!;
const lists = (runs: readonly { resources: readonly string[] }[]) => runs.map(({ resources }) => resources.join(' '));
const minuteOf = ({ at }: StartedRun) => new Date(at).getUTCMinutes();

/** The company's lists are planned, and `shifts` is due. */
async function dueCompany(state = {}) {
  const company = await one(state);
  const worker = fleet.worker(CATALOGUE);
  await worker.nights();
  await worker.lists();
  expect(await fleet.queued()).toEqual([]);
  await fleet.pass(10);
  return { company, worker };
}

/** Makes all of the company's lists due, or its night. */
const listsAreDue = (company: CompanyKey) =>
  fleet.db.prisma.scheduledList.updateMany({ where: company, data: { nextSyncAt: new Date(fleet.now - MINUTE) } });
const nightIsDue = (company: CompanyKey) =>
  fleet.db.prisma.connection.updateMany({ where: company, data: { nextSyncAt: new Date(fleet.now - MINUTE) } });
const waitToRetry = (id: string) =>
  fleet.db.prisma.run.update({ where: { id }, data: { startAfter: new Date(fleet.now + 30 * MINUTE) } });

test('each company is walked by the schedule of the list, once in ten minutes, at its place in them, with nothing but the list', async () => {
  const companies = await fleet.onboard(30);
  const worker = fleet.worker(CATALOGUE);
  await worker.lists();
  const started = await live(30, worker);
  expect(new Set(lists(started))).toEqual(new Set(['shifts']));
  expect(new Set(started.map(({ trigger }) => trigger))).toEqual(new Set(['scheduled']));
  for (const { companyId } of companies) {
    const minutes = started.filter((run) => run.companyId === companyId).map((run) => minuteOf(run) % 10);
    expect(minutes).toHaveLength(3);
    expect(new Set(minutes).size).toBe(1);
  }
  expect(new Set(started.map((run) => minuteOf(run) % 10)).size).toBeGreaterThan(6);
});

test('the night walks the other lists, and a list that is due on Sundays comes on a Sunday', async () => {
  const company = await one();
  await fleet.set('2036-06-07T01:59:30Z'); // a Saturday
  const worker = fleet.worker(CATALOGUE);
  await worker.nights(); // plans this night, in whose first minutes the company's turn may be
  const started = await live(125, worker, 5);
  expect(lists(started.filter(({ trigger }) => trigger === 'nightly'))).toEqual(['employees departments']);
  expect(lists(started.filter(({ trigger }) => trigger === 'scheduled'))).toEqual(Array.from({ length: 12 }, () => 'shifts'));
  const { plans } = await fleet.timesOf(company);
  await fleet.pass(plans! - 1);
  expect(new Date(fleet.now + MINUTE).toISOString()).toMatch(/^2036-06-08T0[34]/);
  await fleet.db.prisma.connection.updateMany({ where: company, data: { nextSyncAt: new Date('2036-06-09T02:00:00Z') } });
  expect(lists(await live(2, worker)).join(' ')).toContain('plans');
  expect((await fleet.timesOf(company))['plans']).toBeGreaterThan(7 * 1_440 - 3);
});

test('several lists that are due at once are one run, in the order of the catalogue', async () => {
  const { company, worker } = await dueCompany();
  await listsAreDue(company);
  await worker.lists();
  expect(lists(await fleet.queued())).toEqual(['shifts plans']);
});

test('a list waits while a run of its company is queued or running, and what it missed is one run', async () => {
  const { company, worker } = await dueCompany();
  const { id } = await fleet.runs(CATALOGUE).request({ company, trigger: 'manual' });
  await fleet.pass(55);
  await worker.lists();
  const times = [{ ...company, resource: 'shifts', at: new Date(fleet.now + MINUTE) }];
  const asked = { trigger: 'scheduled', mode: 'full', listTimesOf: () => times } as const;
  expect(await fleet.runs(CATALOGUE).requestAll([company], asked)).toEqual({ missed: [company] });
  expect((await fleet.queued()).map((run) => run.id)).toEqual([id]);
  expect((await fleet.timesOf(company))['shifts']).toBeLessThan(0);
  await fleet.end();
  await worker.lists();
  await worker.lists();
  expect(lists(await fleet.queued())).toEqual(['shifts']);
  expect((await fleet.timesOf(company))['shifts']).toBeGreaterThan(0);
});

test.each<[string, object]>([
  ['paused', { paused: true }],
  ['to authorize again', { reauthorizationReason: 'token_refused' }],
])('a company that is %s is not started, and is due as soon as it may be synced', async (_state, state) => {
  const { company, worker } = await dueCompany(state);
  await worker.lists();
  expect(await fleet.queued()).toEqual([]);
  await fleet.db.prisma.connection.updateMany({ where: company, data: { paused: false, reauthorizationReason: null } });
  await worker.lists();
  expect(lists(await fleet.queued())).toEqual(['shifts']);
});

describe('beside other runs', () => {
  test('the night waits for the run of a list, comes next, and is not lost', async () => {
    const { company, worker } = await dueCompany();
    await worker.lists();
    await nightIsDue(company);
    await worker.nights();
    // A sweep that looked before the run was made.
    const nextSyncOf = () => new Date(fleet.now + 1_440 * MINUTE);
    const { missed } = await fleet.runs(CATALOGUE).requestAll([company], { trigger: 'nightly', mode: 'full', nextSyncOf });
    expect(missed).toEqual([company]);
    expect(lists(await fleet.queued())).toEqual(['shifts']);
    await fleet.end();
    await fleet.pass(10);
    await worker.lists();
    expect(await fleet.queued()).toEqual([]);
    await worker.nights();
    expect(lists(await fleet.queued())).toEqual(['employees departments']);
  });

  test('the night waits for such a run that waits for the end of quiet hours, and is not missed meanwhile', async () => {
    const { company, worker } = await dueCompany();
    await worker.lists();
    const [run] = await fleet.queued();
    const until = new Date(fleet.now + 240 * MINUTE);
    await fleet.db.prisma.run.update({ where: { id: run!.id }, data: { startAfter: until, quietUntil: until } });
    await nightIsDue(company);
    await fleet.pass(30);
    expect(await findDueSyncs(fleet.db, { limit: 10 })).toEqual([]);
    await worker.nights();
    expect((await fleet.queued()).map(({ id }) => id)).toEqual([run!.id]);
    expect(await findOverdue(fleet.db.pool, { environments: ['test'] })).toEqual([]);
    await fleet.end();
    expect(await findOverdue(fleet.db.pool, { environments: ['test'] })).toMatchObject([
      { what: 'missed_lists', count: 1 },
      { what: 'missed_syncs', count: 1 },
    ]);
    await worker.nights();
    expect(lists(await fleet.queued())).toEqual(['employees departments']);
  });

  test('the night replaces a run that waits to retry, and walks what was left of it', async () => {
    const { company, worker } = await dueCompany();
    await listsAreDue(company);
    await worker.lists();
    const [run] = await fleet.queued();
    await fleet.db.prisma.walk.updateMany({ where: { runId: run!.id, resource: 'shifts' }, data: { status: 'succeeded' } });
    await waitToRetry(run!.id);
    await listsAreDue(company);
    await worker.lists();
    expect((await fleet.queued()).map(({ id }) => id)).toEqual([run!.id]);
    await nightIsDue(company);
    await worker.nights();
    expect(lists(await fleet.queued())).toEqual(['employees plans departments']);
    expect(await fleet.db.prisma.run.findUnique({ where: { id: run!.id } })).toMatchObject({ status: 'failed' });
  });

  test('a request for many follows the run of a list, and a person gets the run that there is', async () => {
    const { company, worker } = await dueCompany();
    await worker.lists();
    const [run] = await fleet.queued();
    const runs = fleet.runs(CATALOGUE);
    expect(await runs.requestMany({ companies: [company] })).toMatchObject({ count: 1 });
    await runs.makeRequested({ limit: 10 });
    expect((await runs.request({ company, trigger: 'manual' })).id).toBe(run!.id);
    expect(await fleet.queued()).toHaveLength(1);
    await fleet.end();
    await runs.makeRequested({ limit: 10 });
    expect(lists(await fleet.queued())).toEqual(['employees shifts plans departments']);
  });

  test('a request for many replaces such a run that waits to retry', async () => {
    const { company, worker } = await dueCompany();
    await worker.lists();
    await waitToRetry((await fleet.queued())[0]!.id);
    await fleet.runs(CATALOGUE).requestMany({ companies: [company], resources: ['employees'] });
    expect(lists(await fleet.queued())).toEqual(['employees shifts']);
  });

  test('a request that names no list is for every list', async () => {
    const company = await one();
    await fleet.runs(CATALOGUE).request({ company, trigger: 'onboarding' });
    expect(lists(await fleet.queued())).toEqual(['employees shifts plans departments']);
  });
});

test('workers that look at once start each list once', async () => {
  await fleet.onboard(120);
  await fleet.worker(CATALOGUE).lists();
  await fleet.pass(10);
  const workers = Array.from({ length: 4 }, () => fleet.worker(CATALOGUE));
  await Promise.all(workers.map(({ lists: sweep }) => sweep()));
  await workers[0]!.lists();
  const queued = await fleet.queued();
  expect(queued).toHaveLength(120);
  expect(new Set(queued.map(({ companyId }) => companyId)).size).toBe(120);
});

describe('a catalogue that has changed is followed at the next start', () => {
  test('another schedule, none any more, and one that is new', async () => {
    const company = await one();
    await fleet.worker(CATALOGUE).lists();
    const before = await fleet.timesOf(company);
    expect(Object.keys(before)).toEqual(['plans', 'shifts']);
    const changed = { employees: '0 0 1 * *', shifts: '*/10 * * * *', plans: null, departments: null };
    await fleet.worker(catalogueOf(changed)).lists();
    const after = await fleet.timesOf(company);
    expect(Object.keys(after)).toEqual(['employees', 'shifts']);
    expect(after['shifts']).toBe(before['shifts']);
    await fleet.worker(catalogueOf({ employees: null, shifts: '0 0 * * *' })).lists();
    expect((await fleet.timesOf(company))['shifts']).toBeGreaterThan(600);
  });

  test('what is due already is not put off', async () => {
    const { company } = await dueCompany();
    await fleet.worker(catalogueOf({ employees: null, shifts: '0 0 1 1 *' })).lists();
    expect(lists(await fleet.queued())).toEqual(['shifts']);
    expect((await fleet.timesOf(company))['shifts']).toBeGreaterThan(100_000);
  });

  test('where every list has a schedule there is no night, and the first list without one brings it back', async () => {
    const company = await one();
    await fleet.worker(CATALOGUE).nights();
    const nextSyncAt = async () => (await fleet.db.prisma.connection.findFirstOrThrow({ where: company })).nextSyncAt;
    expect(await nextSyncAt()).not.toBeNull();
    const all = catalogueOf({ employees: '0 * * * *' });
    await fleet.worker(all).nights();
    expect(await nextSyncAt()).toBeNull();
    await fleet.runs(all).request({ company, trigger: 'manual' });
    expect(await nextSyncAt()).toBeNull();
    await fleet.end();
    await fleet.pass(1_440);
    await fleet.worker(all).nights();
    expect(await fleet.queued()).toEqual([]);
    await fleet.worker(CATALOGUE).nights();
    expect(await nextSyncAt()).not.toBeNull();
  });

  test('a company that is new to a running worker is planned, and a removed one leaves nothing', async () => {
    const worker = fleet.worker(CATALOGUE);
    await worker.lists();
    const company = await one();
    await worker.lists();
    expect(Object.keys(await fleet.timesOf(company))).toEqual(['plans', 'shifts']);
    await fleet.db.prisma.connection.deleteMany({ where: company });
    expect(await fleet.timesOf(company)).toEqual({});
  });
});

test('by the clock of the time zone, in summer and in winter, and not twice when the clocks are set back', async () => {
  const catalogue = catalogueOf({ employees: null, shifts: '0 */4 * * *' });
  const schedule = { ...NIGHT, timezone: 'Europe/Copenhagen', spreadMinutes: 0, cron: '0 12 1 1 *' };
  const hours = async (from: string) => {
    await emptyTables(fleet.db, 'muster.connections', 'muster.runs');
    await fleet.set(from);
    await fleet.onboard(1);
    const worker = fleet.worker(catalogue, schedule);
    const started: StartedRun[] = [];
    for (let step = 0; step < 24; step += 1) {
      await worker.lists();
      started.push(...(await fleet.queued()));
      await fleet.end();
      await fleet.pass(60);
    }
    return started.map(({ at }) => new Date(at).toISOString().slice(11, 16));
  };
  expect(await hours('2036-10-25T21:00:00Z')).toEqual(['22:00', '03:00', '07:00', '11:00', '15:00', '19:00']);
  expect(await hours('2036-03-29T22:00:00Z')).toEqual(['23:00', '02:00', '06:00', '10:00', '14:00', '18:00']);
});
