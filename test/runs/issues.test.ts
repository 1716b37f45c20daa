import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/db/connection/database.js';
import { removeOldIssues } from '../../src/db/tables/issues.js';
import { resetUndelivered } from '../../src/db/tables/notifications.js';
import { recordQueueStop } from '../../src/db/tables/queue-stops.js';
import { succeedWalk } from '../../src/db/tables/walks.js';
import { recordNotTaken, recordTaken } from '../../src/db/tables/webhook.js';
import { onboard, openWalk } from '../mirror/mirror-fixture.js';
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
    'muster.quarantined_tokens',
  );
  sweep = sweepOf(database.db);
});
afterAll(() => database.close());

const prisma = () => database.db.prisma;

/** Cause, environment, resource, companies and status of every issue, in that order. */
async function issues(): Promise<unknown[]> {
  const rows = await prisma().issue.findMany({
    orderBy: [{ cause: 'asc' }, { resource: 'asc' }, { environment: 'desc' }, { seq: 'asc' }],
  });
  return rows.map(({ cause, environment, resource, companies, status }) => [cause, environment, resource, companies, status]);
}

/** What people were told of issues, in order. */
async function told(): Promise<unknown[]> {
  const rows = await prisma().notification.findMany({ orderBy: { seq: 'asc' } });
  return rows.map(({ type, environment, companyId, details }) => {
    const { issue_status, resource, count } = details as { issue_status?: string; resource?: string; count?: number };
    return [type, environment, companyId, resource, issue_status, count];
  });
}

const proveAll = () => prisma().list.updateMany({ data: { lastVerifiedAt: new Date(), unverifiedSince: null } });

