import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ERROR_CODES } from '../../../src/core/errors.js';
import { ISSUE_STATES as CAUSES } from '../../../src/core/issue-causes.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

const ISSUE_STATES = Object.keys(CAUSES);

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin(undefined, { webhook: {} });
});
afterAll(() => admin.stop());

const addIssue = (cause: string, more: object = {}) =>
  admin.db.prisma.issue.create({
    data: { cause, environment: 'test', severity: 'warning', companies: 7, sample: [randomUUID()], told: 7, ...more },
  });

test('an issue is shown with what to do, and the call that does it for all', async () => {
  const row = await addIssue('service_error', { resource: 'employees' });
  const expected = {
    id: row.id,
    cause: 'service_error',
    environment: 'test',
    resource: 'employees',
    severity: 'warning',
    companies: 7,
    first_seen_at: row.firstSeenAt.toISOString(),
    last_seen_at: row.lastSeenAt.toISOString(),
    status: 'ongoing',
    advice: expect.stringMatching(/ask the operator of the service\. Then sync again\.$/),
    docs_url: 'https://muster.example/docs/issues#service_error',
    sample: row.sample,
    samples: [{ company_id: row.sample[0] }],
    action: { method: 'POST', path: '/api/syncs', body: { issue_id: row.id } },
  };
  expect((await admin.call('GET', '/api/issues')).json).toEqual({ data: [expected], next_cursor: null });
  expect((await admin.call('GET', `/api/issues/${row.id}`)).json).toEqual(expected);
  const resolvedAt = new Date();
  await admin.db.prisma.issue.update({ where: { id: row.id }, data: { status: 'resolved', resolvedAt } });
  const { json } = await admin.call('GET', `/api/issues/${row.id.toUpperCase()}`);
  expect(json).toEqual({ ...expected, status: 'resolved', resolved_at: resolvedAt.toISOString() });
  await admin.db.prisma.issue.deleteMany();
});

test('issues are listed newest first, by status and environment, page by page', async () => {
  const [one, other, third] = [
    await addIssue('list_late', { resource: 'employees' }),
    await addIssue('list_late', { resource: 'employees', environment: 'production' }),
    await addIssue('service_error', { status: 'resolved', resolvedAt: new Date() }),
  ];
  const ids = async (query: string) =>
    ((await admin.call('GET', `/api/issues${query}`)).json.data as { id: string }[]).map(({ id }) => id);
  expect(await ids('')).toEqual([third.id, other.id, one.id]);
  expect(await ids('?status=ongoing')).toEqual([other.id, one.id]);
  expect(await ids('?status=resolved&environment=test')).toEqual([third.id]);
  expect(await ids('?environment=production')).toEqual([other.id]);
  const { json } = await admin.call('GET', '/api/issues?limit=2');
  expect(await ids(`?limit=2&cursor=${json.next_cursor}`)).toEqual([one.id]);
  await admin.db.prisma.issue.deleteMany();
});

test.each([
  [`/issues/${randomUUID()}`, 404, 'issue_not_found'],
  ['/issues/1', 400, 'invalid_request'],
  ['/issues?status=open', 400, 'invalid_request'],
  ['/issues?cursor=!!', 400, 'invalid_request'],
])('%s is refused', async (path, status, code) => {
  const answer = await admin.call('GET', `/api${path}`);
  expect([answer.status, answer.json.code]).toEqual([status, code]);
});

describe.each([...ISSUE_STATES, ...Object.keys(ERROR_CODES), 'a_code_of_a_later_version'])('the cause %s', (cause) => {
  test('is explained where it says, and its call is one that the API takes', async () => {
    const { id } = await addIssue(cause, { status: 'resolved' });
    const { docs_url, advice, action } = (await admin.call('GET', `/api/issues/${id}`)).json;
    const { pathname, hash } = new URL(docs_url);
    const guide = await fetch(admin.url + pathname);
    expect([guide.status, guide.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const text = await guide.text();
    const [section = ''] = text.split(`<section id="${hash.slice(1)}">`).slice(1);
    const unescaped = section.split('</section>')[0]!.replaceAll(/&#(\d+);/g, (_, number) => String.fromCharCode(Number(number)));
    expect(unescaped).toContain(advice);
    const { status } = await admin.call(action.method, action.path, action.body);
    const posted = cause === 'reauthorization_required' ? 201 : cause === 'tokens_held' ? 200 : 202;
    expect(status).toBe(action.method === 'GET' ? 200 : posted);
  });
});

test('every state is in the documentation', () => {
  const document = readFileSync(new URL('../../../docs/admin-api.md', import.meta.url), 'utf8');
  const [, section = ''] = /^## Issues$(.*?)^## /ms.exec(document) ?? [];
  const named = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, cause]) => cause);
  expect(named.filter((name) => ISSUE_STATES.includes(name!)).toSorted()).toEqual([...ISSUE_STATES].toSorted());
});

test('the guide needs no token, runs nothing and loads nothing', async () => {
  const { headers } = await fetch(`${admin.url}/docs/issues`);
  expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none';/);
});
