import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

const DAY_MS = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
const addIssue = (more: object = {}) =>
  admin.db.prisma.issue.create({
    data: {
      cause: 'list_late',
      environment: 'test',
      resource: 'employees',
      severity: 'warning',
      companies: 7,
      sample: [],
      told: 7,
      ...more,
    },
  });

test('an issue is snoozed with a reason and an end, is listed apart, and comes back when asked', async () => {
  const { id } = await addIssue();
  const other = await addIssue({ cause: 'service_error' });
  const until = inDays(3);
  const answer = await admin.call('POST', `/api/issues/${id}/snooze`, { until, reason: 'They move their office.' });
  expect(answer.status).toBe(200);
  expect(answer.json).toMatchObject({
    id,
    status: 'ongoing',
    snoozed: { until, reason: 'They move their office.', by: 'admin' },
  });
  const ids = async (query: string) =>
    ((await admin.call('GET', `/api/issues?${query}`)).json.data as { id: string }[]).map((issue) => issue.id);
  expect(await ids('snoozed=true')).toEqual([id]);
  expect(await ids('snoozed=false&status=ongoing')).toEqual([other.id]);
  expect(await ids('status=ongoing')).toEqual([other.id, id]);

  const back = await admin.call('POST', `/api/issues/${id}/unsnooze`);
  expect([back.status, back.json.snoozed]).toEqual([200, undefined]);
  expect(await ids('snoozed=true')).toEqual([]);
  const { json } = await admin.call('GET', '/api/audit?limit=2');
  expect(json.data).toMatchObject([
    { action: 'issue.unsnooze', environment: 'test', details: { issue_id: id } },
    {
      action: 'issue.snooze',
      environment: 'test',
      details: { issue_id: id, cause: 'list_late', reason: 'They move their office.', until },
    },
  ]);
  await admin.db.prisma.issue.deleteMany();
});

test('the overview counts snoozed issues apart', async () => {
  await addIssue();
  await addIssue({ cause: 'service_error', snoozedUntil: inDays(1) });
  await addIssue({ cause: 'service_refused', snoozedUntil: inDays(-1) });
  expect((await admin.call('GET', '/api/overview')).json).toMatchObject({ issues_open: 2, issues_snoozed: 1 });
  await admin.db.prisma.issue.deleteMany();
});

test.each([
  ['no reason', { until: inDays(1) }],
  ['an empty reason', { until: inDays(1), reason: '  ' }],
  ['a reason of several lines', { until: inDays(1), reason: 'one\ntwo' }],
  ['a reason that is too long', { until: inDays(1), reason: 'x'.repeat(501) }],
  ['an end that is over', { until: inDays(-1), reason: 'because' }],
  ['an end that is too far', { until: inDays(31), reason: 'because' }],
  ['no time', { until: 'tomorrow', reason: 'because' }],
])('%s is refused', async (_, body) => {
  const { id } = await addIssue();
  expect((await admin.call('POST', `/api/issues/${id}/snooze`, body)).json).toMatchObject({
    code: 'invalid_request',
    status: 400,
  });
  expect((await admin.db.prisma.issue.findUniqueOrThrow({ where: { id } })).snoozedUntil).toBeNull();
  await admin.db.prisma.issue.deleteMany();
});

test('an issue that has ended, or that there is not, cannot be snoozed', async () => {
  const { id } = await addIssue({ status: 'resolved', resolvedAt: new Date() });
  const body = { until: inDays(1), reason: 'because' };
  for (const verb of ['snooze', 'unsnooze']) {
    const ended = await admin.call('POST', `/api/issues/${id}/${verb}`, verb === 'snooze' ? body : undefined);
    expect([ended.status, ended.json.code]).toEqual([409, 'issue_resolved']);
    const missing = await admin.call('POST', `/api/issues/${randomUUID()}/${verb}`, verb === 'snooze' ? body : undefined);
    expect([missing.status, missing.json.code]).toEqual([404, 'issue_not_found']);
  }
  await admin.db.prisma.issue.deleteMany();
});

test('the companies of an issue come with the state of their list, page by page', async () => {
  // Without one, the lists would be late for that reason.
  await admin.db.prisma.worker.create({ data: { name: 'alive' } });
  const companies = [await admin.addCompany(), await admin.addCompany(), await admin.addCompany()];
  for (const { environment, companyId } of companies)
    await admin.db.prisma.list.create({
      data: { environment, companyId, resource: 'employees', lastVerifiedAt: new Date(Date.now() - 3 * DAY_MS) },
    });
  const { id } = await addIssue({ companies: 3 });
  const first = (await admin.call('GET', `/api/issues/${id}/companies?limit=2`)).json;
  const rest = (await admin.call('GET', `/api/issues/${id}/companies?limit=2&cursor=${first.next_cursor}`)).json;
  const wrong = Buffer.from('-'.repeat(36)).toString('base64url');
  expect((await admin.call('GET', `/api/issues/${id}/companies?cursor=${wrong}`)).status).toBe(400);
  const all = [...first.data, ...rest.data];
  expect(all.map(({ company_id }: { company_id: string }) => company_id)).toEqual(
    companies.map(({ companyId }) => companyId).toSorted(),
  );
  expect(all[0]).toMatchObject({ environment: 'test', list: { state: 'late', last_verified_at: expect.any(String) } });
  expect(rest.next_cursor).toBeNull();
  await admin.db.prisma.issue.deleteMany();
});