describe('a cause', () => {
  test('does not appear where all is well', async () => {
    await addCompany(database.db);
    await onboard(database.db); // its first run waits
    await sweep();
    expect(await issues()).toEqual([]);
  });

  test('of failed lists is the error code with which the newest walk of each ended, by environment and resource', async () => {
    const [one, other] = [await addCompany(database.db), await addCompany(database.db, { environment: 'production' })];
    const both = await addCompany(database.db);
    await addWalk(database.db, one, { code: 'service_refused', hours: 0.5 });
    await addWalk(database.db, other, { code: 'service_refused', hours: 0.5 });
    await addWalk(database.db, both, { code: 'service_refused', hours: 0.5 });
    await addWalk(database.db, both, { code: 'service_error', resource: 'departments', hours: 0.5 });
    await sweep();
    expect(await issues()).toEqual([
      ['service_error', 'test', 'departments', 1, 'ongoing'],
      ['service_refused', 'test', 'employees', 2, 'ongoing'],
      ['service_refused', 'production', 'employees', 1, 'ongoing'],
    ]);
    const severities = await prisma().issue.findMany({ distinct: ['cause'], orderBy: { cause: 'asc' } });
    expect(severities.map(({ severity }) => severity)).toEqual(['warning', 'action']);
    const { sample } = await prisma().issue.findFirstOrThrow({ where: { companies: 2 } });
    expect(sample).toEqual([one, both].map(({ companyId }) => companyId).toSorted());

    // A later success of that list ends it; one of another list does not.
    await addWalk(database.db, one, { hours: 0.2 });
    await addWalk(database.db, both, { resource: 'departments', hours: 0.2 });
    await sweep();
    expect(await issues()).toEqual([
      ['service_error', 'test', 'departments', 1, 'resolved'],
      ['service_refused', 'test', 'employees', 1, 'ongoing'],
      ['service_refused', 'production', 'employees', 1, 'ongoing'],
    ]);
    // People have been told of each company already.
    expect(await told()).toEqual([]);
  });

  test('of a list that waits to be tried again is none yet', async () => {
    const company = await addCompany(database.db);
    await addWalk(database.db, company, { code: 'service_error', hours: 0.5 });
    await prisma().walk.updateMany({ where: { status: 'failed' }, data: { finishedAt: null } });
    await sweep();
    expect(await issues()).toEqual([]);
  });

  test('from before a company was removed and came back is none', async () => {
    const company = await addCompany(database.db);
    await addWalk(database.db, company, { code: 'service_error', hours: 3 });
    await prisma().connection.updateMany({ data: { createdAt: hoursAgo(2) } });
    await sweep();
    expect(await issues()).toEqual([]);
  });

  test('of companies that must authorize again is one of whole companies, and hides what follows from it', async () => {
    const company = await addCompany(database.db, {
      reauthorizationReason: 'token_refused',
      lists: { employees: { provedHoursAgo: 100 } },
    });
    await addWalk(database.db, company, { code: 'reauthorization_required', hours: 0.5 });
    await sweep();
    expect(await issues()).toEqual([['reauthorization_required', 'test', null, 1, 'ongoing']]);
    // Its first run since has not ended.
    await prisma().connection.updateMany({ data: { reauthorizationReason: null } });
    await proveAll();
    await sweep();
    expect(await issues()).toEqual([['reauthorization_required', 'test', null, 1, 'resolved']]);
  });

  test('of a missing worker is one of every company, and is seen by the API alone', async () => {
    await prisma().worker.deleteMany();
    await addCompany(database.db, { paused: true });
    await sweep(); // a worker lives: the one that sweeps
    expect(await issues()).toEqual([]);
    const sweepInItsPlace = sweepOf(database.db, { isWorker: false, environments: ['test', 'production'] });
    await prisma().worker.create({ data: { name: 'alive' } });
    await sweepInItsPlace();
    expect(await issues()).toEqual([]);
    await prisma().worker.updateMany({ data: { seenAt: hoursAgo(1) } });
    await sweepInItsPlace();
    await sweepInItsPlace();
    expect(await issues()).toEqual([
      ['no_worker', 'test', null, 1, 'ongoing'],
      ['no_worker', 'production', null, 0, 'ongoing'],
    ]);
    // The first companies are no news.
    for (let n = 0; n < 9; n += 1) await addCompany(database.db, { environment: 'production' });
    await sweepInItsPlace();
    expect((await prisma().issue.findFirstOrThrow({ where: { cause: 'no_worker' } })).severity).toBe('action');
    await sweep();
    expect((await issues()).map((issue) => (issue as unknown[])[4])).toEqual(['resolved', 'resolved']);
    const ends = (status: string) => [
      ['no_worker', 'production', null, undefined, status, status === 'ongoing' ? 0 : 9],
      ['no_worker', 'test', null, undefined, status, 1],
    ];
    expect((await told()).toSorted()).toEqual([...ends('ongoing'), ...ends('resolved')].toSorted());
    const { details } = await prisma().notification.findFirstOrThrow();
    expect(details).toMatchObject({ cause: 'no_worker' });
  });

  test('of a queue that was stopped is told once, and ends ten minutes after the last time', async () => {
    await addCompany(database.db);
    await recordQueueStop(database.db, { queue: 'sweeps' });
    await recordQueueStop(database.db, { queue: 'tokens' });
    await sweep();
    await recordQueueStop(database.db, { queue: 'sweeps' });
    await sweep();
    expect(await issues()).toEqual([['queue_stopped', 'test', null, 1, 'ongoing']]);
    expect((await prisma().issue.findFirstOrThrow()).severity).toBe('warning');
    await prisma().queueStop.updateMany({ data: { foundAt: hoursAgo(0.17) } });
    await sweep();
    expect(await issues()).toEqual([['queue_stopped', 'test', null, 1, 'resolved']]);
    expect(await told()).toEqual([
      ['queue_stopped', 'test', null, undefined, 'ongoing', 1],
      ['queue_stopped', 'test', null, undefined, 'resolved', 1],
    ]);
  });

  test('of a webhook that takes nothing is one of the companies that nobody hears of, and ends once it takes something', async () => {
    const company = await addCompany(database.db);
    const error = { code: 'answered', status: 500 };
    const expired = { code: 'expired' };
    await prisma().notification.createMany({
      data: [
        { ...company, type: 'run_failed', change: '1', status: 'failed', lastError: error },
        { ...company, type: 'run_failed', change: '2', lastError: error },
        { environment: 'production', type: 'test', change: '3', status: 'failed', lastError: expired },
      ],
    });
    await recordNotTaken(database.db, { code: 'answered', status: 500 });
    await sweep();
    expect(await issues()).toEqual([]); // it may be just being restarted
    await prisma().webhookState.updateMany({ data: { failingSince: hoursAgo(0.01) } });
    await recordNotTaken(database.db, { code: 'timeout' });
    await sweepOf(database.db, { hasWebhook: false })();
    expect(await issues()).toEqual([]);
    await sweep();
    expect(await issues()).toEqual([['webhook_failing', 'test', null, 1, 'ongoing']]);
    expect((await prisma().issue.findFirstOrThrow()).severity).toBe('action');
    // To send all again ends nothing: whether it is taken is not known yet.
    expect(await resetUndelivered(database.db, { environment: 'production' })).toBe(0);
    expect(await resetUndelivered(database.db, {})).toBe(2);
    await sweep();
    expect(await issues()).toEqual([['webhook_failing', 'test', null, 1, 'ongoing']]);
    await recordTaken(database.db);
    await sweep();
    expect(await issues()).toEqual([['webhook_failing', 'test', null, 1, 'resolved']]);
    // The webhook itself is told nothing of it.
    expect(await prisma().notification.count()).toBe(3);
  });

  test('of late lists spares companies that are paused, and lists that were never proved', async () => {
    await addCompany(database.db, { lists: { employees: { provedHoursAgo: 27 }, departments: { provedHoursAgo: 25 } } });
    await addCompany(database.db, { paused: true, lists: { employees: { provedHoursAgo: 270 } } });
    await addCompany(database.db, { lists: { employees: { provedHoursAgo: null } } });
    await sweep();
    expect(await issues()).toEqual([['list_late', 'test', 'employees', 1, 'ongoing']]);
    await sweepOf(database.db, { staleAfterHours: 20 })();
    expect(await issues()).toEqual([
      ['list_late', 'test', 'departments', 1, 'ongoing'],
      ['list_late', 'test', 'employees', 1, 'ongoing'],
    ]);
    expect(await told()).toEqual([
      ['list_late', 'test', null, 'employees', 'ongoing', 1],
      ['list_late', 'test', null, 'departments', 'ongoing', 1],
    ]);
  });

  test('of lists that were never proved appears once the first proof is overdue, and ends with it', async () => {
    const late = { provedHoursAgo: null, begunHoursAgo: 27 };
    await addCompany(database.db, { lists: { employees: late, departments: { provedHoursAgo: null, begunHoursAgo: 25 } } });
    await addCompany(database.db, { paused: true, lists: { employees: late } });
    const fresh = await onboard(database.db); // no walk has opened a list of it, and none need have
    await prisma().list.deleteMany({ where: fresh });
    await sweep();
    expect(await issues()).toEqual([['never_proved', 'test', 'employees', 1, 'ongoing']]);
    expect((await prisma().issue.findFirstOrThrow()).severity).toBe('action');
    // What a list that never worked must not hide behind: a company that was never walked at all.
    await prisma().connection.updateMany({ where: fresh, data: { createdAt: hoursAgo(27) } });
    await sweep();
    expect(await issues()).toEqual([
      ['never_proved', 'test', 'departments', 1, 'ongoing'],
      ['never_proved', 'test', 'employees', 2, 'ongoing'],
    ]);
    await prisma().connection.deleteMany({ where: fresh });
    await proveAll();
    await sweep();
    const news = await told();
    expect(news).toHaveLength(4);
    expect(news).toEqual(
      expect.arrayContaining([
        ['never_proved', 'test', null, 'employees', 'ongoing', 1],
        ['never_proved', 'test', null, 'departments', 'ongoing', 1],
        ['never_proved', 'test', null, 'departments', 'resolved', 1],
        ['never_proved', 'test', null, 'employees', 'resolved', 2],
      ]),
    );
  });

  test('of a list that is new in the catalogue is none, until its first walk should have proved it', async () => {
    const company = await addCompany(database.db);
    await prisma().list.deleteMany({ where: { ...company, resource: 'departments' } });
    await sweep();
    expect(await issues()).toEqual([]);
    await prisma().list.create({ data: { ...company, resource: 'departments', begunAt: hoursAgo(27) } });
    await sweep();
    expect(await issues()).toEqual([['never_proved', 'test', 'departments', 1, 'ongoing']]);
  });

  test('of a list whose records are all rejected appears at once, and stays while later walks fail', async () => {
    const company = await addCompany(database.db, { lists: { employees: { provedHoursAgo: null } } });
    const ended = async (rejected: number, records: number) => {
      await prisma().walk.updateMany({
        where: { ...company, status: 'succeeded' },
        data: { verified: false, rejected, received: 5 },
      });
      await prisma().list.updateMany({ where: { ...company, resource: 'employees' }, data: { records } });
    };
    // The one that was kept stood in one page, the others in two.
    for (const [rejected, records] of [
      [0, 0],
      [8, 1],
    ] as const) {
      await ended(rejected, records);
      await sweep();
      expect(await issues()).toEqual([]);
    }
    await ended(10, 0);
    await sweep();
    expect(await issues()).toEqual([['never_proved', 'test', 'employees', 1, 'ongoing']]);
    await addWalk(database.db, company, { code: 'service_error', hours: 0.5 });
    await sweep();
    expect(await issues()).toContainEqual(['never_proved', 'test', 'employees', 1, 'ongoing']);
    await proveAll();
    await sweep();
    expect(await issues()).toContainEqual(['never_proved', 'test', 'employees', 1, 'resolved']);
  });

  test('of unverified lists appears after three days', async () => {
    await addCompany(database.db, { lists: { employees: { unverifiedHours: 73 }, departments: { unverifiedHours: 71 } } });
    await sweep();
    expect(await issues()).toEqual([['list_unverified', 'test', 'employees', 1, 'ongoing']]);
    await proveAll();
    await sweep();
    expect(await told()).toEqual([
      ['list_unverified', 'test', null, 'employees', 'ongoing', 1],
      ['list_unverified', 'test', null, 'employees', 'resolved', 1],
    ]);
  });

  test('of open holds ends with the decision', async () => {
    const company = await addCompany(database.db, { paused: true });
    const walk = await prisma().walk.findFirstOrThrow();
    const list = { ...company, resource: 'employees' };
    await prisma().hold.create({ data: { ...list, runId: walk.runId, walkId: walk.id, count: 10, living: 12, sample: [] } });
    await sweep();
    expect(await issues()).toEqual([['deletions_held', 'test', 'employees', 1, 'ongoing']]);
    await prisma().hold.updateMany({ data: { status: 'rejected' } });
    await sweep();
    expect(await issues()).toEqual([['deletions_held', 'test', 'employees', 1, 'resolved']]);
    expect(await told()).toEqual([]);
  });

  test('of quarantined tokens names no company that the service did not name', async () => {
    await prisma().quarantinedToken.create({
      data: { environment: 'test', companyId: '00000000-0000-0000-0000-000000000000', refreshToken: 'encrypted' },
    });
    await sweep();
    expect(await issues()).toEqual([['token_quarantined', 'test', null, 1, 'ongoing']]);
    expect((await prisma().issue.findFirstOrThrow()).sample).toEqual([]);
  });
});

