import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import type { Resource } from '../../src/sandbox/company-spec.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

let sandbox: Sandbox;
let database: TestDatabase;
let harnesses: Record<keyof typeof ENTRIES, SyncHarness>;
let company: CompanyKey;
let next = 0;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 24 }, (_, n) => ({
      name: `C${n}`,
      employees: 35,
      departments: 35,
      absences: 35,
      documents: 35,
    })),
  });
  database = await testDatabase();
  const all = endpointsOf(ENTRIES);
  await ensureMirrorTables(database.db, { endpoints: all, get: () => undefined });
  harnesses = Object.fromEntries(
    Object.entries(ENTRIES).map(([resource, entry]) => [
      resource,
      syncHarness(database.db, sandbox, endpointsOf({ [resource]: entry })),
    ]),
  ) as never;
});

afterAll(async () => {
  for (const harness of Object.values(harnesses)) await harness.close();
  await sandbox.stop();
  await database.close();
});

beforeEach(async () => {
  sandbox.faults.clear();
  company = await harnesses.employees.onboard(sandbox.companies[next++]!.companyId);
});

async function expectEqual(resource: Resource): Promise<void> {
  expect(await mirrored(database.db, resource, company.companyId)).toEqual(upstream(sandbox, resource, company.companyId));
}

describe('an envelope that is wrong', () => {
  test.each([
    ['a total that is too small', { totalRecords: 3 }],
    ['a total that is no number', { totalRecords: 'many' }],
    ['a display count that is another', { totalDisplayRecords: 1 }],
    ['no records at all', { data: undefined }],
    ['an empty page before the end', { data: [], totalDisplayRecords: 0 }],
  ])('once is asked for again: %s', async (_, members) => {
    sandbox.faults.add({ kind: 'alter', members }, { path: '/employees', skip: 1 });
    expect(await harnesses.employees.sync(company)).toMatchObject({
      walks: [{ verified: true, proof: 'join', pages: 4, passes: 1 }],
    });
    await expectEqual('employees');
  });

  test.each([
    ['a total that is too small', { totalRecords: 3 }],
    ['a total that is too large', { totalRecords: 50 }],
    ['a display count that is another', { totalDisplayRecords: 1 }],
  ])('always leaves the walk unverified, with everything mirrored: %s', async (_, members) => {
    await harnesses.employees.sync(company);
    sandbox.list(company.companyId, 'employees').remove(0, 1);
    sandbox.list(company.companyId, 'employees').insert(7);
    sandbox.faults.add({ kind: 'alter', members }, { path: '/employees', times: Infinity });
    const run = await harnesses.employees.sync(company);
    expect(run).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: false, unverified_reason: 'contradicting_envelope', inserted: 1, deleted: 0 }],
    });
    const rows = await mirrored(database.db, 'employees', company.companyId);
    expect(rows).toEqual(expect.arrayContaining(upstream(sandbox, 'employees', company.companyId)));
    expect(rows).toHaveLength(36);
  });

  test('always malformed: the walk fails, and keeps what it has', async () => {
    sandbox.faults.add(
      { kind: 'alter', members: { data: undefined } },
      { path: '/employees', input: { skip: '18' }, times: Infinity },
    );
    const run = await harnesses.employees.sync(company);
    expect(run).toMatchObject({
      status: 'failed',
      walks: [{ status: 'failed', verified: false, pages: 2, error: { code: 'malformed_envelope' } }],
    });
    sandbox.faults.clear();
    sandbox.requests.clear();
    expect(await harnesses.employees.sync(company)).toMatchObject({ walks: [{ verified: true, resumed: true, pages: 2 }] });
    await expectEqual('employees');
  });
});

