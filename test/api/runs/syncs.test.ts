import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { CompanyKey, Environment } from '../../../src/core/company.js';
import { addCompany, addWalk, sweepOf } from '../../runs/issue-world.js';
import { emptyTables } from '../../support/empty-tables.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

// A sync of many reaches exactly the companies and lists that it names.

const LATE = { employees: { provedHoursAgo: 40 } };

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterEach(() =>
  emptyTables(
    admin.db,
    'muster.connections',
    'muster.run_requests',
    'muster.run_request_lists',
    'muster.lists',
    'muster.runs',
    'muster.issues',
    'muster.audit',
  ),
);
afterAll(() => admin.stop());

const idOf = ({ environment, companyId }: CompanyKey) => ({ environment, company_id: companyId });
const sync = (body: object) => admin.call('POST', '/api/syncs', body);
const newCompany = (environment: Environment = 'test', more: Parameters<typeof addCompany>[1] = {}) =>
  addCompany(admin.db, { environment, ...more });

/** The requested lists of each company with a run of trigger `resync`. */
async function synced(): Promise<Record<string, string[]>> {
  const runs = await admin.db.prisma.run.findMany({
    where: { trigger: 'resync' },
    include: { walks: { orderBy: { position: 'asc' } } },
  });
  return Object.fromEntries(runs.map(({ companyId, walks }) => [companyId, walks.map(({ resource }) => resource)]));
}

async function issueOf(cause: string, environment: Environment = 'test') {
  await sweepOf(admin.db)();
  return admin.db.prisma.issue.findFirstOrThrow({ where: { cause, environment } });
}

test('named companies are synced, and no others', async () => {
  const [one, other] = [await newCompany(), await newCompany('production')];
  await newCompany();
  const { status, json } = await sync({
    companies: [idOf(one), idOf(other), { ...idOf(one), company_id: one.companyId.toUpperCase() }],
  });
  expect([status, json]).toEqual([202, { queued: 2 }]);
  expect(await synced()).toEqual({
    [one.companyId]: ['employees', 'departments'],
    [other.companyId]: ['employees', 'departments'],
  });
  expect(await admin.db.prisma.auditEntry.findFirst({ where: { action: 'companies.sync' } })).toMatchObject({
    details: { companies: [`test/${one.companyId}`, `production/${other.companyId}`, `test/${one.companyId}`], outcome: 'done' },
  });
});

test('the same company of the other environment is another one', async () => {
  const one = await newCompany();
  await admin.addCompany({ environment: 'production', companyId: one.companyId });
  expect((await sync({ companies: [idOf(one)] })).json).toEqual({ queued: 1 });
  expect(await admin.db.prisma.run.findMany({ where: { trigger: 'resync' } })).toMatchObject([{ environment: 'test' }]);
});

test('only the named lists are walked, by companies, by status and by environment', async () => {
  const one = await newCompany();
  const failed = await newCompany('production');
  await addWalk(admin.db, failed, { code: 'service_error', hours: 0 });
  expect((await sync({ companies: [idOf(one)], resources: ['departments'] })).json.queued).toBe(1);
  expect((await sync({ status: 'failed', resources: ['employees'] })).json).toEqual({ queued: 1 });
  expect(await synced()).toEqual({ [one.companyId]: ['departments'], [failed.companyId]: ['employees'] });
});

test('an issue is its companies of now and its list', async () => {
  const [late, alsoLate] = [await newCompany('test', { lists: LATE }), await newCompany('test', { lists: LATE })];
  await newCompany();
  await newCompany('production', { lists: LATE });
  const issue = await issueOf('list_late');
  expect(issue).toMatchObject({ companies: 2, resource: 'employees' });
  const third = await newCompany('test', { lists: LATE });
  await admin.db.prisma.list.updateMany({ where: alsoLate, data: { lastVerifiedAt: new Date() } });
  const preview = await admin.call('GET', `/api/syncs?issue_id=${issue.id}`);
  expect(preview.json).toMatchObject({ companies: 2, resources: ['employees'] });
  expect(preview.json.sample.map(({ company_id }: { company_id: string }) => company_id).toSorted()).toEqual(
    [late.companyId, third.companyId].toSorted(),
  );
  expect(await synced()).toEqual({});
  expect((await sync({ issue_id: issue.id.toUpperCase() })).json).toEqual({ queued: 2 });
  expect(await synced()).toEqual({ [late.companyId]: ['employees'], [third.companyId]: ['employees'] });
  const { json } = await admin.call('GET', `/api/issues/${issue.id}`);
  expect(json.action).toEqual({ method: 'POST', path: '/api/syncs', body: { issue_id: issue.id } });
});

