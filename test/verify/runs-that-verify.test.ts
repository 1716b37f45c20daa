import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { MusterError } from '../../src/core/errors.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { reconcileIssues } from '../../src/db/tables/issues.js';
import { tryLock } from '../../src/db/tables/locks.js';
import { findClaimableRuns } from '../../src/db/tables/runs.js';
import { eraseFromReadings, removeOldNotes } from '../../src/db/tables/second-readings.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { forgetRecord } from '../../src/erasure/forget.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { nightlyVerifications } from '../../src/runs/nightly-verifications.js';
import { nightSweep } from '../../src/runs/nights.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { testSuppressions } from '../support/suppressions.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';
import { seedFault } from './fault-seeds.js';

const ENDPOINTS = endpointsOf({
  employees: { ...ENTRIES.employees, deleteGuard: { rows: 5, share: 0.1 } },
  departments: ENTRIES.departments,
  tasks: {
    method: 'GET',
    path: '/api/companies/{company_id}/departments/{id}/tasks',
    parent: 'departments',
    pager: { style: 'skip-take', in: 'query', size: 3 },
  },
});
const SCHEDULE = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 };

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let company: CompanyKey;
let next = 0;
let beforeRequest: (path: string) => Promise<void> | void = () => {};

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 30 }, (_, n) => ({ name: `C${n}`, employees: 35, departments: 8 })),
  });
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints: ENDPOINTS, get: () => undefined });
  harness = harnessOf('harness');
});

afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});

beforeEach(async () => {
  beforeRequest = () => {};
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
});

function harnessOf(worker: string): SyncHarness {
  return syncHarness(database.db, sandbox, ENDPOINTS, {
    worker,
    beforeRequest: ({ path }) => beforeRequest(path),
    respond: ({ path, query }) => {
      const department = /\/departments\/([^/]+)\/tasks$/.exec(path)?.[1];
      if (department === undefined) return undefined;
      const all = Array.from({ length: 4 }, (_, n) => ({ id: n + 1, of: department, hours: '1.50' }));
      const data = all.slice(Number(query!['skip']), Number(query!['skip']) + Number(query!['take']));
      return JSON.stringify({ totalRecords: all.length, totalDisplayRecords: data.length, data });
    },
  });
}

const at = () => [company.environment, company.companyId];
const query = async (text: string, values: unknown[] = at()) => (await database.db.pool.query(text, values)).rows;
const idsOf = async (resource: string): Promise<string[]> =>
  (
    await query(
      `SELECT id FROM mirror."${resource}" WHERE environment = $1 AND company_id = $2 AND deleted_at IS NULL ORDER BY id`,
    )
  ).map(({ id }) => id as string);

/** A worker that hangs in its second page of employees, until it is thawed; its claim has lapsed. */
async function frozenIn(id: string): Promise<{ first: Promise<unknown>; thaw: () => void }> {
  let thaw = () => {};
  let reach = () => {};
  const thawed = new Promise<void>((resolve) => (thaw = resolve));
  const reached = new Promise<void>((resolve) => (reach = resolve));
  let pages = 0;
  beforeRequest = async (path) => {
    if (!path.endsWith('/employees') || ++pages !== 2) return;
    reach();
    await thawed;
  };
  const first = harness.work(id);
  await reached;
  await query(`UPDATE muster.runs SET heartbeat_at = now() - interval '1 minute' WHERE id = $1`, [id]);
  return { first, thaw };
}

