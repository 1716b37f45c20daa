import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../src/db/connection/database.js';
import { listConnections } from '../../src/db/tables/connection-list.js';
import type { IssueRow } from '../../src/db/tables/issues.js';
import { countProofs } from '../../src/db/tables/list-counts.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { addCompany, addWalk, hoursAgo, sweepOf } from './issue-world.js';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await testDatabase();
  ({ db } = database);
});
afterAll(() => database.close());
beforeEach(async () => {
  await emptyTables(db, 'muster.connections', 'muster.lists', 'muster.runs', 'muster.walks', 'muster.issues', 'muster.holds');
});

const LACKING = { employees: { provedHoursAgo: null, begunHoursAgo: 900, unavailableHours: 800 } } as const;
const resources = ['employees', 'departments'];

async function issues(status = 'ongoing'): Promise<Partial<IssueRow>[]> {
  await sweepOf(db)();
  const rows = (await db.prisma.issue.findMany({ where: { status }, orderBy: { seq: 'asc' } })) as IssueRow[];
  return rows.map(({ cause, resource, severity, companies }) => ({ cause, resource, severity, companies }));
}

test('a list that some companies do not have is no issue, however long; one that none has is one', async () => {
  const first = await addCompany(db, { lists: LACKING });
  expect(await issues()).toEqual([]);
  const second = await addCompany(db);
  expect(await issues()).toEqual([]);

  await db.prisma.list.update({
    where: { environment_companyId_resource: { ...second, resource: 'employees' } },
    data: { unavailableSince: hoursAgo(1), lastVerifiedAt: null },
  });
  expect(await issues()).toEqual([{ cause: 'list_unavailable', resource: 'employees', severity: 'warning', companies: 2 }]);

  await db.prisma.list.update({
    where: { environment_companyId_resource: { ...first, resource: 'employees' } },
    data: { unavailableSince: null, lastVerifiedAt: new Date() },
  });
  expect(await issues()).toEqual([]);
  expect(await issues('resolved')).toMatchObject([{ cause: 'list_unavailable' }]);
});

test('it counts as unavailable alone: not as late or never proved, and its company is none of the worst', async () => {
  const lacking = await addCompany(db, { lists: LACKING });
  const late = await addCompany(db, { lists: { employees: { provedHoursAgo: 100 } } });
  const counts = await countProofs(db.prisma, { resources, staleAfterHours: 26 });
  expect(counts).toMatchObject({ total: 3, verified: 2, late: 1, never: 0, unverified: 0, unavailable: 1 });
  const { rows } = await db.pool.query(
    'SELECT company_id, is_late, unavailable_since IS NULL AS there FROM warehouse.lists ORDER BY is_late, there',
  );
  expect(rows).toEqual([
    { company_id: lacking.companyId, is_late: false, there: false },
    { company_id: expect.any(String), is_late: false, there: true },
    { company_id: expect.any(String), is_late: false, there: true },
    { company_id: late.companyId, is_late: true, there: true },
  ]);
  const worst = await listConnections(db, { limit: 9, sort: { by: 'worst', resources, staleAfterHours: 26 } });
  expect(worst.data.map(({ companyId }) => companyId)).toEqual([late.companyId, lacking.companyId]);
});

test('companies are found by the state of a list', async () => {
  const paused = { provedHoursAgo: 100 };
  const companies = {
    unavailable: await addCompany(db, { lists: LACKING }),
    failed: await addCompany(db),
    held: await addCompany(db),
    never: await addCompany(db, { lists: { employees: { provedHoursAgo: null } } }),
    late: await addCompany(db, { lists: { employees: { provedHoursAgo: 100 } } }),
    on_time: await addCompany(db),
    paused: await addCompany(db, { paused: true, lists: { employees: paused } }),
  };
  await addWalk(db, companies.failed, { code: 'service_refused', hours: 0.5 });
  const { id: runId, walks } = await db.prisma.run.findFirstOrThrow({ where: companies.held, include: { walks: true } });
  await db.prisma.hold.create({
    data: { ...companies.held, resource: 'employees', runId, walkId: walks[0]!.id, count: 1, living: 2, sample: [] },
  });
  const found = async (state: 'unavailable' | 'failed' | 'held' | 'never' | 'late' | 'on_time') => {
    const { data } = await listConnections(db, { limit: 99, list: { resources: ['employees'], state, staleAfterHours: 26 } });
    return data.map(({ companyId }) => companyId).toSorted();
  };
  for (const state of ['unavailable', 'failed', 'held', 'never', 'late'] as const)
    expect([state, await found(state)]).toEqual([state, [companies[state].companyId]]);
  expect(await found('on_time')).toEqual([companies.on_time.companyId, companies.paused.companyId].toSorted());

  // A failure since then does not say that the company has the list.
  await addWalk(db, companies.unavailable, { code: 'service_error', hours: 0.5 });
  expect(await found('unavailable')).toEqual([companies.unavailable.companyId]);
  expect(await found('failed')).toEqual([companies.failed.companyId]);
});
