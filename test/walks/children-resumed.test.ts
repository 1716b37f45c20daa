import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { MusterError } from '../../src/core/errors.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

const ENDPOINTS = endpointsOf({
  departments: { ...ENTRIES.departments, pager: { ...ENTRIES.departments.pager, size: 4 } },
  tasks: {
    method: 'GET',
    path: '/api/companies/{company_id}/departments/{id}/tasks',
    parent: 'departments',
    pager: { style: 'skip-take', in: 'query', size: 3 },
  },
});
const ONE_TASK = '{"totalRecords":1,"totalDisplayRecords":1,"data":[{"id":1}]}';

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let company: CompanyKey;
let next = 0;
let before: (request: ApiRequest) => void;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 4 }, (_, n) => ({ name: `C${n}`, employees: 0, departments: 12 })),
  });
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints: ENDPOINTS, get: () => undefined });
  harness = syncHarness(database.db, sandbox, ENDPOINTS, {
    beforeRequest: (request) => before(request),
    respond: ({ path }) => (path.endsWith('/tasks') ? ONE_TASK : undefined),
  });
});

afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});

beforeEach(async () => {
  before = () => {};
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
});

test('parents that came while the child walk was interrupted are asked for', async () => {
  // The first in the order of ids, in which parents are asked.
  const departments = list();
  const [first] = departments.texts().toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
  departments.remove(departments.texts().indexOf(first!));
  await harness.sync(company);
  departments.insert(0, first);
  const { id } = await harness.sync(company, { mode: 'full', resources: ['tasks'] }, { stopAfterPages: 4 });
  await harness.runs.cancel(id);
  await harness.work(id);
  expect((await harness.sync(company)).walks).toMatchObject([
    { resource: 'departments', verified: true, inserted: 1 },
    { resource: 'tasks', verified: true },
  ]);
  expect(await livingTasks()).toEqual(tasksUpstream());
});

test('an outage in both lists, and the same run goes on: no parent of the second attempt is left out', async () => {
  const run = await interruptedInBoth({});
  expect((await goOn(run)).walks).toMatchObject([{ verified: true }, { verified: true }]);
  expect(await livingTasks()).toEqual(tasksUpstream());
});

test('the same after the parents were rekeyed: no living child is marked deleted', async () => {
  await harness.sync(company);
  await rekeyList(database.db, { ...company, resource: 'departments' });
  await goOn(await interruptedInBoth({ mode: 'full' }));
  expect(await livingTasks()).toEqual(tasksUpstream());
});

test('a child walk goes on where it stopped while it has the parents that it began with', async () => {
  await harness.sync(company);
  const { id } = await harness.sync(company, { mode: 'full', resources: ['tasks'] }, { stopAfterPages: 4 });
  let asked = 0;
  before = ({ path }) => {
    if (path.endsWith('/tasks')) asked += 1;
  };
  expect(await harness.work(id)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, resumed: false }] });
  expect(asked).toBe(8);
});

/** The service is gone behind the first page of the departments, and again behind three of their tasks. */
async function interruptedInBoth(request: Parameters<SyncHarness['sync']>[1]): Promise<string> {
  let [departments, tasks] = [0, 0];
  before = ({ path }) => {
    if (path.endsWith('/departments/list') && ++departments === 2) throw new MusterError('service_unreachable', 'gone');
    if (path.endsWith('/tasks') && ++tasks === 4) throw new MusterError('service_unreachable', 'gone');
  };
  const { id, status } = await harness.sync(company, request);
  expect(status).toBe('queued');
  before = () => {};
  return id;
}

async function goOn(id: string) {
  // Asking again hastens the run that waits for its next attempt.
  await harness.runs.request({ company, trigger: 'manual' });
  return harness.work(id);
}

function list() {
  return sandbox.list(company.companyId, 'departments');
}

function idOf(text: string): string {
  return (JSON.parse(text) as { id: string }).id;
}

function tasksUpstream(): string[] {
  return list()
    .texts()
    .map((text) => `${idOf(text)}/1`)
    .toSorted();
}

async function livingTasks(): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ id: string }>(
    'SELECT id FROM mirror.tasks WHERE company_id = $1 AND deleted_at IS NULL',
    [company.companyId],
  );
  return rows.map(({ id }) => id).toSorted();
}