describe('a run that verifies', () => {
  test('is the same run while it is queued or running, and another one after it', async () => {
    await harness.sync(company);
    const first = await harness.runs.requestVerification({ company, trigger: 'verify' });
    const again = await harness.runs.requestVerification({ company, trigger: 'verify', resources: ['employees'] });
    expect(again.id).toBe(first.id);
    expect(await harness.work(first.id)).toMatchObject({ status: 'succeeded' });
    const other = await harness.runs.requestVerification({ company, trigger: 'verify', resources: ['employees'] });
    expect(other.id).not.toBe(first.id);
    expect(other.walks.map(({ resource }) => resource)).toEqual(['employees']);
    await expect(harness.runs.requestVerification({ company, trigger: 'verify', resources: ['nothing'] })).rejects.toMatchObject({
      code: 'unknown_resource',
    });
  });

  test('waits for the sync that is asked for before it, and keeps none waiting that is asked for after it', async () => {
    const sync = await harness.runs.request({ company, trigger: 'manual' });
    const verification = await harness.runs.requestVerification({ company, trigger: 'verify' });
    expect(verification.id).not.toBe(sync.id);
    const claimable = async () => (await findClaimableRuns(database.db, { limit: 100 })).map(({ id }) => id);
    expect(await claimable()).toContain(sync.id);
    expect(await claimable()).not.toContain(verification.id);
    expect(await harness.work(verification.id)).toMatchObject({ status: 'queued' });
    await harness.work(sync.id);
    expect(await claimable()).toContain(verification.id);

    const later = await harness.runs.request({ company, trigger: 'manual' });
    expect(later.id).not.toBe(verification.id);
    expect(await harness.work(later.id)).toMatchObject({ status: 'succeeded', kind: 'sync' });
    expect(await harness.work(verification.id)).toMatchObject({ status: 'succeeded', kind: 'verify' });
  });

  test('finds nothing where a sync takes the list in the middle of it, and what it changes', async () => {
    await harness.sync(company);
    const other = harnessOf('other');
    let pages = 0;
    beforeRequest = async (path) => {
      if (!path.endsWith('/employees') || ++pages !== 3) return;
      const list = sandbox.list(company.companyId, 'employees');
      list.change(20);
      list.remove(1);
      await other.sync(company);
      // The newest walk is in the middle of the list, and has written a row that no proof covers; then its record is again as it was.
      const before = list.texts()[25]!;
      list.change(25);
      const { id } = await other.runs.request({ company, trigger: 'manual' });
      await other.work(id, { stopAfterPages: 3 });
      list.change(25, before);
    };
    const run = await harness.verify(company, { resources: ['employees'] });
    expect(pages).toBeGreaterThan(3);
    expect(run.walks[0]!.verify).toMatchObject({ missing: 0, extra: 0, different: 0, changed_since: 1 });
    await other.close();
  });

  test('begins its list again in another worker, and drops what the first one recorded', async () => {
    await harness.sync(company);
    const { id } = await harness.runs.requestVerification({ company, trigger: 'verify', resources: ['employees'] });
    const { first, thaw } = await frozenIn(id);
    const other = harnessOf('other');
    expect(await other.work(id)).toMatchObject({ status: 'succeeded', walks: [{ verify: { compared: 35, different: 0 } }] });
    thaw();
    await first;
    expect(await harness.read(id)).toMatchObject({ status: 'succeeded', walks: [{ pages: 4, verify: { compared: 35 } }] });
    await other.close();
  });

  test('can be cancelled while it is queued, and while it reads', async () => {
    await harness.sync(company);
    const queued = await harness.runs.requestVerification({ company, trigger: 'verify' });
    expect(await harness.runs.cancel(queued.id)).toMatchObject({ status: 'cancelled' });
    const { id } = await harness.runs.requestVerification({ company, trigger: 'verify' });
    const { first, thaw } = await frozenIn(id);
    await harness.runs.cancel(id);
    const other = harnessOf('other');
    expect(await other.work(id)).toMatchObject({ status: 'cancelled', walks: [{ status: 'cancelled' }, {}, {}] });
    thaw();
    await first;
    expect(await harness.read(id)).toMatchObject({ status: 'cancelled', walks: [{ status: 'cancelled' }, {}, {}] });
    expect(await query('SELECT FROM muster.second_reading_records', [])).not.toHaveLength(0);
    await removeOldNotes(database.db);
    expect(await query('SELECT FROM muster.second_reading_records', [])).toHaveLength(0);
    await other.close();
  });

  test('tries again where the service fails, and says of each list what failed', async () => {
    await harness.sync(company);
    beforeRequest = (path) => {
      if (path.endsWith('/departments/list')) throw new MusterError('service_refused', 'no');
    };
    const run = await harness.verify(company);
    expect(run).toMatchObject({
      status: 'failed',
      walks: [{ status: 'succeeded' }, { status: 'failed', error: { code: 'service_refused' } }, { status: 'failed' }],
    });
    expect(run.walks[1]).not.toHaveProperty('verify');
    // What a second reading meets is no trouble of the list.
    const found = await reconcileIssues(
      database.db,
      { take: (tx) => tryLock(tx, 'issues') },
      {
        resources: ENDPOINTS.map(({ resource }) => resource),
        exported: [],
        staleAfterHours: 26,
        secondsLeft: 80_000,
        isNightYoung: false,
        environments: [],
        isWorker: true,
        hasWebhook: false,
      },
    );
    expect(found.filter(({ cause }) => cause === 'service_refused')).toEqual([]);
  });

  test('is asked for neither of a paused company nor of one that is not there', async () => {
    await database.db.prisma.connection.updateMany({ where: company, data: { paused: true } });
    await expect(harness.runs.requestVerification({ company, trigger: 'verify' })).rejects.toMatchObject({
      code: 'company_paused',
    });
    const nobody = { environment: 'test', companyId: '00000000-0000-4000-8000-000000000000' } as const;
    await expect(harness.runs.requestVerification({ company: nobody, trigger: 'verify' })).rejects.toMatchObject({
      code: 'company_not_found',
    });
  });

  test('counts nowhere as a sync', async () => {
    const sync = await harness.sync(company);
    const verification = await harness.verify(company);
    const lists = await query(
      'SELECT last_run_id, verified_walk_id FROM muster.lists WHERE environment = $1 AND company_id = $2',
    );
    expect(lists.every(({ last_run_id }) => last_run_id === sync.id)).toBe(true);
    for (const view of ['runs', 'walks'])
      expect(await query(`SELECT FROM warehouse.${view} WHERE run_id = $1`, [verification.id])).toHaveLength(0);
    await nightSweep({ db: database.db, catalogue: { endpoints: ENDPOINTS }, schedule: SCHEDULE, clock: systemClock })();
    const others = await query(
      `SELECT count(DISTINCT (company_id, resource))::int AS lists FROM muster.walks WHERE kind = 'sync'`,
      [],
    );
    const [night] = await query(`SELECT sum(lists)::int AS lists FROM muster.nights`, []);
    expect(night.lists).toBe(others[0].lists);
    // The next sync goes by the last sync: nothing of it was left to do.
    const again = await harness.sync(company, { mode: 'resume' });
    expect(again.walks).toHaveLength(3);
    expect(again.walks.every(({ unchanged, received }) => unchanged === received)).toBe(true);
  });

  test('leaves no id of a record that must be erased', async () => {
    await harness.sync(company);
    const [first, second] = await idsOf('employees');
    for (const id of [first!, second!])
      await seedFault(database.db, 'removed', { company, other: company, resource: 'employees', id });
    const run = await harness.verify(company, { resources: ['employees'] });
    await inTransaction(database.db, (tx) =>
      eraseFromReadings(tx, { ...company, resource: 'employees' }, { ids: [first!], prefix: undefined }),
    );
    expect((await harness.read(run.id)).walks[0]!.verify).toMatchObject({
      missing: 2,
      sample: [{ id: second, kind: 'missing' }],
    });
  });

  test('passes over forgotten persons, and finds them where a person puts them back', async () => {
    await harness.sync(company);
    const [id] = await idsOf('employees');
    const list = { ...company, resource: 'employees' };
    const catalogue = { endpoints: ENDPOINTS, get: (name: string) => ENDPOINTS.find(({ resource }) => resource === name) };
    await inTransaction(database.db, (tx) => forgetRecord(tx, { catalogue, suppressions: testSuppressions }, { list, id: id! }));
    const clean = await harness.verify(company, { resources: ['employees'] });
    expect(clean.walks[0]!.verify).toMatchObject({ missing: 0, extra: 0, different: 0, changed_since: 0, sample: [] });
    await harness.sync(company);
    await seedFault(database.db, 'revived', { company, other: company, resource: 'employees', id: id! });
    const found = await harness.verify(company, { resources: ['employees'] });
    expect(found.walks[0]!.verify).toMatchObject({ extra: 1, sample: [{ id, kind: 'extra' }] });
  });

  test('leaves no ids where the company is removed', async () => {
    await harness.sync(company);
    const [id] = await idsOf('employees');
    await seedFault(database.db, 'removed', { company, other: company, resource: 'employees', id: id! });
    const run = await harness.verify(company, { resources: ['employees'] });
    expect(run.walks[0]!.verify!.sample).toHaveLength(1);
    await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'test', role: 'admin' }));
    expect((await harness.read(run.id)).walks[0]!.verify).toMatchObject({ missing: 1, sample: [] });
  });
});

