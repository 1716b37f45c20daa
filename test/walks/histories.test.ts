import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { MusterError } from '../../src/core/errors.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { approveHold } from '../../src/mirror/holds.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf, feed } from './company-fixture.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let company: CompanyKey;
let before: (request: ApiRequest) => void = () => {};
let next = 0;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 12 }, (_, n) => ({ name: `C${n}`, employees: 60, departments: 25, absences: 45 })),
  });
  database = await testDatabase();
  const { employees, departments, absences } = ENTRIES;
  const endpoints = endpointsOf({ employees, departments, absences });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  harness = syncHarness(database.db, sandbox, endpoints, { beforeRequest: (request) => before(request) });
});

afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});

beforeEach(async () => {
  sandbox.faults.clear();
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
});

async function expectEqual(): Promise<void> {
  const { companyId } = company;
  expect(await mirrored(database.db, 'employees', companyId)).toEqual(upstream(sandbox, 'employees', companyId));
  const list = await database.db.prisma.list.findFirstOrThrow({ where: { companyId, resource: 'employees' } });
  expect(list.records).toBe(sandbox.list(companyId, 'employees').size);
}

test('walk 1 verified, walk 2 cancelled after it wrote, the service reverts: walk 3 leaves the mirror right', async () => {
  const list = sandbox.list(company.companyId, 'employees');
  expect((await harness.sync(company)).walks[0]).toMatchObject({ verified: true });
  const was = list.texts()[4]!;
  list.change(4, was.replace('{', '{"changed":true,'));
  const half = await harness.sync(company, { mode: 'full' }, { stopAfterPages: 2 });
  expect(half).toMatchObject({ status: 'running', walks: [{ updated: 1, pages: 2 }, {}, {}] });
  await harness.runs.cancel(half.id);
  expect(await harness.work(half.id)).toMatchObject({ status: 'cancelled' });
  list.change(4, was);
  expect((await harness.sync(company, { mode: 'full' })).walks[0]).toMatchObject({ verified: true, updated: 1, deleted: 0 });
  await expectEqual();
  await stampChanges(database.db);
  const { id } = (await feed(database.db, company.companyId)).find(({ op }) => op === 'update')!;
  const changes = (await feed(database.db, company.companyId)).filter((change) => change.id === id).map(({ op }) => op);
  expect(changes).toEqual(['insert', 'update', 'update']);
});

test('after an approved hold the records that come back are restored', async () => {
  const list = sandbox.list(company.companyId, 'employees');
  const all = list.texts();
  await harness.sync(company);
  list.remove(0, 60);
  await harness.sync(company);
  const hold = await database.db.prisma.hold.findFirstOrThrow({ where: { ...company, status: 'open' } });
  await approveHold(database.db, hold.id);
  await expectEqual();
  for (const text of all) list.insert(list.size, text);
  expect((await harness.sync(company)).walks[0]).toMatchObject({ verified: true, inserted: 0, updated: 60 });
  await expectEqual();
  await stampChanges(database.db);
  const ops = (await feed(database.db, company.companyId)).filter(({ resource }) => resource === 'employees').map(({ op }) => op);
  expect(ops).toEqual([...Array(60).fill('insert'), ...Array(60).fill('delete'), ...Array(60).fill('restore')]);
});

test('a company that was removed in the middle of a walk stays removed, and comes back whole', async () => {
  await harness.sync(company);
  const half = await harness.sync(company, { mode: 'full' }, { stopAfterPages: 2 });
  await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'test', role: 'admin' }));
  await harness.work(half.id);
  expect(await mirrored(database.db, 'employees', company.companyId)).toEqual([]);
  await harness.onboard(company.companyId);
  expect((await harness.sync(company)).walks[0]).toMatchObject({ verified: true, inserted: 60, resumed: false });
  await expectEqual();
});

test('a changed catalogue begins an interrupted walk again', async () => {
  const half = await harness.sync(company, {}, { stopAfterPages: 3 });
  const { employees, departments, absences } = ENTRIES;
  const changed = { ...employees, pager: { ...employees.pager, size: 7 } };
  const other = syncHarness(database.db, sandbox, endpointsOf({ employees: changed, departments, absences }));
  const run = await other.work(half.id);
  expect(run.walks[0]).toMatchObject({ verified: true, received: 60, pages: 3 + 10, resumed: false });
  await other.close();
  await expectEqual();
});

test('after a rekey the records come back under their new ids', async () => {
  await harness.sync(company);
  const renamed = { ...ENTRIES.employees, id: ['employeeNumber'] };
  const other = syncHarness(database.db, sandbox, endpointsOf({ employees: renamed }));
  await rekeyList(database.db, { ...company, resource: 'employees' });
  const run = await other.sync(company, { mode: 'full' });
  await other.close();
  const numbered = upstream(sandbox, 'employees', company.companyId).filter((text) => text.includes('"employeeNumber"')).length;
  expect(run.walks[0]).toMatchObject({ inserted: numbered, rejected: 60 - numbered });
});

