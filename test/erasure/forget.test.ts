import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Catalogue, Endpoint } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { deleteExpiredErasureNotices } from '../../src/db/tables/change-erasure.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { forgetAgain, forgetRecord, unsuppress } from '../../src/erasure/forget.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { occurrencesOf } from '../support/occurrences.js';
import { testSuppressions } from '../support/suppressions.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;
const FULL = { trigger: 'manual', mode: 'full' } as const;
const EMPLOYEES = 60;
/** A record in the middle of a page, and the first one of the next page. */
const MIDDLE = 33;
const FIRST = 20;

const catalogueOf = (endpoints: readonly Endpoint[]): Catalogue => ({
  endpoints,
  get: (resource) => endpoints.find((endpoint) => endpoint.resource === resource),
});
const BY_UID = endpointsOf({ employees: ENTRIES.employees });
const BY_EMAIL = endpointsOf({ employees: { ...ENTRIES.employees, id: ['email'] } });
const BY_NUMBER = endpointsOf({ employees: { ...ENTRIES.employees, id: ['employeeNumber'] } });

interface Employee {
  readonly uid: string;
  readonly canary: string;
}

describe.each([false, true])('the service gives ETags: %s', (etags) => {
  let sandbox: Sandbox;
  let database: TestDatabase;
  let harness: SyncHarness;
  let others: SyncHarness[];
  let company: CompanyKey;
  let next = 0;
  /** Done before the request of this number, counted from 1; once. */
  let beforeRequest: { readonly number: number; readonly work: () => Promise<unknown> } | undefined;
  let requests = 0;

  beforeAll(async () => {
    sandbox = await startSandbox({
      etags,
      companies: Array.from({ length: 20 }, (_, n) => ({ name: `C${n}`, employees: EMPLOYEES })),
    });
    database = await testDatabase();
    harness = syncHarness(database.db, sandbox, BY_UID, {
      beforeRequest: async () => {
        requests += 1;
        if (requests === beforeRequest?.number) await beforeRequest.work();
      },
    });
    others = [BY_NUMBER, BY_EMAIL].map((endpoints) => syncHarness(database.db, sandbox, endpoints));
  });
  afterAll(async () => {
    for (const each of [harness, ...others]) await each.close();
    await sandbox.stop();
    await database.close();
  });
  beforeEach(async () => {
    [requests, beforeRequest] = [0, undefined];
    company = await harness.onboard(sandbox.companies[next++]!.companyId);
    for (const [at, text] of texts().texts().entries())
      texts().change(at, text.replace('{', `{"canary":"canary-${randomUUID()}",`));
  });

  const list = () => ({ ...company, resource: 'employees' });
  const texts = () => sandbox.list(company.companyId, 'employees');
  const employee = (at: number) => JSON.parse(texts().texts()[at]!) as Employee;
  const deps = (endpoints = BY_UID) => ({ catalogue: catalogueOf(endpoints), suppressions: testSuppressions });
  const forget = async (id: string, endpoints?: readonly Endpoint[]) =>
    (await inTransaction(database.db, (tx) => forgetRecord(tx, deps(endpoints), { list: list(), id }))).rows;
  const lift = (id: string) => inTransaction(database.db, (tx) => unsuppress(tx, deps(), { list: list(), id }));
  const again = () => inTransaction(database.db, (tx) => forgetAgain(tx, deps(), list()));
  const touch = (at: number) => texts().change(at, texts().texts()[at]!.replace('{', `{"touched":${Math.random()},`));

  async function rows(where = 'deleted_at IS NULL'): Promise<string[]> {
    const { rows: found } = await database.db.pool.query<{ id: string }>(
      `SELECT id FROM mirror.employees WHERE company_id = $1 AND ${where} ORDER BY id`,
      [company.companyId],
    );
    return found.map(({ id }) => id);
  }

  async function changes(): Promise<{ id: string; op: string; data: string | null }[]> {
    await stampChanges(database.db);
    const { rows: found } = await database.db.pool.query<{ id: string; op: string; data: string | null }>(
      'SELECT id, op, data::text FROM mirror.changes WHERE company_id = $1 ORDER BY seq',
      [company.companyId],
    );
    return found;
  }

  /** Where the person is found, by its id and by what nobody else's record holds. */
  async function places(at: number): Promise<string[]> {
    const { uid, canary } = employee(at);
    await stampChanges(database.db);
    const found = [await occurrencesOf(database.db, uid), await occurrencesOf(database.db, canary)];
    return [...new Set(found.flat())].toSorted();
  }

  const FEED = ['mirror.changes.id', 'muster.changes.record_id', 'muster.stamped_changes.record_id'];

  test.each([MIDDLE, FIRST])('record %i stays away for three nights, a full resync, and changes of its text', async (at) => {
    await harness.sync(company);
    const { uid } = employee(at);
    expect(await forget(uid)).toBe(1);
    for (const request of [NIGHTLY, NIGHTLY, NIGHTLY, FULL, undefined]) {
      const run = await harness.sync(company, request);
      expect(run.walks).toMatchObject([{ verified: true, received: EMPLOYEES, deleted: 0, total_records: EMPLOYEES }]);
      expect(await rows('true')).toHaveLength(EMPLOYEES - 1);
      expect(await rows('true')).not.toContain(uid);
      expect(await database.db.prisma.list.findFirst({ where: company })).toMatchObject({ records: EMPLOYEES - 1 });
      expect(await places(at)).toEqual(FEED);
      touch(at);
      touch(at + 1);
    }
    expect(await database.db.prisma.hold.count({ where: company })).toBe(0);
  });

  test('readers of the feed are told once, and the id leaves the feed when they had time', async () => {
    await harness.sync(company);
    touch(MIDDLE);
    await harness.sync(company, NIGHTLY);
    const { uid } = employee(MIDDLE);
    const before = await changes();
    await forget(uid);
    await forget(uid);
    const after = await changes();
    expect(after).toHaveLength(before.length + 1);
    expect(after.at(-1)).toEqual({ id: uid, op: 'delete', data: null });
    for (const [n, change] of before.entries())
      expect(after[n]).toEqual(
        change.id === uid ? { id: expect.stringMatching(/^#[0-9a-f]{32}$/), op: 'delete', data: null } : change,
      );
    await database.db.prisma.erasureNotice.updateMany({ data: { toldAt: new Date(0) } });
    await deleteExpiredErasureNotices(database.db, { days: 30, limit: 10 });
    expect(await places(MIDDLE)).toEqual([]);
    expect((await changes()).at(-1)).toEqual({ id: expect.stringMatching(/^#/), op: 'delete', data: null });
  });

  test('of an id that nobody knows the mark is made', async () => {
    expect(await forget(employee(MIDDLE).uid)).toBe(0);
    expect((await harness.sync(company)).walks).toMatchObject([{ verified: true, received: EMPLOYEES, inserted: EMPLOYEES - 1 }]);
    expect(await rows()).not.toContain(employee(MIDDLE).uid);
    expect(await places(MIDDLE)).toEqual([]);
  });

  test('a lifted mark lets the record in again, though no page of the service has changed', async () => {
    await harness.sync(company);
    const { uid } = employee(MIDDLE);
    await forget(uid);
    for (let night = 0; night < 2; night++) await harness.sync(company, NIGHTLY);
    expect(await lift(uid)).toBe(true);
    expect(await lift(uid)).toBe(false);
    expect((await harness.sync(company, NIGHTLY)).walks).toMatchObject([{ verified: true, inserted: 1 }]);
    expect(await rows()).toContain(uid);
    expect(await database.db.prisma.suppression.count({ where: company })).toBe(0);
    expect((await harness.sync(company, NIGHTLY)).walks).toMatchObject([{ verified: true, inserted: 0, unchanged: EMPLOYEES }]);
  });

  test('a lift in the middle of a walk that has passed the record lets it in again', async () => {
    await harness.sync(company);
    const { uid } = employee(5);
    await forget(uid);
    await harness.sync(company, NIGHTLY);
    touch(50);
    let run = await harness.sync(company, NIGHTLY, { stopAfterPages: 3 });
    await lift(uid);
    while (run.status === 'running') run = await harness.work(run.id);
    expect(await rows()).toContain(uid);
  });

  test.each([1, 3, 5])('a walk that is under way at its request %i does not bring the record back', async (number) => {
    await harness.sync(company);
    for (let at = 0; at < EMPLOYEES; at += 7) touch(at);
    touch(MIDDLE);
    const { uid } = employee(MIDDLE);
    beforeRequest = { number: requests + number, work: () => forget(uid) };
    let run = await harness.sync(company, NIGHTLY);
    while (run.status === 'running') run = await harness.work(run.id);
    expect(run.walks).toMatchObject([{ verified: true, deleted: 0 }]);
    expect(await rows('true')).not.toContain(uid);
    expect(await rows()).toHaveLength(EMPLOYEES - 1);
    expect(await places(MIDDLE)).toEqual(FEED);
  });

  test.each([1, 3, 5])('nor does a first walk, at its request %i', async (number) => {
    const { uid } = employee(MIDDLE);
    beforeRequest = { number: requests + number, work: () => forget(uid) };
    let run = await harness.sync(company);
    while (run.status === 'running') run = await harness.work(run.id);
    expect(run.walks).toMatchObject([{ verified: true, received: EMPLOYEES }]);
    expect(await rows('true')).toHaveLength(EMPLOYEES - 1);
  });

  test('rekeyed to another member and back, the record stays away', async () => {
    await harness.sync(company);
    const at = MIDDLE;
    const { uid } = employee(at);
    await forget(uid);
    for (const each of [others[0]!, others[1]!, harness]) {
      await rekeyList(database.db, list());
      expect((await each.sync(company)).walks).toMatchObject([{ verified: true, received: EMPLOYEES }]);
      expect(await rows()).toHaveLength(EMPLOYEES - 1);
      expect(await rows(`data->>'uid' = '${uid}'`)).toEqual([]);
    }
  });

  test('rows under ids that the record had before a rekey go with it', async () => {
    await others[0]!.sync(company);
    await rekeyList(database.db, list());
    await harness.sync(company);
    const { uid } = employee(MIDDLE);
    expect(await forget(uid)).toBe(2);
    expect(await rows(`data->>'uid' = '${uid}'`)).toEqual([]);
    expect(await places(MIDDLE)).toEqual(FEED);
  });

  test('rows that a backup brought back are erased again, as often as asked', async () => {
    await harness.sync(company);
    const { rows: backup } = await database.db.pool.query('SELECT * FROM mirror.employees WHERE company_id = $1', [
      company.companyId,
    ]);
    const { uid } = employee(MIDDLE);
    await forget(uid);
    expect(await again()).toBe(0);
    const lost = backup.find(({ id }) => id === uid) as { environment: string; data: unknown };
    await database.db.pool.query('INSERT INTO mirror.employees (environment, company_id, id, data) VALUES ($1, $2, $3, $4)', [
      lost.environment,
      company.companyId,
      uid,
      lost.data,
    ]);
    expect(await again()).toBe(1);
    expect(await again()).toBe(0);
    expect(await rows()).not.toContain(uid);
    expect(await places(MIDDLE)).toEqual(FEED);
  });

  test('a company that is removed and comes back comes without the record', async () => {
    await harness.sync(company);
    const { uid } = employee(MIDDLE);
    await forget(uid);
    await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'admin', role: 'admin' }));
    await harness.onboard(company.companyId);
    await harness.sync(company);
    expect(await rows()).toHaveLength(EMPLOYEES - 1);
  });
});
