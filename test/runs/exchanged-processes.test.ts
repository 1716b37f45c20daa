import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { catalogueOf, NIGHT, ScheduledFleet } from './scheduled-fleet.js';

// A process with the next catalogue has started, and one with the former still sweeps: processes are exchanged one by one.

let database: TestDatabase;
let fleet: ScheduledFleet;
beforeAll(async () => {
  database = await testDatabase();
  fleet = await ScheduledFleet.open(database.url);
});
beforeEach(async () => {
  await emptyTables(fleet.db, 'muster.connections', 'muster.runs');
  await fleet.set('2036-06-04T12:00:30Z');
});
afterAll(async () => {
  await fleet.close();
  await database.close();
});

type Worker = ReturnType<ScheduledFleet['worker']>;
async function sweep({ nights, lists }: Worker): Promise<void> {
  await nights();
  await lists();
}
const one = async (): Promise<CompanyKey> => (await fleet.onboard(1))[0]!;
const nextSyncOf = async (company: CompanyKey) =>
  (await fleet.db.prisma.connection.findFirstOrThrow({ where: company })).nextSyncAt;
const scheduledOf = async (company: CompanyKey) => Object.keys(await fleet.timesOf(company));

/** Both sweep, the former first; then the former again, which ends. */
async function exchange(former: Worker, next: Worker): Promise<void> {
  await sweep(former);
  await sweep(next);
  await sweep(former);
}

test('a night that the former process has planned stops no list of a catalogue without nights, and is taken back', async () => {
  const company = await one();
  const next = fleet.worker(catalogueOf({ employees: '0 * * * *', shifts: '*/10 * * * *' }));
  await exchange(fleet.worker(catalogueOf({ employees: null, shifts: '*/10 * * * *' })), next);
  await fleet.db.prisma.connection.updateMany({ data: { nextSyncAt: new Date(fleet.now) } });
  await fleet.db.prisma.scheduledList.updateMany({ data: { nextSyncAt: new Date(fleet.now) } });
  await sweep(next);
  expect((await fleet.queued()).map(({ resources }) => resources)).toEqual([['employees', 'shifts']]);
  await fleet.pass(5);
  await sweep(next);
  expect(await nextSyncOf(company)).toBeNull();
});

test('a company that the former process has planned gets the lists that are new', async () => {
  const former = fleet.worker(catalogueOf({ employees: null, shifts: '*/10 * * * *' }));
  const next = fleet.worker(catalogueOf({ employees: null, shifts: '*/10 * * * *', plans: '0 * * * *' }));
  await sweep(former);
  await sweep(next);
  const company = await one();
  await exchange(former, next);
  await fleet.pass(5);
  await sweep(next);
  expect(await scheduledOf(company)).toEqual(['plans', 'shifts']);
});

test('a time that the former process has set is moved to the schedule of the next', async () => {
  const company = await one();
  const former = fleet.worker(catalogueOf({ employees: null, shifts: '0 3 1 1 *' }), { ...NIGHT, cron: '0 2 1 1 *' });
  const next = fleet.worker(catalogueOf({ employees: null, shifts: '*/10 * * * *' }));
  await exchange(former, next);
  await fleet.db.prisma.connection.updateMany({ data: { nextSyncAt: new Date(fleet.now) } });
  await fleet.db.prisma.scheduledList.updateMany({ data: { nextSyncAt: new Date(fleet.now) } });
  await former.nights();
  await fleet.end();
  await former.lists();
  await fleet.end();
  expect((await fleet.timesOf(company))['shifts']).toBeGreaterThan(100_000);
  await fleet.pass(5);
  await sweep(next);
  expect((await fleet.timesOf(company))['shifts']).toBeLessThan(11);
  expect((await nextSyncOf(company))!.getTime() - fleet.now).toBeLessThan(86_400_000);
});

test('a process that started an hour ago undoes nothing of the next', async () => {
  const company = await one();
  const former = fleet.worker(catalogueOf({ employees: '0 * * * *', shifts: '*/10 * * * *' }));
  for (let minute = 0; minute <= 60; minute += 5) {
    await sweep(former);
    await fleet.pass(5);
  }
  await fleet.end();
  await sweep(fleet.worker(catalogueOf({ employees: null, plans: '0 0 1 1 *' })));
  await sweep(former);
  expect(await nextSyncOf(company)).not.toBeNull();
  expect(await scheduledOf(company)).toEqual(['plans']);
});