describe('what is judged', () => {
  test('a child list, though its ledger keeps no hashes', async () => {
    await harness.sync(company);
    const [first, second, third] = await idsOf('tasks');
    const victim = { company, other: company, resource: 'tasks' };
    await query(
      `UPDATE mirror.tasks SET data = jsonb_set(data, '{hours}', '"1.5"') WHERE environment = $1 AND company_id = $2 AND id = $3`,
      [...at(), first],
    );
    await seedFault(database.db, 'removed', { ...victim, id: second! });
    await seedFault(database.db, 'added', { ...victim, id: 'nobody/1' });
    const { verify } = (await harness.verify(company, { resources: ['tasks'] })).walks[0]!;
    expect(verify).toMatchObject({ missing: 1, extra: 1, different: 1, compared: 32, changed_since: 0 });
    expect(verify!.sample).toEqual([
      { id: first, kind: 'different', members: ['hours'] },
      { id: 'nobody/1', kind: 'extra' },
      { id: second, kind: 'missing' },
    ]);
    expect(third).toBeDefined();
  });

  test('a row that a hold keeps is held, and one that a person adds next to it is extra', async () => {
    await harness.sync(company);
    sandbox.list(company.companyId, 'employees').remove(3, 10);
    await harness.sync(company);
    expect(await query(`SELECT FROM muster.holds WHERE environment = $1 AND company_id = $2 AND status = 'open'`)).toHaveLength(
      1,
    );
    await seedFault(database.db, 'added', { company, other: company, resource: 'employees', id: 'made up' });
    const { verify } = (await harness.verify(company, { resources: ['employees'] })).walks[0]!;
    expect(verify).toMatchObject({ held: 10, extra: 1, missing: 0, different: 0 });
  });

  test('a list that was never verified has no faults, and says so', async () => {
    const { verify } = (await harness.verify(company, { resources: ['employees'] })).walks[0]!;
    expect(verify).toMatchObject({ as_of: null, missing: 0, extra: 0, different: 0, changed_since: 35, compared: 35 });
  });

  test('what differs is an issue until a second reading finds nothing', async () => {
    const look = async () =>
      (
        await reconcileIssues(
          database.db,
          { take: (tx) => tryLock(tx, 'issues') },
          {
            resources: ENDPOINTS.map(({ resource }) => resource),
            exported: [],
            staleAfterHours: 26,
            secondsLeft: 80_000,
            isNightYoung: false,
            environments: [],
            isWorker: true,
            hasWebhook: false,
          },
        )
      ).filter(({ cause }) => cause === 'mirror_differs');
    await harness.sync(company);
    const [id] = await idsOf('departments');
    await query('UPDATE muster.second_readings SET faults = 0', []);
    await look();
    await seedFault(database.db, 'edited', { company, other: company, resource: 'departments', id: id! });
    await harness.verify(company);
    expect(await look()).toMatchObject([{ cause: 'mirror_differs', resource: 'departments', companies: 1, status: 'ongoing' }]);
    // A plain sync goes by what it knows and leaves the row; a full resync that a person asked for compares every record.
    await harness.sync(company, { mode: 'full' });
    expect(await look()).toEqual([]);
    await harness.verify(company);
    expect(await look()).toMatchObject([{ cause: 'mirror_differs', status: 'resolved' }]);
  });
});

