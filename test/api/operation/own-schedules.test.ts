import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { measureMissingProofs } from '../../../src/db/tables/list-counts.js';
import { listProofs } from '../../../src/db/tables/list-proofs.js';
import { writeWarehouseSettings } from '../../../src/db/tables/warehouse-settings.js';
import { latenessOf } from '../../../src/runs/lateness.js';
import { addCompany, hoursAgo, sweepOf } from '../../runs/issue-world.js';
import { catalogueOf } from '../../runs/scheduled-fleet.js';
import { emptyTables } from '../../support/empty-tables.js';
import { notQuiet } from '../../support/quiet.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

/** `employees` is late after 25 minutes, `departments` after 182 hours, and `notes` after 26 hours. */
const catalogue = catalogueOf({ employees: '*/10 * * * *', departments: '0 3 * * 0', notes: null });
const RESOURCES = ['departments', 'employees', 'notes'];
const schedule = { cron: '* * * * *', timezone: 'UTC', spreadMinutes: 0 };
const staleAfterHours = latenessOf({ staleAfterHours: 26, schedule, quiet: notQuiet }, catalogue);
const MINUTE = 1 / 60;

let admin: AdminFixture;
beforeAll(async () => {
  // A night a minute: the proof of no list is as new as the newest of them.
  let passed = 0;
  const clock = { now: Date.now, monotonic: () => (passed += 2_000), sleep: async () => {} };
  admin = await startAdmin(undefined, { catalogue, schedule, staleAfterHours, clock });
  await writeWarehouseSettings(admin.db, { staleAfterHours });
});
beforeEach(() => emptyTables(admin.db, 'muster.connections', 'muster.lists', 'muster.runs', 'muster.issues', 'mirror.companies'));
afterAll(() => admin.stop());

/** A company whose lists were proved so long ago. */
async function company(hours: { employees: number; departments: number; notes: number }): Promise<CompanyKey> {
  const { employees, departments, notes } = hours;
  const lists = { employees: { provedHoursAgo: employees }, departments: { provedHoursAgo: departments } };
  const key = await addCompany(admin.db, { lists });
  await admin.db.prisma.list.create({ data: { ...key, resource: 'notes', lastVerifiedAt: hoursAgo(notes) } });
  return key;
}

/** Which lists of the company are late, for each of those that say so. */
async function late(key: CompanyKey): Promise<Record<string, readonly string[]>> {
  const path = `/api/companies/${key.environment}/${key.companyId}`;
  const { resources } = (await admin.call('GET', path)).json;
  const { rows } = await admin.db.pool.query<{ resource: string }>(
    'SELECT resource FROM warehouse.lists WHERE is_late ORDER BY 1',
  );
  const exported: string[] = [];
  const found: string[] = [];
  for (const resource of RESOURCES) {
    const [proof] = await listProofs(admin.db.pool, { resource });
    if (proof!.isLate) exported.push(resource);
    const { json } = await admin.call('GET', `/api/companies?resource=${resource}&proof=late`);
    if (json.total === 1) found.push(resource);
  }
  await sweepOf(admin.db, { staleAfterHours })();
  const issues = await admin.db.prisma.issue.findMany({
    where: { cause: 'list_late', status: 'ongoing' },
    orderBy: { resource: 'asc' },
  });
  const states = (resources as { resource: string; state: string }[]).filter(({ state }) => state === 'late');
  return {
    states: states.map(({ resource }) => resource).toSorted(),
    warehouse: rows.map(({ resource }) => resource),
    exported,
    found,
    issues: issues.map(({ resource }) => resource!),
  };
}
const everywhere = (...resources: string[]) => ({
  states: resources,
  warehouse: resources,
  exported: resources,
  found: resources,
  // The sweep of the tests knows two lists.
  issues: resources.filter((resource) => resource !== 'notes'),
});