describe('page tokens', () => {
  test('one that expired begins the walk again', async () => {
    sandbox.faults.add({ kind: 'status', status: 400 }, { path: '/documents', skip: 2 });
    expect(await harnesses.documents.sync(company)).toMatchObject({
      walks: [{ verified: true, proof: 'token-chain', passes: 2, received: 35, inserted: 35 }],
    });
    await expectEqual('documents');
  });

  test('that always expire end the attempt, and the next one begins again', async () => {
    for (const skip of [2, 4, 6, 8]) sandbox.faults.add({ kind: 'status', status: 410 }, { path: '/documents', skip });
    const run = await harnesses.documents.sync(company);
    expect(run).toMatchObject({ status: 'queued', attempts: 1, walks: [{ error: { code: 'page_token_expired' } }] });
    await harnesses.documents.runs.request({ company, trigger: 'manual' });
    expect(await harnesses.documents.work(run.id)).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: true, received: 35 }],
    });
    await expectEqual('documents');
  });

  test('of a list that says how many records it has lead to all of them, or prove nothing', async () => {
    const say = (totalRecords: unknown) =>
      sandbox.faults.add({ kind: 'alter', members: { totalRecords } }, { path: '/documents', times: Infinity });
    say(35);
    expect(await harnesses.documents.sync(company)).toMatchObject({
      walks: [{ verified: true, proof: 'token-chain', passes: 1, total_records: 35 }],
    });
    sandbox.faults.clear();
    say(36);
    expect(await harnesses.documents.sync(company)).toMatchObject({
      walks: [{ verified: false, unverified_reason: 'total_mismatch', passes: 3, received: 35, deleted: 0 }],
    });
    sandbox.faults.clear();
    say(-1);
    expect(await harnesses.documents.sync(company)).toMatchObject({ walks: [{ verified: true, proof: 'token-chain' }] });
  });

  test('of a list that says on its first page alone how many records it has lead to all of them', async () => {
    sandbox.faults.add({ kind: 'alter', members: { totalRecords: 35 } }, { path: '/documents' });
    expect(await harnesses.documents.sync(company)).toMatchObject({ walks: [{ verified: true, passes: 1, total_records: 35 }] });
  });

  test('that lead in a circle fail the walk after three new beginnings', async () => {
    sandbox.requests.clear();
    await harnesses.documents.sync(company);
    const { continuationToken } = sandbox.requests.all('/documents')[1]!.input as { continuationToken: string };
    const members = { hasNextPage: true, nextPageToken: continuationToken };
    sandbox.faults.add({ kind: 'alter', members }, { path: '/documents', times: Infinity });
    const run = await harnesses.documents.sync(company);
    expect(run).toMatchObject({ status: 'failed', walks: [{ verified: false, deleted: 0, error: { code: 'page_token_loop' } }] });
  });

  test('an empty page with a token goes on', async () => {
    sandbox.faults.add({ kind: 'alter', members: { data: [] } }, { path: '/documents', skip: 1 });
    expect(await harnesses.documents.sync(company)).toMatchObject({ walks: [{ verified: true, received: 25, pages: 4 }] });
  });
});

describe('records that cannot be kept', () => {
  test.each([
    ['nul', '{"uid":"x","name":"a\\u0000b"}'],
    ['lone_surrogate', '{"uid":"x","name":"\\ud800"}'],
    ['no_id', '{"name":"nobody"}'],
    ['not_an_object', '17'],
  ])('%s: kept aside, the walk goes on and is unverified', async (reason, text) => {
    sandbox.list(company.companyId, 'employees').insert(12, text);
    const run = await harnesses.employees.sync(company);
    expect(run).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: false, unverified_reason: 'rejected_records', received: 36, inserted: 35, rejected: 1, deleted: 0 }],
    });
    const rejected = await database.db.prisma.rejectedRecord.findMany({ where: { walk: { runId: run.id } } });
    expect(rejected).toMatchObject([{ reason, page: 1, position: 3 }]);
    expect(Buffer.from(rejected[0]!.text, 'base64').toString()).toBe(text);
  });

  test('two records with one id: the last one wins, and both are counted', async () => {
    const list = sandbox.list(company.companyId, 'employees');
    const { uid } = JSON.parse(list.texts()[3]!) as { uid: string };
    list.insert(30, JSON.stringify({ uid, name: 'the last' }));
    const run = await harnesses.employees.sync(company);
    expect(run).toMatchObject({ walks: [{ verified: false, unverified_reason: 'duplicate_ids', received: 35, duplicates: 1 }] });
    const row = await database.db.prisma.employee.findFirstOrThrow({ where: { companyId: company.companyId, id: uid } });
    expect(row.data).toMatchObject({ name: 'the last' });
  });
});

test('a list that is seen in another order needs two passes from then on', async () => {
  const list = sandbox.list(company.companyId, 'employees');
  expect(await harnesses.employees.sync(company)).toMatchObject({ walks: [{ proof: 'join', passes: 1 }] });
  expect(await harnesses.employees.sync(company)).toMatchObject({ walks: [{ proof: 'join', passes: 1 }] });
  const moved = list.texts()[20]!;
  list.remove(20);
  list.insert(2, moved);
  expect(await harnesses.employees.sync(company)).toMatchObject({ walks: [{ verified: true, proof: 'two-pass', passes: 2 }] });
  expect(await harnesses.employees.sync(company)).toMatchObject({ walks: [{ verified: true, proof: 'two-pass', passes: 2 }] });
  await expectEqual('employees');
});

test('inserts and deletes are no change of the order', async () => {
  const list = sandbox.list(company.companyId, 'employees');
  for (let n = 0; n < 3; n += 1) {
    expect(await harnesses.employees.sync(company)).toMatchObject({ walks: [{ verified: true, proof: 'join' }] });
    list.insert(0);
    list.remove(9);
    list.insert(20);
  }
});

test('a catalogue that names records by another member is refused until it names them as before', async () => {
  await harnesses.employees.sync(company);
  const rekeyed = syncHarness(database.db, sandbox, endpointsOf({ employees: { ...ENTRIES.employees, id: ['employeeNumber'] } }));
  const run = await rekeyed.sync(company, { mode: 'full' });
  expect(run).toMatchObject({ status: 'failed', walks: [{ status: 'failed', error: { code: 'rekey_required' }, inserted: 0 }] });
  await rekeyed.close();
  await expectEqual('employees');
  expect(await harnesses.employees.sync(company)).toMatchObject({ walks: [{ verified: true }] });
});