describe('a budget', () => {
  /** A run that has received 100 of its 80,100 records in 100 s, unless said: it takes 22 hours and 13 minutes more. */
  async function slowRun(received = 100) {
    const company = await addCompany(database.db);
    await prisma().list.updateMany({ where: company, data: { records: 80_100 } });
    const walk = { ...company, resource: 'employees', position: 0, status: 'running', received };
    const data = { ...company, trigger: 'nightly', mode: 'full', status: 'running', startedAt: new Date(Date.now() - 100_000) };
    await prisma().run.create({ data: { ...data, walks: { create: [walk] } } });
  }

  test('is short when the night cannot end before the next one, once the night is not young any more', async () => {
    await slowRun();
    /** In 100 s up to now: the longer it takes, the longer the night would. */
    async function receive(received: number): Promise<void> {
      await prisma().walk.updateMany({ where: { status: 'running' }, data: { received } });
      await prisma().run.updateMany({ where: { status: 'running' }, data: { startedAt: new Date(Date.now() - 100_000) } });
    }
    await receive(1);
    await sweepOf(database.db, { hour: 2.25 })();
    await receive(100);
    await sweepOf(database.db, { hour: 3 })();
    expect(await issues()).toEqual([]);
    await sweepOf(database.db, { hour: 4 })();
    expect(await issues()).toEqual([['budget_short', 'test', null, 1, 'ongoing']]);
    expect(await told()).toEqual([['budget_short', 'test', null, undefined, 'ongoing', 1]]);
  });

  test('is not short while the night ends in time', async () => {
    await slowRun(50_000);
    await sweepOf(database.db, { hour: 3 })();
    expect(await issues()).toEqual([]);
  });

  test('stays short while its estimate wavers or is not known, and is not once the runs are over', async () => {
    await slowRun();
    await sweepOf(database.db, { hour: 4 })();
    const short = [['budget_short', 'test', null, 1, 'ongoing']];
    expect(await issues()).toEqual(short);
    // By this look alone there would be time enough.
    await sweepOf(database.db, { hour: 3 })();
    expect(await issues()).toEqual(short);
    await prisma().walk.updateMany({ data: { received: 0 } });
    await sweepOf(database.db, { hour: 3 })();
    expect(await issues()).toEqual(short);
    await prisma().run.updateMany({ data: { status: 'succeeded', finishedAt: new Date() } });
    await sweepOf(database.db, { hour: 3 })();
    expect(await issues()).toEqual([['budget_short', 'test', null, 1, 'resolved']]);
  });
});

