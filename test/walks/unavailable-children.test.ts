import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

// Optional child lists. The sandbox refuses the tasks of the departments in `refused`; the others have two tasks each.

const TASKS = {
  method: 'GET',
  path: '/api/companies/{company_id}/departments/{id}/tasks',
  parent: 'departments',
  pager: { style: 'skip-take', in: 'query', size: 3 },
};

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let ofOptionalParents: SyncHarness;
let company: CompanyKey;
let next = 0;
let departments: string[];
let refused: Set<string>;
let asked: string[];
/** Whether the other parents have no task. */
let empty = false;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 16 }, (_, n) => ({ name: `C${n}`, employees: 0, departments: 6 })),
  });
  database = await testDatabase();
  const endpoints = endpointsOf({
    departments: ENTRIES.departments,
    tasks: { ...TASKS, optional: true },
  });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  const clock = { ...systemClock, sleep: async () => {} };
  harness = syncHarness(database.db, sandbox, endpoints, { clock, respond: tasksPage });
  const lacking = endpointsOf({ departments: { ...ENTRIES.departments, optional: true }, tasks: TASKS });
  ofOptionalParents = syncHarness(database.db, sandbox, lacking, { clock, respond: tasksPage });
});
afterAll(async () => {
  await harness.close();
  await ofOptionalParents.close();
  await sandbox.stop();
  await database.close();
});
beforeEach(async () => {
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
  departments = sandbox
    .records(company.companyId, 'departments')
    .map((text) => JSON.parse(text) as { uid?: string; id?: string | number })
    .map(({ uid, id }) => String(uid ?? id))
    .toSorted();
  refused = new Set(departments);
  asked = [];
  empty = false;
});

function tasksPage({ path, query }: ApiRequest): string | undefined {
  const department = /\/departments\/([^/]+)\/tasks$/.exec(path)?.[1];
  if (department === undefined) return undefined;
  const id = decodeURIComponent(department);
  asked.push(id);
  if (refused.has(id)) return undefined;
  const all = empty ? [] : [{ id: 1 }, { id: 2 }];
  const data = all.slice(Number(query!['skip']));
  return JSON.stringify({ totalRecords: all.length, totalDisplayRecords: data.length, data });
}

function refuse(status: number): void {
  sandbox.faults.clear();
  const headers = { 'content-type': 'application/json' };
  sandbox.faults.add({ kind: 'status', status, headers, body: '{"message":"No tasks."}' }, { path: /\/tasks$/, times: Infinity });
}

const list = () => database.db.prisma.list.findFirst({ where: { companyId: company.companyId, resource: 'tasks' } });

test.each([402, 403, 404])('of which every parent is refused with %i is unavailable', async (status) => {
  refuse(status);
  expect(await harness.sync(company)).toMatchObject({
    status: 'succeeded',
    walks: [{ verified: true }, { status: 'succeeded', unverified_reason: 'unavailable', service_says: 'No tasks.' }],
  });
  expect((await list())!.unavailableSince).not.toBeNull();
  refused.clear();
  expect((await harness.sync(company)).walks[1]).toMatchObject({ verified: true, received: 12 });
  expect((await list())!.unavailableSince).toBeNull();
});

test('of which every parent is refused in HTML is unavailable once it stays so', async () => {
  sandbox.faults.clear();
  const headers = { 'content-type': 'text/html' };
  sandbox.faults.add({ kind: 'status', status: 404, headers, body: '<html></html>' }, { path: /\/tasks$/, times: Infinity });
  let run = await harness.sync(company);
  for (; run.status === 'queued'; run = await harness.work(run.id))
    await database.db.prisma.run.update({ where: { id: run.id }, data: { startAfter: new Date(0) } });
  expect(run).toMatchObject({ status: 'succeeded', walks: [{ verified: true }, { unverified_reason: 'unavailable' }] });
  expect(await harness.sync(company)).toMatchObject({ status: 'succeeded', attempts: 0 });
});

test('of which some parents are refused is mirrored for the others, and unverified', async () => {
  refused = new Set(departments.slice(0, 2));
  refuse(403);
  expect(await harness.sync(company)).toMatchObject({
    status: 'succeeded',
    walks: [{ verified: true }, { unverified_reason: 'parent_refused', received: 8 }],
  });
  expect((await list())!.unavailableSince).toBeNull();
  // So in the nights that follow: what the other parents have is mirrored, and the rows of those that are refused now stay.
  refused = new Set(departments.slice(1, 3));
  for (let night = 2; night <= 3; night += 1)
    expect(await harness.sync(company, { mode: 'full' })).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: true }, { unverified_reason: 'parent_refused', received: 8, deleted: 0 }],
    });
  expect(await list()).toMatchObject({ unavailableSince: null, records: 10 });
});

