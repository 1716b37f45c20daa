import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { QuietHours } from '../../src/core/quiet-hours.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { hurriedClock } from '../support/hurried-clock.js';
import { windowAt } from '../support/quiet.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { askedFor, type SyncHarness, syncHarness } from '../walks/sync-harness.js';

// Quiet hours that last longer than a checkpoint, or a proof of parents, may be old.

const { employees, departments } = ENTRIES;
const tasks = {
  method: 'GET',
  path: '/api/companies/{company_id}/departments/{id}/tasks',
  parent: 'departments',
  pager: { style: 'skip-take', in: 'query', size: 10 },
};
const ENDPOINTS = endpointsOf({ employees, departments, tasks });
const HOUR = 3_600_000;

/** The window lies an hour ahead, whatever the hour of the day; a test enters it by turning the clock of the worker. */
const { windows, opens, ends } = windowAt(systemClock.now() + HOUR, 8 * HOUR);
let turned = 0;
const clock = { ...hurriedClock, now: () => systemClock.now() + turned };

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let company: CompanyKey;
/** Called before each request, with the first record that it asks for. */
let onRequest: (path: string, skip: number) => void = () => {};
let next = 0;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 3 }, (_, n) => ({ name: `C${n}`, employees: 60, departments: 2 })),
  });
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints: ENDPOINTS, get: () => undefined });
  harness = syncHarness(database.db, sandbox, ENDPOINTS, {
    clock,
    quiet: new QuietHours({ windows, timezone: 'UTC' }),
    beforeRequest: ({ path, body, query }) => onRequest(path, body || query ? askedFor({ body, query }).skip : 0),
    respond: ({ path, query }) => {
      if (!path.endsWith('/tasks')) return undefined;
      const data = [{ id: path }].slice(Number(query?.skip));
      return JSON.stringify({ totalRecords: 1, totalDisplayRecords: data.length, data });
    },
  });
});

afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});

beforeEach(async () => {
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
});

afterEach(() => {
  turned = 0;
  onRequest = () => {};
});

const enter = () => (turned = opens - systemClock.now());

/** The quiet hours end for the worker, and for the database, whose time a test cannot turn. */
async function wake(id: string): Promise<void> {
  turned = ends - systemClock.now();
  await database.db.pool.query('UPDATE muster.runs SET start_after = now() WHERE id = $1', [id]);
}

/** Notes the records from which the list is asked for, and enters the quiet hours with the request of the given number. */
function noteEmployees(last?: number): number[] {
  const asked: number[] = [];
  onRequest = (path, skip) => {
    if (!path.endsWith('/employees')) return;
    asked.push(skip);
    if (asked.length === last) enter();
  };
  return asked;
}

test('a run goes on from its checkpoint after them', async () => {
  const { id } = await harness.runs.request({ company, trigger: 'manual' });
  noteEmployees(3);
  expect((await harness.work(id)).walks[0]!.pages).toBeGreaterThan(0);
  await wake(id);
  const asked = noteEmployees();
  expect(await harness.work(id)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, inserted: 60 }, {}, {}] });
  expect(Math.min(...asked)).toBeGreaterThan(0);
});

test('a run that is requested after them goes on from the checkpoint of a run that was cancelled in them', async () => {
  const { id } = await harness.runs.request({ company, trigger: 'manual' });
  noteEmployees(3);
  await harness.work(id);
  await harness.runs.cancel(id);
  turned = ends - systemClock.now();
  const asked = noteEmployees();
  expect(await harness.sync(company)).toMatchObject({ status: 'succeeded' });
  expect(Math.min(...asked)).toBeGreaterThan(0);
});

test('the proof of the parents still holds for a child list that is read after them', async () => {
  const { id } = await harness.runs.request({ company, trigger: 'manual' });
  onRequest = (path) => path.endsWith('/tasks') && enter();
  expect(await harness.work(id)).toMatchObject({
    status: 'queued',
    waits_for: 'quiet_hours',
    walks: [{}, { verified: true }, {}],
  });
  await wake(id);
  onRequest = () => {};
  expect((await harness.work(id)).walks[2]).toMatchObject({ resource: 'tasks', verified: true, received: 2 });
});
