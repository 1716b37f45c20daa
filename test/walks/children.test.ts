import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { MusterError } from '../../src/core/errors.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

const ENDPOINTS = endpointsOf({
  departments: ENTRIES.departments,
  tasks: {
    method: 'GET',
    path: '/api/companies/{company_id}/departments/{id}/tasks',
    parent: 'departments',
    pager: { style: 'skip-take', in: 'query', size: 3 },
  },
});

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let company: CompanyKey;
let next = 0;
/** Every department's tasks: ids that each department counts for itself. */
let tasks: Map<string, number>;
let gone: Set<string>;
let asked: string[];
/** The department whose first task leaves once its first page was given. */
let shrinking: string | undefined;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 8 }, (_, n) => ({ name: `C${n}`, employees: 0, departments: 12 })),
  });
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints: ENDPOINTS, get: () => undefined });
  harness = syncHarness(database.db, sandbox, ENDPOINTS, { respond: tasksPage });
});

afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});

beforeEach(async () => {
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
  const ids = sandbox.records(company.companyId, 'departments').map(idOf);
  tasks = new Map(ids.map((id, n) => [id, n]));
  gone = new Set();
  asked = [];
  shrinking = undefined;
});

function idOf(text: string): string {
  const { uid, id } = JSON.parse(text) as { uid?: string; id?: string | number };
  return String(uid ?? id);
}

/** A provider of child lists: department n has n tasks. */
function tasksPage({ path, query }: ApiRequest): string | undefined {
  const department = /\/departments\/([^/]+)\/tasks$/.exec(path)?.[1];
  if (department === undefined) return undefined;
  const id = decodeURIComponent(department);
  asked.push(id);
  if (gone.has(id)) throw new MusterError('service_refused', 'no such department', { details: { status: 404, own_words: true } });
  const left = id === shrinking && asked.indexOf(id) < asked.length - 1 ? 1 : 0;
  const total = tasks.get(id)! - left;
  const [skip, take] = [Number(query!['skip']), Number(query!['take'])];
  const data = Array.from({ length: total }, (_, n) => ({ id: n + 1 + left, of: id })).slice(skip, skip + take);
  return JSON.stringify({ totalRecords: total, totalDisplayRecords: data.length, data });
}

const expected = () =>
  [...tasks].flatMap(([id, total]) => Array.from({ length: total }, (_, n) => `${encodeURIComponent(id)}/${n + 1}`)).toSorted();

async function living(): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ id: string }>(
    'SELECT id FROM mirror.tasks WHERE company_id = $1 AND deleted_at IS NULL',
    [company.companyId],
  );
  return rows.map(({ id }) => id).toSorted();
}

test('the list of every living parent is walked, as one verified walk', async () => {
  const run = await harness.sync(company);
  expect(run.walks).toMatchObject([
    { resource: 'departments', verified: true },
    { resource: 'tasks', verified: true, proof: 'join', received: 66, inserted: 66, unchanged: 0, passes: 1 },
  ]);
  expect(await living()).toEqual(expected());
  const again = await harness.sync(company);
  expect(again.walks[1]).toMatchObject({ verified: true, received: 66, inserted: 0, unchanged: 66 });
});

test('what left one parent, or left with its parent, is marked deleted', async () => {
  await harness.sync(company);
  const [first] = sandbox.records(company.companyId, 'departments').map(idOf);
  sandbox.list(company.companyId, 'departments').remove(0);
  tasks.delete(first!);
  const last = [...tasks.keys()].at(-1)!;
  tasks.set(last, 8);
  expect((await harness.sync(company)).walks[1]).toMatchObject({ verified: true, deleted: 3 });
  expect(await living()).toEqual(expected());
});

test('interrupted anywhere, it goes on with the parent where it stopped', async () => {
  let run = await harness.sync(company, {}, { stopAfterPages: 2 });
  for (let slice = 0; run.status === 'running' && slice < 60; slice += 1) run = await harness.work(run.id, { stopAfterPages: 2 });
  expect(run.walks[1]).toMatchObject({ verified: true, received: 66, inserted: 66 });
  expect(await living()).toEqual(expected());
  const undisturbed = await harness.sync(company);
  expect(run.walks[1]!.pages).toBe(undisturbed.walks[1]!.pages);
});

test('a child that leaves while its parent is first walked is marked deleted', async () => {
  shrinking = [...tasks.keys()][8]!;
  const first = `${encodeURIComponent(shrinking)}/1`;
  expect((await harness.sync(company)).walks[1]).toMatchObject({ verified: true, received: 65, inserted: 66, deleted: 1 });
  expect(await living()).toEqual(expected().filter((id) => id !== first));
});

test('a parent that the service no longer knows makes the walk unverified, and costs no other parent', async () => {
  await harness.sync(company);
  const third = [...tasks.keys()][5]!;
  gone.add(third);
  expect((await harness.sync(company)).walks[1]).toMatchObject({
    status: 'succeeded',
    verified: false,
    unverified_reason: 'parent_refused',
    deleted: 0,
    received: 61,
  });
  expect(await living()).toEqual(expected());
});

test('while the parents are not known to be complete, no child is', async () => {
  await harness.sync(company);
  const half = await harness.sync(company, { mode: 'full', resources: ['departments'] }, { stopAfterPages: 1 });
  await harness.runs.cancel(half.id);
  await harness.work(half.id);
  tasks.set([...tasks.keys()].at(-1)!, 10);
  expect((await harness.sync(company, { mode: 'full', resources: ['tasks'] })).walks).toMatchObject([
    { resource: 'tasks', verified: false, unverified_reason: 'parents_unverified', deleted: 0 },
  ]);
});

test('no parents: nothing to ask for, and verified', async () => {
  sandbox.list(company.companyId, 'departments').remove(0, 12);
  expect((await harness.sync(company)).walks[1]).toMatchObject({ verified: true, pages: 0, received: 0 });
  expect(asked).toEqual([]);
});