test('of which parents are refused after a parent that was committed goes on when its worker makes room', async () => {
  refused = new Set(departments.slice(2, 4));
  refuse(403);
  await harness.sync(company, { resources: ['departments'] });
  const { id } = await harness.runs.request({ company, trigger: 'manual', resources: ['tasks'] });
  let run = await harness.work(id, { stopAfterPages: 2 });
  for (let slice = 0; run.status === 'running' && slice < 20; slice += 1) run = await harness.work(id, { stopAfterPages: 2 });
  expect(run).toMatchObject({ status: 'succeeded', walks: [{ unverified_reason: 'parent_refused', received: 8 }] });
});

test('of which parents are refused is read a second time for the others', async () => {
  refused = new Set(departments.slice(0, 2));
  refuse(403);
  await harness.sync(company);
  expect(await harness.verify(company, { resources: ['tasks'] })).toMatchObject({
    status: 'succeeded',
    walks: [{ verify: { compared: 8, different: 0 } }],
  });
  // A 401 is about the token or the role, and not about the parent.
  refuse(401);
  expect(await harness.verify(company, { resources: ['tasks'] })).toMatchObject({
    walks: [{ status: 'failed', error: { code: 'service_refused' } }],
  });
});

test('goes on after the parents that were refused when its worker makes room', async () => {
  refuse(404);
  await harness.sync(company, { resources: ['departments'] });
  const { id } = await harness.runs.request({ company, trigger: 'manual', resources: ['tasks'] });
  let run = await harness.work(id, { stopAfterPages: 1 });
  for (let slice = 0; run.status === 'running' && slice < 20; slice += 1) run = await harness.work(id, { stopAfterPages: 1 });
  expect(run.walks.find(({ resource }) => resource === 'tasks')).toMatchObject({ unverified_reason: 'unavailable' });
  expect(asked).toEqual(departments);
});

test('goes on past the parents that were refused after a failure that passes', async () => {
  await harness.sync(company, { resources: ['departments'] });
  refused = new Set(departments.slice(0, 4));
  const { faults } = sandbox;
  faults.clear();
  const headers = { 'content-type': 'application/json' };
  const path = /\/tasks$/;
  faults.add({ kind: 'status', status: 404, headers, body: '{}' }, { path, times: 3 });
  faults.add({ kind: 'status', status: 503 }, { path, times: 5 });
  faults.add({ kind: 'status', status: 404, headers, body: '{}' }, { path, times: Infinity });
  const run = await harness.sync(company, { resources: ['tasks'] });
  expect(run).toMatchObject({ status: 'queued', attempts: 1 });
  asked = [];
  await database.db.prisma.run.update({ where: { id: run.id }, data: { startAfter: new Date(0) } });
  expect(await harness.work(run.id)).toMatchObject({ walks: [{ unverified_reason: 'parent_refused', received: 4 }] });
  expect(new Set(asked)).toEqual(new Set(departments.slice(3)));
});

test('that some parents have is not unavailable where its walk was gone on from by another run', async () => {
  await harness.sync(company, { resources: ['departments'] });
  refused = new Set(departments.slice(3));
  empty = true;
  refuse(400);
  expect(await harness.sync(company, { resources: ['tasks'] })).toMatchObject({ status: 'failed' });
  refuse(403);
  asked = [];
  expect(await harness.sync(company, { resources: ['tasks'] })).toMatchObject({
    status: 'succeeded',
    walks: [{ unverified_reason: 'parent_refused' }],
  });
  expect(asked).toEqual(departments.slice(3));
  expect((await list())!.unavailableSince).toBeNull();
});

test('that was proved without parents is unavailable where the first parent refuses it', async () => {
  sandbox.faults.clear();
  const texts = sandbox.list(company.companyId, 'departments').texts();
  sandbox.list(company.companyId, 'departments').remove(0, texts.length);
  expect(await harness.sync(company)).toMatchObject({ walks: [{ verified: true }, { verified: true, received: 0 }] });
  for (const text of texts) sandbox.list(company.companyId, 'departments').insert(0, text);
  refuse(403);
  expect(await harness.sync(company, { mode: 'full' })).toMatchObject({
    status: 'succeeded',
    walks: [{ verified: true }, { unverified_reason: 'unavailable' }],
  });
});

test('of parents that the company does not have is unavailable with them, and neither is read a second time', async () => {
  sandbox.faults.clear();
  const headers = { 'content-type': 'application/json' };
  sandbox.faults.add({ kind: 'status', status: 403, headers, body: '{}' }, { path: '/departments/list', times: Infinity });
  for (let night = 1; night <= 2; night += 1)
    expect(await ofOptionalParents.sync(company, { mode: 'full' })).toMatchObject({
      status: 'succeeded',
      walks: [{ unverified_reason: 'unavailable' }, { unverified_reason: 'unavailable' }],
    });
  expect(await list()).toMatchObject({ unavailableSince: expect.any(Date), unverifiedSince: null });
  expect(await ofOptionalParents.verify(company)).toMatchObject({ status: 'succeeded', walks: [] });
  sandbox.faults.clear();
  refused.clear();
  expect(await ofOptionalParents.sync(company, { mode: 'full' })).toMatchObject({
    walks: [{ verified: true }, { verified: true }],
  });
});
