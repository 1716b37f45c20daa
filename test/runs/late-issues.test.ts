import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listIssueCompanies } from '../../src/db/tables/issue-companies.js';
import { countOngoingIssues, listIssues, setSnooze } from '../../src/db/tables/issues.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { addCompany, addWalk, hoursAgo, sweepOf } from './issue-world.js';

let database: TestDatabase;
let sweep: () => Promise<void>;

beforeAll(async () => {
  database = await testDatabase();
});
beforeEach(async () => {
  await emptyTables(
    database.db,
    'muster.issues',
    'muster.notifications',
    'muster.connections',
    'muster.lists',
    'muster.runs',
    'muster.holds',
  );
  sweep = sweepOf(database.db);
});
afterAll(() => database.close());

const prisma = () => database.db.prisma;
const late = { lists: { employees: { provedHoursAgo: 30 } } };

/** Cause, resource, companies, late ones and status of every issue. */
async function issues(): Promise<unknown[]> {
  const rows = await prisma().issue.findMany({ orderBy: [{ cause: 'asc' }, { resource: 'asc' }] });
  return rows.map((row) => [row.cause, row.resource, row.companies, row.late, row.status]);
}

async function told(): Promise<unknown[]> {
  const rows = await prisma().notification.findMany({ orderBy: { seq: 'asc' } });
  return rows.map(({ type, details }) => {
    const { cause, resource, issue_status, count } = details as Record<string, unknown>;
    return [type, cause, resource, issue_status, count];
  });
}

describe('a list that is late', () => {
  test('because its walks fail belongs to that issue, and is told all the same', async () => {
    const failing = await addCompany(database.db, late);
    await addWalk(database.db, failing, { code: 'service_refused', hours: 0.5 });
    const onTime = await addCompany(database.db);
    await addWalk(database.db, onTime, { code: 'service_refused', hours: 0.5 });
    const unexplained = await addCompany(database.db, late);
    await sweep();
    expect(await issues()).toEqual([
      ['list_late', 'employees', 1, 0, 'ongoing'],
      ['service_refused', 'employees', 2, 1, 'ongoing'],
    ]);
    expect((await prisma().issue.findFirstOrThrow({ where: { cause: 'list_late' } })).sample).toEqual([unexplained.companyId]);
    expect((await told()).toSorted()).toEqual([
      ['list_late', 'list_late', 'employees', 'ongoing', 1],
      ['list_late', 'service_refused', 'employees', 'ongoing', 1],
    ]);

    // The next sweep has nothing to add.
    await sweep();
    expect(await told()).toHaveLength(2);
    // A proof ends it; the issue goes on with the other company.
    await prisma().list.updateMany({ where: failing, data: { lastVerifiedAt: new Date() } });
    await addWalk(database.db, failing, { hours: 0.1 });
    await sweep();
    expect(await issues()).toContainEqual(['service_refused', 'employees', 1, 0, 'ongoing']);
    expect((await told()).at(-1)).toEqual(['list_late', 'service_refused', 'employees', 'resolved', 1]);
  });

  test('while another list fails is no part of that issue', async () => {
    const company = await addCompany(database.db, late);
    await addWalk(database.db, company, { code: 'service_refused', resource: 'departments', hours: 0.5 });
    await sweep();
    expect(await issues()).toEqual([
      ['list_late', 'employees', 1, 0, 'ongoing'],
      ['service_refused', 'departments', 1, 0, 'ongoing'],
    ]);
  });

  test('because of its whole company belongs to that issue, whichever list it is', async () => {
    await prisma().worker.deleteMany();
    const both = { lists: { employees: { provedHoursAgo: 30 }, departments: { provedHoursAgo: 30 } } };
    await addCompany(database.db, both);
    await addCompany(database.db, late);
    await addCompany(database.db);
    const sweepInItsPlace = sweepOf(database.db, { isWorker: false });
    await sweepInItsPlace();
    expect(await issues()).toEqual([['no_worker', null, 3, 2, 'ongoing']]);
    expect((await told()).toSorted()).toEqual([
      ['list_late', 'no_worker', undefined, 'ongoing', 2],
      ['no_worker', 'no_worker', undefined, 'ongoing', 3],
    ]);
    // Once a worker lives nothing says why they are late any more.
    await sweep();
    expect(await issues()).toEqual([
      ['list_late', 'departments', 1, 0, 'ongoing'],
      ['list_late', 'employees', 2, 0, 'ongoing'],
      ['no_worker', null, 3, 0, 'resolved'],
    ]);
    expect(await told()).toContainEqual(['list_late', 'no_worker', undefined, 'resolved', 2]);
  });

  test('with an issue that does not delay it has one of its own', async () => {
    const company = await addCompany(database.db, late);
    await prisma().list.updateMany({ where: { ...company, resource: 'employees' }, data: { unmatchedRules: ['a.b'] } });
    await sweep();
    expect(await issues()).toEqual([
      ['list_late', 'employees', 1, 0, 'ongoing'],
      ['privacy_rule_unmatched', 'employees', 1, 0, 'ongoing'],
    ]);
  });

  test('is told again once ten times the companies have it for the same reason', async () => {
    const add = async () => {
      const company = await addCompany(database.db, late);
      await addWalk(database.db, company, { code: 'service_refused', hours: 0.5 });
    };
    await add();
    await sweep();
    for (let n = 0; n < 8; n++) await add();
    await sweep();
    expect(await told()).toHaveLength(1);
    await add();
    await sweep();
    expect((await told()).at(-1)).toEqual(['list_late', 'service_refused', 'employees', 'ongoing', 10]);
  });
});