describe('an issue', () => {
  const lateCompany = () => addCompany(database.db, { lists: { employees: { provedHoursAgo: 30 } } });

  test('grows and shrinks with its companies, and keeps when it began', async () => {
    await lateCompany();
    await sweep();
    const first = await prisma().issue.findFirstOrThrow();
    for (let i = 0; i < 6; i++) await lateCompany();
    await sweep();
    const second = await prisma().issue.findFirstOrThrow();
    expect(second).toMatchObject({ id: first.id, companies: 7, firstSeenAt: first.firstSeenAt });
    expect(second.sample).toHaveLength(5);
    expect(second.lastSeenAt.getTime()).toBeGreaterThan(first.lastSeenAt.getTime());
    expect(await told()).toHaveLength(1);
  });

  test('is told again once it has ten times the companies, and not for each', async () => {
    await lateCompany();
    await sweep();
    for (let i = 0; i < 9; i++) await lateCompany();
    await sweep();
    await sweep();
    for (let i = 0; i < 20; i++) await lateCompany();
    await sweep();
    await proveAll();
    await sweep();
    expect(await told()).toEqual([
      ['list_late', 'test', null, 'employees', 'ongoing', 1],
      ['list_late', 'test', null, 'employees', 'ongoing', 10],
      ['list_late', 'test', null, 'employees', 'resolved', 30],
    ]);
  });

  test('that comes back within a day is the same, and later another one', async () => {
    const { companyId } = await lateCompany();
    const late = () => prisma().list.updateMany({ where: { companyId }, data: { lastVerifiedAt: hoursAgo(30) } });
    await sweep();
    const { id, firstSeenAt } = await prisma().issue.findFirstOrThrow({ where: { resource: 'employees' } });
    await proveAll();
    await sweep();
    await late();
    await sweep();
    const reopened = await prisma().issue.findMany({ where: { resource: 'employees' } });
    expect(reopened).toMatchObject([{ id, firstSeenAt, status: 'ongoing', resolvedAt: null }]);

    await proveAll();
    await sweep();
    await prisma().issue.updateMany({ data: { resolvedAt: hoursAgo(25) } });
    await late();
    await sweep();
    expect(await prisma().issue.findMany({ where: { resource: 'employees' }, orderBy: { seq: 'asc' } })).toMatchObject([
      { id, status: 'resolved' },
      { status: 'ongoing', companies: 1 },
    ]);
    const ofEmployees = (await told()).filter((each) => (each as unknown[])[3] === 'employees');
    expect(ofEmployees.map((each) => (each as unknown[])[4])).toEqual(['ongoing', 'resolved', 'ongoing', 'resolved', 'ongoing']);
  });

  test('is one, and told once, however many sweeps look at the same time', async () => {
    for (let i = 0; i < 3; i++) await lateCompany();
    const databases = Array.from({ length: 6 }, () => openDatabase({ url: database.url, poolSize: 2 }));
    const together = () => Promise.all(databases.map((db) => sweepOf(db)()));
    try {
      await together();
      expect(await issues()).toEqual([['list_late', 'test', 'employees', 3, 'ongoing']]);
      await proveAll();
      await together();
      await prisma().list.updateMany({ where: { resource: 'employees' }, data: { lastVerifiedAt: hoursAgo(30) } });
      await together();
      expect(await issues()).toEqual([['list_late', 'test', 'employees', 3, 'ongoing']]);
      expect((await told()).map((each) => (each as unknown[])[4])).toEqual(['ongoing', 'resolved', 'ongoing']);
    } finally {
      for (const db of databases) await db.close();
    }
  });

  test('waits for nobody, and is left to whoever looks already', async () => {
    await lateCompany();
    const client = await database.db.pool.connect();
    await client.query(`BEGIN; SELECT 1 FROM muster.locks WHERE name = 'issues' FOR UPDATE`);
    await sweep();
    expect(await issues()).toEqual([]);
    await client.query('ROLLBACK');
    client.release();
    await sweep();
    expect(await issues()).toHaveLength(1);
  });

  test('goes some time after it was resolved', async () => {
    await lateCompany();
    await sweep();
    expect(await removeOldIssues(database.db, { days: 0, limit: 10 })).toBe(0);
    await proveAll();
    await sweep();
    expect(await removeOldIssues(database.db, { days: 1, limit: 10 })).toBe(0);
    expect(await removeOldIssues(database.db, { days: 0, limit: 10 })).toBe(1);
  });
});

test('a list says since when its walks prove nothing, until one does', async () => {
  const { db } = database;
  const company = await onboard(db);
  const since = async () => (await db.prisma.list.findFirstOrThrow({ where: company })).unverifiedSince;
  const end = async (proof: string | null) => {
    const { list, walkId: id, epoch } = await openWalk(db, company);
    const unverifiedReason = proof === null ? 'end_unproved' : null;
    const facts = {
      unverifiedDetail: null,
      serviceSays: null,
      etags: { isUsed: false, isFalse: false },
      keysDigest: null,
      reusable: false,
      finishedAt: new Date(),
      parents: null,
      unmatchedRules: [],
    };
    await succeedWalk(db, { id, list, epoch, pages: 0 }, { ...facts, proof, unverifiedReason });
  };
  await end('join');
  expect(await since()).toBeNull();
  await end(null);
  const first = await since();
  expect(first).toBeInstanceOf(Date);
  await end(null);
  expect(await since()).toEqual(first);
  await end('join');
  expect(await since()).toBeNull();
});
