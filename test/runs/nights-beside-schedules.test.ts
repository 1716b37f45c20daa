import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { listNights } from '../../src/db/tables/nights.js';
import { countLastRuns } from '../../src/db/tables/run-counts.js';
import { previewRunRequests } from '../../src/db/tables/run-requests.js';
import { findVerifyTurns } from '../../src/db/tables/second-readings.js';
import { nightSweep } from '../../src/runs/nights.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { catalogueOf, NIGHT, ScheduledFleet } from './scheduled-fleet.js';

// Runs by the schedules of lists are not the night, and say nothing of how it goes.

const CATALOGUE = catalogueOf({ employees: null, departments: null, plans: null, shifts: '*/10 * * * *' });
const BEGAN = new Date('2036-06-05T02:00:00Z');
const COMPANIES = 4;

let database: TestDatabase;
let fleet: ScheduledFleet;
beforeAll(async () => {
  database = await testDatabase();
  fleet = await ScheduledFleet.open(database.url);
});
beforeEach(async () => {
  await emptyTables(fleet.db, 'muster.connections', 'muster.runs', 'muster.nights');
  await fleet.set('2036-06-04T12:00:30Z');
});
afterAll(async () => {
  await fleet.close();
  await database.close();
});

/** Companies before their place in the window of the night; each has had a run of `shifts` since it began. */
async function inTheNight() {
  await fleet.onboard(COMPANIES);
  const worker = fleet.worker(CATALOGUE);
  await worker.nights();
  await worker.lists();
  await fleet.db.prisma.connection.updateMany({ data: { nextSyncAt: new Date('2036-06-05T03:30:00Z') } });
  await fleet.set('2036-06-05T02:01:00Z');
  await worker.lists();
  await prove();
  return worker;
}

/** Every run that has not ended proves its lists, and inserts a record of each. */
async function prove(): Promise<void> {
  await fleet.db.pool.query(`
    WITH open AS (UPDATE muster.runs SET created_at = now() WHERE status = 'queued' RETURNING id)
    UPDATE muster.walks w SET verified = TRUE, inserted = 1 FROM open WHERE w.run_id = open.id`);
  await fleet.end();
}

async function countedNight() {
  const clock = { now: () => fleet.now, monotonic: () => fleet.now };
  await nightSweep({ db: fleet.db, catalogue: CATALOGUE, schedule: NIGHT, clock })();
  return (await listNights(fleet.db, { since: BEGAN }))[0];
}

test('a night counts the lists of the night, and changes of all runs', async () => {
  const worker = await inTheNight();
  const lists = COMPANIES * 3;
  expect(await countedNight()).toMatchObject({ due: COMPANIES, finished: 0, lists, verified: 0, inserted: COMPANIES });
  await fleet.set('2036-06-05T04:00:30Z');
  await worker.nights();
  await prove();
  expect(await countedNight()).toMatchObject({
    due: COMPANIES,
    finished: COMPANIES,
    lists,
    verified: lists,
    inserted: COMPANIES + lists,
  });
});

const verifyTurns = async () =>
  (await findVerifyTurns(fleet.db, { environment: 'test', share: 0.5, nightBeganAt: BEGAN })).length;

test('a verification waits for the nightly sync, and where there are no nights for any', async () => {
  const worker = await inTheNight();
  expect(await verifyTurns()).toBe(0);
  await fleet.set('2036-06-05T04:00:30Z');
  await worker.nights();
  await prove();
  expect(await verifyTurns()).toBe(COMPANIES / 2);
  await fleet.db.prisma.run.deleteMany({ where: { trigger: 'nightly' } });
  await fleet.db.prisma.connection.updateMany({ data: { nextSyncAt: null } });
  expect(await verifyTurns()).toBe(COMPANIES / 2);
});

test('a company whose night has failed stays one after a run of a list, and where there are no nights the last run decides', async () => {
  const [company] = await fleet.onboard(1);
  const made = { ...company!, mode: 'full', finishedAt: new Date(fleet.now) };
  await fleet.db.prisma.run.create({ data: { ...made, trigger: 'nightly', status: 'failed' } });
  await fleet.db.prisma.run.create({ data: { ...made, trigger: 'scheduled', status: 'succeeded' } });
  const failed = async () => ({
    counted: await countLastRuns(fleet.db.prisma),
    chosen: (await previewRunRequests(fleet.db, { lastRun: 'failed', sample: 1 })).count,
  });
  await fleet.db.prisma.connection.updateMany({ data: { nextSyncAt: new Date(fleet.now) } });
  expect(await failed()).toEqual({ counted: [{ status: 'failed', count: 1 }], chosen: 1 });
  await fleet.db.prisma.connection.updateMany({ data: { nextSyncAt: null } });
  expect(await failed()).toEqual({ counted: [{ status: 'succeeded', count: 1 }], chosen: 0 });
});