test('an interrupted run of three resources, resumed, asks for nothing that was complete', async () => {
  sandbox.faults.add({ kind: 'status', status: 403 }, { path: '/departments', skip: 1, times: Infinity });
  const broken = await harness.sync(company);
  expect(broken).toMatchObject({
    status: 'failed',
    walks: [{ status: 'succeeded' }, { status: 'failed', error: { code: 'service_refused' } }, { status: 'succeeded' }],
  });
  sandbox.faults.clear();
  sandbox.requests.clear();
  const resumed = await harness.sync(company);
  expect(resumed.walks).toMatchObject([{ resource: 'departments', verified: true, resumed: true, received: 25, pages: 2 }]);
  const asked = sandbox.requests.all().filter(({ path }) => path.includes('employees') || path.includes('absences'));
  expect(asked).toEqual([]);
  const offsets = sandbox.requests.all('/departments').map(({ input }) => input['skip']);
  expect(offsets.toSorted()).toEqual([18, 9]);
});

test('a company that was removed in its second list comes back with its first one, too', async () => {
  await harness.sync(company, {}, { stopAfterPages: 9 });
  await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'test', role: 'admin' }));
  await harness.onboard(company.companyId);
  expect((await harness.sync(company, { trigger: 'onboarding' })).walks).toMatchObject([{ inserted: 60 }, {}, {}]);
  await expectEqual();
});

test('a number that comes with other digits is written, by a walk with a baseline and by one without', async () => {
  const list = sandbox.list(company.companyId, 'employees');
  const was = list.texts()[3]!;
  const write = (number: string) => list.change(3, was.replace('{', `{"pay":${number},`));
  write('1.50');
  await harness.sync(company);
  for (const [number, request] of [
    ['1.5', { mode: 'full' }],
    ['1.500', { mode: 'full', trigger: 'nightly' }],
  ] as const) {
    write(number);
    expect((await harness.sync(company, request)).walks[0]).toMatchObject({ verified: true, updated: 1, unchanged: 59 });
    await expectEqual();
  }
});

test('a run that a worker without settings for its environment took waits for one that has them', async () => {
  before = () => {
    throw new MusterError('environment_not_configured', 'none');
  };
  expect(await harness.sync(company)).toMatchObject({ status: 'queued', attempts: 1, error: { code: 'walks_failed' } });
  before = () => {};
  expect(await harness.sync(company)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }, {}, {}] });
});

test('a run waits to retry where a list failed by an error that is retryable here, though its code is not', async () => {
  before = () => {
    throw new MusterError('service_refused', 'not yet', { retryable: true });
  };
  const run = await harness.sync(company, { resources: ['employees'] });
  expect(run).toMatchObject({ status: 'queued', attempts: 1, walks: [{ error: { code: 'service_refused' } }] });
  before = () => {};
});

test('a service that asks to be left alone for long is, by the whole run', async () => {
  sandbox.requests.clear();
  sandbox.faults.add({ kind: 'status', status: 429, headers: { 'retry-after': '900' } }, { path: '/employees' });
  const asked = Date.now();
  const run = await harness.sync(company, { resources: ['employees'] });
  expect(run).toMatchObject({ status: 'queued', attempts: 1, walks: [{ error: { code: 'service_throttled' } }] });
  const retryAt = new Date(run.retry_at!).getTime();
  expect(retryAt - asked).toBeGreaterThan(890_000);
  expect(retryAt - Date.now()).toBeLessThan(960_000);
  expect(sandbox.requests.all('/employees').filter(({ status }) => status === 429)).toHaveLength(1);
});

test('a service that is gone for a while costs an attempt and no page; the delay grows, and then the run is given up', async () => {
  let requests = 0;
  before = ({ path }) => {
    if (path.endsWith('/employees') && ++requests > 2) throw new MusterError('service_unreachable', 'gone');
  };
  const run = await harness.sync(company, { resources: ['employees'] });
  expect(run).toMatchObject({
    status: 'queued',
    attempts: 1,
    walks: [{ status: 'failed', error: { code: 'service_unreachable' }, pages: 2 }],
  });
  const delays = [new Date(run.retry_at!).getTime() - Date.now()];
  for (let attempt = 2; attempt <= 9; attempt += 1) {
    await database.db.prisma.run.update({ where: { id: run.id }, data: { startAfter: new Date(0) } });
    const again = await harness.work(run.id);
    if (attempt < 9) delays.push(new Date(again.retry_at!).getTime() - Date.now());
    else expect(again).toMatchObject({ status: 'failed', walks: [{ pages: 2 }] });
  }
  expect(delays).toEqual(delays.toSorted((a, b) => a - b));
  expect(delays.at(-1)!).toBeGreaterThan(20 * 60_000);
  before = () => {};
  expect(await harness.sync(company)).toMatchObject({
    walks: [
      { resource: 'employees', verified: true, resumed: true, received: 60 },
      { resource: 'departments' },
      { resource: 'absences' },
    ],
  });
  await expectEqual();
});