test.each<[string, Parameters<typeof company>[0], readonly string[]]>([
  ['in time', { employees: 24 * MINUTE, departments: 181, notes: 25 }, []],
  ['late each by its own measure', { employees: 26 * MINUTE, departments: 183, notes: 27 }, RESOURCES],
  ['not late by the measure of another', { employees: 20 * MINUTE, departments: 100, notes: 27 }, ['notes']],
])('lists are %s, wherever it is said', async (_what, hours, resources) => {
  const key = await company(hours);
  expect(await late(key)).toEqual(everywhere(...resources));
  const { lists } = (await admin.call('GET', '/api/overview')).json;
  expect(lists).toMatchObject({ total: 3, late: resources.length, verified: 3 - resources.length });
  const counted = { resources: RESOURCES, staleAfterHours };
  expect(await measureMissingProofs(admin.db.pool, counted)).toMatchObject({ late: resources.length });
});

test('since when a list is late is said by its own measure', async () => {
  const { environment, companyId } = await company({ employees: 2, departments: 1, notes: 1 });
  const { resources } = (await admin.call('GET', `/api/companies/${environment}/${companyId}`)).json;
  const { since } = resources.find(({ resource }: { resource: string }) => resource === 'employees');
  expect((Date.now() - Date.parse(since)) / 60_000).toBeCloseTo(95, 0);
});

test('a process of the version before writes its one number, and the lists keep theirs', async () => {
  const key = await company({ employees: 26 * MINUTE, departments: 100, notes: 27 });
  await admin.db.pool.query('UPDATE muster.warehouse_settings SET stale_after_hours = 30');
  expect((await late(key))['warehouse']).toEqual(['employees']);
  await writeWarehouseSettings(admin.db, { staleAfterHours });
});

test('a list with a schedule counts for the night while it is on time, and lacks a proof while it is late', async () => {
  await company({ employees: 20 * MINUTE, departments: 100, notes: 20 * MINUTE });
  const night = async () => (await admin.call('GET', '/api/last-night')).json;
  expect(await night()).toMatchObject({ lists: { due: 3, proved: 2 }, lacking: [{ state: 'on_time', lists: 1 }] });
  expect((await admin.call('GET', '/api/unproved')).json.data).toMatchObject([{ resource: 'notes' }]);
  expect((await admin.call('GET', '/api/overview')).json.last_night.verified_lists).toBe(2);
  await admin.db.prisma.list.updateMany({ where: { resource: 'employees' }, data: { lastVerifiedAt: hoursAgo(1) } });
  expect(await night()).toMatchObject({ lists: { due: 3, proved: 1 } });
  expect((await admin.call('GET', '/api/unproved?resource=employees')).json.data).toMatchObject([{ state: 'late' }]);
});

test('a company shows when its lists come next, and the earliest of all', async () => {
  const key = await company({ employees: 0, departments: 0, notes: 0 });
  const path = `/api/companies/${key.environment}/${key.companyId}`;
  const [night, soon, sunday] = [8, 0.1, 100].map((hours) => hoursAgo(-hours));
  await admin.db.prisma.connection.updateMany({ where: key, data: { nextSyncAt: night! } });
  const rows = [
    { ...key, resource: 'employees', nextSyncAt: soon! },
    { ...key, resource: 'departments', nextSyncAt: sunday! },
  ];
  await admin.db.prisma.scheduledList.createMany({ data: rows });
  const { json } = await admin.call('GET', path);
  expect(json.next_sync_at).toBe(soon!.toISOString());
  const times = json.resources.map((list: { resource: string; next_sync_at?: string }) => [list.resource, list.next_sync_at]);
  expect(Object.fromEntries(times)).toEqual({
    employees: soon!.toISOString(),
    departments: sunday!.toISOString(),
    notes: undefined,
  });
  const other = await company({ employees: 0, departments: 0, notes: 0 });
  await admin.db.prisma.connection.updateMany({ where: other, data: { nextSyncAt: hoursAgo(-1) } });
  const ids = async () =>
    (await admin.call('GET', '/api/companies?sort=next_sync')).json.data.map((each: { company_id: string }) => each.company_id);
  expect(await ids()).toEqual([key.companyId, other.companyId]);
  await admin.db.prisma.connection.updateMany({ where: key, data: { paused: true } });
  const paused = (await admin.call('GET', path)).json;
  expect([paused.next_sync_at, paused.resources[0].next_sync_at]).toEqual([null, undefined]);
});
