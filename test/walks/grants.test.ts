import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import type { CompanyKey } from '../../src/core/company.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { GrantedToken, type TokenSource } from '../../src/http/token-source.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { compareEverything } from '../../src/walks/comparison.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { projectComparisons } from './comparisons.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

const EMPLOYEES = 45;
const HIDDEN = 7;
const ENDPOINTS = endpointsOf({
  employees: ENTRIES.employees,
  contracts: {
    method: 'GET',
    path: '/api/companies/{company_id}/contracts',
    query: { expand: 'department' },
    pager: { style: 'page-number', in: 'query', pageName: 'page', sizeName: 'pageSize', first: 1, size: 10 },
    fields: { data: 'value.items', total: 'value.count' },
  },
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
/** Called before each request to the API of the service. */
let meet: (request: ApiRequest) => Promise<void> | void;
let current: GrantedToken;
/** Departments whose tasks were asked for. */
let parents: string[];

/** As the manager of access tokens: the token that is stored, and its grant. */
const tokens: TokenSource = { get: async () => current, renew: async () => current, refused: async () => {} };

beforeAll(async () => {
  const companies = Array.from({ length: 30 }, (_, n) => ({
    name: `C${n}`,
    employees: EMPLOYEES,
    departments: 5,
    contracts: 25,
  }));
  sandbox = await startSandbox({ etags: true, companies });
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints: ENDPOINTS, get: () => undefined });
  harness = syncHarness(database.db, { url: sandbox.url, tokens }, ENDPOINTS, {
    beforeRequest: (request) => meet(request),
    respond: tasksOf,
  });
});
afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});
beforeEach(async () => {
  meet = () => {};
  parents = [];
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
  current = new GrantedToken(await accessToken(), 1);
});

/** Each department has two tasks. */
function tasksOf({ path }: ApiRequest): string | undefined {
  const department = /\/departments\/([^/]+)\/tasks$/.exec(path)?.[1];
  if (department === undefined) return undefined;
  parents.push(department);
  const data = [1, 2].map((id) => ({ id, of: department }));
  return JSON.stringify({ totalRecords: 2, totalDisplayRecords: 2, data });
}

async function accessToken(): Promise<string> {
  const { url, clientId, clientSecret, issueRefreshToken } = sandbox;
  const refresh_token = issueRefreshToken(company.companyId).reveal();
  const form = { grant_type: 'refresh_token', refresh_token, client_id: clientId, client_secret: clientSecret.reveal() };
  const response = await fetch(new URL('/auth/token', url), { method: 'POST', body: new URLSearchParams(form) });
  return ((await response.json()) as { access_token: string }).access_token;
}

/** Ids of the first records of a list. */
function firstIds(resource: 'employees' | 'departments' | 'contracts', count: number): string[] {
  return sandbox
    .records(company.companyId, resource)
    .slice(0, count)
    .map((text) => {
      const { uid, id } = JSON.parse(text) as { uid?: string; id?: string };
      return String(uid ?? id);
    });
}

/** Another person authorizes, who is not shown these records. */
async function authorizeAgain(hides: readonly string[] = []): Promise<void> {
  sandbox.setPerson(company.companyId, { hides });
  const token = await accessToken();
  const { grantNumber } = await database.db.prisma.connection.update({
    where: { environment_companyId: company },
    data: { grantNumber: { increment: 1 }, authorizedAt: new Date() },
  });
  current = new GrantedToken(token, grantNumber);
}

/** The next attempt of a run that waits for it. */
async function workAgain({ id }: RunModel): Promise<RunModel> {
  await database.db.pool.query('UPDATE muster.runs SET start_after = now() WHERE id = $1', [id]);
  return harness.work(id);
}

const employees = { resources: ['employees'] };
const deletes = () => database.db.prisma.change.count({ where: { batch: company, op: 'delete' } });
const hold = (resource = 'employees') => database.db.prisma.hold.findFirst({ where: { ...company, resource, status: 'open' } });

/** What the last verified walk of the list has received, and under which grant. */
async function proof(resource: string) {
  const { verifiedWalkId, grantNumber } = await database.db.prisma.list.findFirstOrThrow({ where: { ...company, resource } });
  const walk = await database.db.prisma.walk.findUniqueOrThrow({ where: { id: verifiedWalkId! } });
  expect(walk.grantNumber).toBe(grantNumber);
  return { grantNumber, received: walk.received };
}

describe.each([
  ['employees', EMPLOYEES, 5],
  // Two passes.
  ['contracts', 25, 6],
] as const)('another person authorizes while %s are walked', (resource, records, requests) => {
  test.each(Array.from({ length: requests }, (_, n) => n))('before request %i', async (at) => {
    await harness.sync(company, { resources: [resource] });
    let count = 0;
    meet = async ({ path }) => {
      if (path.endsWith(resource) && count++ === at) await authorizeAgain(firstIds(resource, HIDDEN));
    };
    const run = await harness.sync(company, { resources: [resource], mode: 'full' });
    expect(run).toMatchObject({ status: 'queued', walks: [{ verified: false, error: { code: 'grant_changed' } }] });
    expect(await workAgain(run)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, deleted: 0 }] });
    expect(await deletes()).toBe(0);
    expect(await proof(resource)).toEqual({ grantNumber: 2, received: records - HIDDEN });
    const { id } = (await hold(resource))!;
    await harness.sync(company, { resources: [resource], mode: 'full' });
    expect(await hold(resource)).toMatchObject({ id, cause: 'grant', count: HIDDEN, living: records, grantNumber: 2 });
    expect(await deletes()).toBe(0);

    await authorizeAgain();
    await harness.sync(company, { resources: [resource] });
    expect(await hold(resource)).toBeNull();
    expect(await deletes()).toBe(0);
  });
});