test('the companies of an issue are those that the sweep counts', async () => {
  const failing = await addCompany(database.db, late);
  await addWalk(database.db, failing, { code: 'service_refused', hours: 0.5 });
  const others = [await addCompany(database.db, late), await addCompany(database.db, late)];
  const search = {
    resources: ['employees', 'departments'],
    exported: [],
    staleAfterHours: 26,
    environments: ['test'],
    isWorker: true,
    hasWebhook: false,
    secondsLeft: 1,
    isNightYoung: true,
  } as const;
  const ofCause = async (cause: string, page = {}) => {
    const issue = { cause, environment: 'test', resource: 'employees' } as const;
    const { data, nextCursor } = await listIssueCompanies(database.db, issue, { ...search, limit: 10, ...page });
    return [data.map(({ companyId }) => companyId), nextCursor] as const;
  };
  expect(await ofCause('service_refused')).toEqual([[failing.companyId], undefined]);
  const ids = others.map(({ companyId }) => companyId).toSorted();
  expect(await ofCause('list_late')).toEqual([ids, undefined]);
  const [first, cursor] = await ofCause('list_late', { limit: 1 });
  expect(first).toEqual([ids[0]]);
  expect(await ofCause('list_late', { limit: 1, cursor })).toEqual([[ids[1]], undefined]);
});

describe('a snoozed issue', () => {
  const snoozed = async () => (await listIssues(database.db, { isSnoozed: true, limit: 10 })).data.map(({ cause }) => cause);
  async function snoozeIt(hours = 24): Promise<string> {
    const { id } = await prisma().issue.findFirstOrThrow();
    await setSnooze(database.db, id, { until: hoursAgo(-hours), reason: 'they move their office', by: 'kari' });
    return id;
  }

  test('stays ongoing, and comes back at its end', async () => {
    await addCompany(database.db, late);
    await sweep();
    const id = await snoozeIt();
    await sweep();
    expect([await snoozed(), await countOngoingIssues(database.db.prisma)]).toEqual([['list_late'], { open: 0, snoozed: 1 }]);
    expect((await listIssues(database.db, { isSnoozed: false, limit: 10 })).data).toEqual([]);
    await prisma().issue.update({ where: { id }, data: { snoozedUntil: hoursAgo(0.01) } });
    expect([await snoozed(), await countOngoingIssues(database.db.prisma)]).toEqual([[], { open: 1, snoozed: 0 }]);
    await sweep();
    expect(await prisma().issue.findFirstOrThrow()).toMatchObject({ snoozedUntil: null, snoozeReason: null, snoozedBy: null });
  });

  test('comes back when it has ten times the companies, and is told of then, not before', async () => {
    for (let n = 0; n < 2; n++) await addCompany(database.db, late);
    await sweep();
    await prisma().issue.updateMany({ data: { told: 1 } });
    await snoozeIt();
    for (let n = 2; n < 19; n++) await addCompany(database.db, late);
    await sweep();
    expect([await snoozed(), (await told()).length]).toEqual([['list_late'], 1]);
    await addCompany(database.db, late);
    await sweep();
    expect([await snoozed(), (await told()).at(-1)]).toEqual([[], ['list_late', 'list_late', 'employees', 'ongoing', 20]]);
  });

  test('comes back when it needs a person where it was a warning', async () => {
    await addCompany(database.db, { reauthorizationReason: 'token_refused' });
    await sweep();
    await prisma().issue.updateMany({ data: { severity: 'warning' } });
    await snoozeIt();
    await sweep();
    expect(await snoozed()).toEqual([]);
  });

  test('that ends is told of, and one that returns within a day is still snoozed', async () => {
    const company = await addCompany(database.db, late);
    await sweep();
    const id = await snoozeIt();
    const prove = (hours: number) => prisma().list.updateMany({ where: company, data: { lastVerifiedAt: hoursAgo(hours) } });
    await prove(1);
    await sweep();
    expect((await told()).at(-1)).toEqual(['list_late', 'list_late', 'employees', 'resolved', 1]);
    await expect(setSnooze(database.db, id, undefined)).rejects.toMatchObject({ code: 'issue_resolved' });
    await prisma().list.updateMany({ where: { ...company, resource: 'employees' }, data: { lastVerifiedAt: hoursAgo(30) } });
    await sweep();
    expect(await snoozed()).toEqual(['list_late']);
  });
});