test('an issue by the code of an error is the companies whose newest walk failed so', async () => {
  const [failed, other] = [await newCompany(), await newCompany()];
  await addWalk(admin.db, failed, { code: 'service_error', hours: 0, resource: 'departments' });
  await addWalk(admin.db, other, { code: 'service_timeout', hours: 0, resource: 'departments' });
  const { id } = await issueOf('service_error');
  expect((await sync({ issue_id: id })).json.queued).toBe(1);
  expect(await synced()).toEqual({ [failed.companyId]: ['departments'] });
});

test('companies that cannot be synced are named and not counted', async () => {
  const active = await newCompany();
  const paused = await newCompany('test', { paused: true });
  const lost = await newCompany('test', { reauthorizationReason: 'token_refused' });
  const { json } = await sync({ companies: [active, paused, lost].map(idOf) });
  expect(json).toMatchObject({ queued: 1, skipped_count: 2 });
  expect(json.skipped).toEqual(
    expect.arrayContaining([
      { ...idOf(paused), code: 'company_paused' },
      { ...idOf(lost), code: 'reauthorization_required' },
    ]),
  );
  expect(Object.keys(await synced())).toEqual([active.companyId]);
});

test('a run under way stays the only one, and keeps its lists', async () => {
  const company = await newCompany();
  const { id } = await admin.runs.request({ company, trigger: 'manual', resources: ['employees'] });
  expect((await sync({ companies: [idOf(company)], resources: ['departments'] })).json.queued).toBe(1);
  const runs = await admin.db.prisma.run.findMany({ where: { ...company, status: 'queued' }, include: { walks: true } });
  expect(runs).toMatchObject([{ id, walks: [{ resource: 'employees' }] }]);
});

test.each<[string, object, number, string]>([
  ['no company', { companies: [] }, 400, 'invalid_request'],
  [
    'a company that is not onboarded',
    { companies: [{ environment: 'test', company_id: randomUUID() }] },
    404,
    'company_not_found',
  ],
  ['an unknown list', { resources: ['employes'] }, 422, 'unknown_resource'],
  ['no list', { resources: [] }, 400, 'invalid_request'],
  ['an unknown issue', { issue_id: randomUUID() }, 404, 'issue_not_found'],
  ['an issue that is no id', { issue_id: 'all' }, 400, 'invalid_request'],
  [
    'more companies than one call takes',
    { companies: Array.from({ length: 2_001 }, () => ({ environment: 'test', company_id: randomUUID() })) },
    400,
    'invalid_request',
  ],
])('%s is refused, and nothing begins', async (_, body, status, code) => {
  const company = await newCompany();
  const answer = await sync(
    'companies' in body && (body.companies as object[]).length === 1
      ? { companies: [idOf(company), ...(body.companies as object[])] }
      : body,
  );
  expect([answer.status, answer.json.code]).toEqual([status, code]);
  expect([await synced(), await admin.db.prisma.runRequest.count(), await admin.db.prisma.runRequestList.count()]).toEqual([
    {},
    0,
    0,
  ]);
});

test.each<[string, (issue: string, company: object) => object]>([
  ['an issue and a status', (issue_id) => ({ issue_id, status: 'failed' })],
  ['an issue and companies', (issue_id, company) => ({ issue_id, companies: [company] })],
  ['an issue and another environment', (issue_id) => ({ issue_id, environment: 'production' })],
  ['an issue and another list', (issue_id) => ({ issue_id, resources: ['employees', 'departments'] })],
  ['companies and a status', (_, company) => ({ companies: [company], status: 'failed' })],
  ['companies and another environment', (_, company) => ({ companies: [company], environment: 'production' })],
])('%s contradict each other, and nothing begins', async (_, bodyOf) => {
  const company = await newCompany('test', { lists: LATE });
  const { id } = await issueOf('list_late');
  const { status, json } = await sync(bodyOf(id, idOf(company)));
  expect([status, json.code]).toEqual([400, 'invalid_request']);
  expect(json.detail).toMatch(/Nothing was requested\.$/);
  expect(await synced()).toEqual({});
});
