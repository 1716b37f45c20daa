import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin } from '../../api/admin-fixture.js';
import { addCompany, hoursAgo } from '../../runs/issue-world.js';
import { PageClient } from '../page-client.js';

let admin: AdminFixture;
let page: PageClient;
let viewer: PageClient;

beforeAll(async () => {
  admin = await startAdmin();
  page = await PageClient.signedIn(admin.url);
  const { json } = await admin.call('POST', '/api/tokens', { name: 'reader', role: 'viewer' });
  viewer = await PageClient.signedIn(admin.url, json.token);
});
afterAll(() => admin.stop());

const wordsOf = (html: string) => html.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
const addIssue = (cause: string, more: object = {}) =>
  admin.db.prisma.issue.create({
    data: { cause, environment: 'test', severity: 'warning', companies: 7, sample: [], told: 7, ...more },
  });
const headingsOf = (html: string) => [...html.matchAll(/<h2 id="issue-[^>]+><a [^>]+>([^<]+)<\/a>/g)].map(([, title]) => title);
/** One answer serves all pages for two seconds. */
const eventually = (read: () => Promise<unknown>) => expect.poll(read, { timeout: 10_000 });

test('the overview answers for last night first, then shows what is red before what is amber', async () => {
  const proved = { lists: { employees: { provedHoursAgo: 0.01 }, departments: { provedHoursAgo: 0.01 } } };
  await addCompany(admin.db, proved);
  const words = async () => wordsOf((await page.open('/')).html);
  await eventually(words).toContain('Last night is complete: 2 of 2 lists were proved.');
  const lacking = await addCompany(admin.db, proved);
  await admin.db.prisma.list.updateMany({ where: { ...lacking, resource: 'employees' }, data: { lastVerifiedAt: hoursAgo(40) } });
  await eventually(words).toContain('Last night is not complete: 1 of 4 lists lacks a proof : 1 late .');
  const { html } = await page.open('/unproved?state=late');
  expect(html).toContain(`/companies/test/${lacking.companyId}`);
  expect(wordsOf((await page.open('/unproved?state=failed')).html)).toContain('No list matches the filters.');

  await addIssue('list_unverified', { resource: 'employees', companies: 90 });
  await addIssue('service_refused', { resource: 'employees', severity: 'action', late: 3 });
  await addIssue('deletions_held', { resource: 'employees', severity: 'action', companies: 8 });
  const overview = (await page.open('/')).html;
  expect(headingsOf(overview)).toEqual([
    'Deletions wait for a decision: employees',
    'Lists cannot be walked: service refused: employees',
    'Lists are read to their end, and cannot be proved complete: employees',
  ]);
  expect(wordsOf(overview)).toContain('7 companies 3 of them late');
  expect(overview.indexOf('class="issues"')).toBeLessThan(overview.indexOf('class="figures"'));
  await admin.db.prisma.issue.deleteMany();
});

test('an issue of few companies names them, and one of many says how many', async () => {
  const few = [await admin.addCompany(), await admin.addCompany()];
  await addIssue('mirror_differs', { companies: 2, sample: few.map(({ companyId }) => companyId) });
  const { html } = await page.open('/issues');
  for (const { companyId } of few) expect(html).toContain(`href="/companies/test/${companyId}"`);
  await admin.db.prisma.issue.deleteMany();
});

test('an issue is snoozed on its page, leaves the overview, and comes back by a button', async () => {
  const { id } = await addIssue('list_late', { resource: 'employees' });
  await page.open(`/issues/${id}`);
  const refused = await page.act('issue.snooze', { id, days: '3', reason: ' ', back: `/issues/${id}` });
  expect(refused.status).toBe(400);
  const done = await page.act('issue.snooze', { id, days: '3', reason: 'they <b>move</b>', back: `/issues/${id}` });
  expect([done.status, done.location]).toEqual([303, `/issues/${id}?done=issue.snooze`]);
  expect(headingsOf((await page.open('/')).html)).toEqual([]);
  await eventually(async () => wordsOf((await page.open('/')).html)).toContain('1 snoozed');
  expect(headingsOf((await page.open('/issues?snoozed=true')).html)).toHaveLength(1);
  const { html } = await page.open(`/issues/${id}`);
  expect(html).toContain('<q>they &lt;b>move&lt;/b></q>');
  await page.act('issue.unsnooze', { id, back: `/issues/${id}` });
  expect(headingsOf((await page.open('/')).html)).toHaveLength(1);
  await admin.db.prisma.issue.deleteMany();
});

test('a viewer reads an issue, and sees no button that would be refused', async () => {
  const { id } = await addIssue('list_late', { resource: 'employees' });
  for (const path of ['/', '/issues', `/issues/${id}`]) {
    const { status, html } = await viewer.open(path);
    expect([path, status, html.includes('/act/')]).toEqual([path, 200, false]);
  }
  await admin.db.prisma.issue.deleteMany();
});

test('the menu counts open issues and holds, without a change to the names of its links', async () => {
  await addIssue('list_late');
  await addIssue('service_error', { snoozedUntil: hoursAgo(-5) });
  const menu = async () => /<nav aria-label="Pages">.*?<\/nav>/.exec((await page.open('/tokens')).html)![0];
  await eventually(menu).toContain('<span class="badge">1<span class="unseen"> open</span></span>');
  expect((await menu()).match(/class="badge"/g)).toHaveLength(1);
  expect(await menu()).toMatch(/<a href="\/issues"[^>]*>Issues<\/a>/);
  await admin.db.prisma.issue.deleteMany();
  await eventually(menu).not.toContain('class="badge"');
});

test('a page does not wait for the numbers of the menu while the database lets them wait', async () => {
  const client = await admin.db.pool.connect();
  await client.query('BEGIN; LOCK TABLE muster.issues IN ACCESS EXCLUSIVE MODE');
  try {
    await eventually(async () => (await page.open('/tokens')).html.includes('class="badge"')).toBe(false);
    expect((await page.open('/tokens')).status).toBe(200);
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
});

test('an issue that there is not, and one that has ended', async () => {
  expect((await page.open('/issues/00000000-0000-4000-8000-000000000009')).status).toBe(404);
  expect((await page.open('/issues/nonsense')).status).toBe(404);
  const { id } = await addIssue('list_late', { status: 'resolved', resolvedAt: new Date() });
  const { html } = await page.open(`/issues/${id}`);
  expect([html.includes('It has ended'), html.includes('/act/issue')]).toEqual([true, false]);
  await admin.db.prisma.issue.deleteMany();
});