test('the share of the night goes round: no company has a second turn before all had one', async () => {
  await query('DELETE FROM muster.connections', []);
  await query('DELETE FROM mirror.companies', []);
  const fleet: CompanyKey[] = [];
  for (let n = 0; n < 5; n += 1) fleet.push(await harness.onboard(sandbox.companies[n]!.companyId));
  let night = Date.now() - 10 * 86_400_000;
  const asked: string[][] = [];
  for (let n = 0; n < 5; n += 1) {
    night += 86_400_000;
    // The database's clock says when a turn was had, and cannot be moved: what was is moved back instead.
    await query(`UPDATE muster.connections SET verify_turn_at = verify_turn_at - interval '1 day'`, []);
    await query(`UPDATE muster.runs SET created_at = created_at - interval '1 day'`, []);
    await query(`UPDATE muster.runs SET status = 'succeeded', finished_at = now() WHERE status IN ('queued', 'running')`, []);
    const sweep = nightlyVerifications({
      db: database.db,
      runs: harness.runs,
      schedule: SCHEDULE,
      share: 0.4,
      clock: systemClock,
      logger: pino({ level: 'silent' }),
    });
    const runs = async () =>
      (
        await query(
          `SELECT company_id FROM muster.runs WHERE trigger = 'nightly_verify' AND created_at > now() - interval '1 hour' ORDER BY seq`,
          [],
        )
      ).map(({ company_id }) => company_id as string);
    await sweep();
    // Nobody's sync has ended yet.
    expect(await runs()).toEqual([]);
    const insert = `INSERT INTO muster.runs (environment, company_id, trigger, mode, status, finished_at)
      SELECT environment, company_id, 'nightly', 'full', 'succeeded', now() FROM muster.connections`;
    await query(insert, []);
    await sweep();
    await sweep();
    asked.push(await runs());
  }
  expect(asked.map((companies) => companies.length)).toEqual([2, 2, 2, 2, 2]);
  const turns = asked.flat();
  expect(new Set(turns.slice(0, 5)).size).toBe(5);
  expect(turns.slice(5, 10)).toEqual(turns.slice(0, 5));
});