describe('a checkpoint', () => {
  const half = async () => {
    await harness.sync(company, employees);
    const run = await harness.sync(company, { ...employees, mode: 'full' }, { stopAfterPages: 2 });
    expect(run.walks[0]!.pages).toBeGreaterThan(0);
    sandbox.requests.clear();
    return run;
  };
  const skips = () => sandbox.requests.all('/employees').map(({ input }) => Number(input['skip']));

  test('of the same grant is gone on from', async () => {
    const run = await half();
    expect(await harness.work(run.id)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, received: EMPLOYEES }] });
    expect(skips()).not.toContain(0);
  });

  test('of another grant is not: the list is walked from the start', async () => {
    const run = await half();
    await authorizeAgain(firstIds('employees', HIDDEN));
    expect(await harness.work(run.id)).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: true, received: EMPLOYEES - HIDDEN, deleted: 0 }],
    });
    expect(skips()).toContain(0);
    expect(await hold()).toMatchObject({ count: HIDDEN });
  });
});

// A walk that compares everything asks by no ETag.
test.skipIf(projectComparisons() === compareEverything)(
  'no page is asked for by the ETag of another grant, and the next night all are again',
  async () => {
    const statuses = async () => {
      sandbox.requests.clear();
      await harness.sync(company, { ...employees, trigger: 'nightly', mode: 'full' });
      return new Set(sandbox.requests.all('/employees').map(({ status }) => status));
    };
    await harness.sync(company, employees);
    expect(await statuses()).toEqual(new Set([304]));
    await authorizeAgain();
    expect(await statuses()).toEqual(new Set([200]));
    expect(await statuses()).toEqual(new Set([304]));
  },
);

test('a night that finds every page as it was renews the hold', async () => {
  await harness.sync(company, employees);
  await authorizeAgain(firstIds('employees', HIDDEN));
  await harness.sync(company, employees);
  const before = await hold();
  const run = await harness.sync(company, { ...employees, trigger: 'nightly', mode: 'full' });
  expect(run.walks).toMatchObject([{ unchanged: EMPLOYEES - HIDDEN, deleted: 0 }]);
  expect(await hold()).toMatchObject({ id: before!.id, count: HIDDEN, runId: run.id });
  expect(await database.db.prisma.notification.findMany({ where: { ...company, type: 'deletions_held' } })).toMatchObject([
    { details: { resource: 'employees', count: HIDDEN, cause: 'grant' } },
  ]);
});

describe('a child list', () => {
  const lists = { resources: ['departments', 'tasks'] };

  test('is not verified while its parents were proved under another grant', async () => {
    await harness.sync(company, lists);
    await authorizeAgain();
    const run = await harness.sync(company, { resources: ['tasks'] });
    expect(run.walks).toMatchObject([{ verified: false, unverified_reason: 'parents_unverified' }]);
    expect((await harness.sync(company, lists)).walks).toMatchObject([{ verified: true }, { verified: true }]);
  });

  test('is not asked for under parents that the grant is not shown, whose children wait, too', async () => {
    await harness.sync(company, lists);
    const hidden = firstIds('departments', 2);
    await authorizeAgain(hidden);
    parents = [];
    expect((await harness.sync(company, lists)).walks).toMatchObject([
      { verified: true, received: 3, deleted: 0 },
      { verified: true, received: 6, deleted: 0 },
    ]);
    expect(parents).toHaveLength(3);
    expect(parents.filter((parent) => hidden.includes(parent))).toEqual([]);
    expect(await hold('departments')).toMatchObject({ cause: 'grant', count: 2 });
    expect(await hold('tasks')).toMatchObject({ cause: 'grant', count: 4 });

    await authorizeAgain();
    await harness.sync(company, lists);
    parents = [];
    await harness.sync(company, lists);
    expect(parents).toHaveLength(5);
    expect(await hold('departments')).toBeNull();
    expect(await hold('tasks')).toBeNull();
    expect(await deletes()).toBe(0);
  });
});

test('a second reading finds no fault in rows that the grant is not shown, decided or not', async () => {
  await harness.sync(company, employees);
  await authorizeAgain(firstIds('employees', HIDDEN));
  await harness.sync(company, employees);
  const reading = await harness.verify(company, employees);
  expect(reading.walks).toMatchObject([{ verify: { missing: 0, extra: 0, different: 0, held: HIDDEN } }]);
  await database.db.prisma.hold.updateMany({ where: company, data: { status: 'rejected' } });
  await harness.sync(company, employees);
  const again = await harness.verify(company, employees);
  expect(again.walks).toMatchObject([{ verify: { extra: 0, held: HIDDEN } }]);
});
