import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin } from '../../api/admin-fixture.js';
import { PageClient } from '../page-client.js';

let admin: AdminFixture;
let page: PageClient;
beforeAll(async () => {
  admin = await startAdmin();
  page = await PageClient.signedIn(admin.url);
});
afterAll(() => admin.stop());

const REFUSED = { code: 'service_refused', message: 'GET /shifts answered 403: it is not allowed.' };
const FAILED = { code: 'walks_failed', message: '2 of the lists could not be walked.' };

type Walk = Readonly<Record<string, unknown>> & { readonly resource: string };

async function runOf(company: CompanyKey, run: object, walks: readonly Walk[]): Promise<string> {
  const created = await admin.db.prisma.run.create({
    data: { ...company, trigger: 'manual', mode: 'full', status: 'succeeded', startedAt: new Date(), ...run },
  });
  for (const [position, walk] of walks.entries())
    await admin.db.prisma.walk.create({
      data: { ...company, runId: created.id, position, status: 'succeeded', verified: true, ...walk },
    });
  return created.id;
}

const REFUSED_WALK = {
  resource: 'shifts',
  status: 'failed',
  verified: false,
  error: REFUSED,
  serviceSays: 'Your role lacks <b>shifts</b>.',
};
const failedRun = (company: CompanyKey, more: object = {}) =>
  runOf(company, { status: 'failed', error: FAILED, finishedAt: new Date(), attempts: 3, ...more }, [
    { resource: 'departments', rejected: 12, verified: false, unverifiedReason: 'rejected_records' },
    REFUSED_WALK,
    { resource: 'notes', status: 'failed', verified: false, error: { ...REFUSED, message: 'GET /notes answered 403.' } },
  ]);

const wordsOf = (html: string) => html.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
const rowOf = (html: string, id: string) => html.split('<tr').find((row) => row.includes(`/runs/${id}"`)) ?? '';
const runPage = async (id: string) => (await page.open(`/runs/${id}`)).html.split('<main')[1]!;

test('a row names the company, the first list that failed, the reason and the words of the service', async () => {
  const company = await admin.addCompany();
  const id = await failedRun(company);
  const words = wordsOf(rowOf((await page.open(`/runs?company_id=${company.companyId}`)).html, id));
  expect(words).toContain(`Company ${company.companyId.slice(0, 4)}`);
  expect(words).toContain('Failed shifts: the service refused it, and 1 more list Your role lacks &lt;b>shifts&lt;/b>.');
  expect(words).toContain('requested, full');
});

test('the list that failed comes first, with why, the words of the service and what to do', async () => {
  const id = await failedRun(await admin.addCompany());
  const html = await runPage(id);
  const words = wordsOf(html);
  expect(words).toMatch(
    /shifts: the service refused it, and 1 more list The service says: Your role lacks .* Check the path of this list/,
  );
  expect([...html.matchAll(/data-walk="(\w+)"/g)].map(([, name]) => name)).toEqual(['shifts', 'notes', 'departments']);
  // Each error is said once.
  expect(html.split('GET /shifts answered 403').length).toBe(2);
  expect(html.split('GET /notes answered 403').length).toBe(2);
});

test('Retry syncs the lists that failed, and shows the new run', async () => {
  const company = await admin.addCompany();
  const id = await failedRun(company);
  const html = await runPage(id);
  expect(html).toContain('action="/act/run.retry"');
  expect(html).toContain('name="resources" value="shifts,notes"');
  // The catalogue of this test has two other lists.
  await admin.db.prisma.walk.updateMany({ where: { runId: id, resource: 'shifts' }, data: { resource: 'employees' } });
  await admin.db.prisma.walk.deleteMany({ where: { runId: id, resource: 'notes' } });
  expect(await runPage(id)).toContain('name="resources" value="employees"');
  const { environment, companyId } = company;
  const done = await page.act('run.retry', {
    environment,
    company_id: companyId,
    kind: 'sync',
    resources: 'employees',
    back: `/runs/${id}`,
  });
  const [, next] = /^\/runs\/([\w-]+)\?done=run.retry$/.exec(done.location ?? '') ?? [];
  const run = await admin.db.prisma.run.findUniqueOrThrow({ where: { id: next! }, include: { walks: true } });
  expect(run).toMatchObject({ ...company, mode: 'resume', trigger: 'manual', status: 'queued' });
  expect(run.walks.map(({ resource }) => resource)).toEqual(['employees']);
});

test('a verification that failed is retried as one', async () => {
  const company = await admin.addCompany();
  const id = await runOf(company, { trigger: 'verify', status: 'failed', error: REFUSED, finishedAt: new Date() }, [
    { resource: 'employees', kind: 'verify', status: 'failed', verified: false, error: REFUSED },
  ]);
  const html = await runPage(id);
  expect(html).toContain('name="kind" value="verify"');
  expect(html).toContain(`/api/companies/test/${company.companyId}/verify`);
});

test('there is no Retry for a viewer, nor where a sync would be refused', async () => {
  const { json } = await admin.call('POST', '/api/tokens', { name: 'eva', role: 'viewer' });
  const viewer = await PageClient.signedIn(admin.url, (json as { token: string }).token);
  const id = await failedRun(await admin.addCompany());
  expect((await viewer.open(`/runs/${id}`)).html).not.toContain('run.retry');

  const blocked = await failedRun(await admin.addCompany({}, { reauthorizationReason: 'token_refused' }));
  const html = await runPage(blocked);
  expect(html).not.toContain('run.retry');
  expect(wordsOf(html)).toContain('Must authorize The company is not synced: see the company');
  const paused = await failedRun(await admin.addCompany({}, { paused: true }));
  expect(await runPage(paused)).not.toContain('run.retry');
  const succeeded = await runOf(await admin.addCompany(), {}, [{ resource: 'employees' }]);
  expect(await runPage(succeeded)).not.toContain('run.retry');
});

test('a failure that a later run has made up for says so', async () => {
  const company = await admin.addCompany();
  const id = await failedRun(company, { finishedAt: new Date(Date.now() - 60_000) });
  await admin.db.prisma.walk.updateMany({ where: { runId: id, resource: 'shifts' }, data: { resource: 'employees' } });
  await admin.db.prisma.list.create({ data: { ...company, resource: 'employees', records: 3, lastVerifiedAt: new Date() } });
  expect(wordsOf(await runPage(id))).toContain('A later run has proved this list complete:');
});

test('a run that waits to retry says when and why, and can be started at once', async () => {
  const company = await admin.addCompany();
  const startAfter = new Date(Date.now() + 240_000);
  const id = await failedRun(company, { status: 'queued', startAfter, finishedAt: null });
  const html = await runPage(id);
  const words = wordsOf(html);
  expect(words).toContain('Waits to retry');
  expect(words).toMatch(/shifts: the service refused it, and 1 more list .* Attempt 3 failed. The run tries again in 4 minutes/);
  expect(html).toContain('run.retry');
  expect(html).toContain('run.cancel');
  const row = wordsOf(rowOf((await page.open('/runs?status=queued')).html, id));
  expect(row).toContain('tries again in 4 minutes');
});

test('a run that left records out is not plain green, and leads to them', async () => {
  const company = await admin.addCompany();
  const walk = { resource: 'employees', verified: false, unverifiedReason: 'rejected_records', rejected: 1_200 };
  const id = await runOf(company, { finishedAt: new Date() }, [walk, { resource: 'departments' }]);
  const html = await runPage(id);
  expect(html.split('<span class="state warn">Succeeded, 1,200 rejected</span>').length).toBe(3);
  expect(html).toContain(`/rejected?environment=test&amp;company_id=${company.companyId}&amp;resource=employees`);
  expect(html).toContain(`/certificates?environment=test&amp;company_id=${company.companyId}&amp;resource=departments`);
  expect((await page.open('/runs')).html).toContain('<span class="state warn">Succeeded, 1,200 rejected</span>');
  const unproved = await runOf(company, {}, [{ resource: 'employees', verified: false, unverifiedReason: 'never_ended' }]);
  expect(await runPage(unproved)).toContain('<span class="state warn">Succeeded, not proved</span>');
  const absent = await runOf(company, {}, [{ resource: 'employees', verified: false, unverifiedReason: 'unavailable' }]);
  expect(await runPage(absent)).toContain('<span class="state good">Succeeded</span>');
});

test('a proved list leads to its certificate, above those of earlier walks and without those of later ones', async () => {
  const company = await admin.addCompany();
  const finishedAt = new Date('2026-03-01T02:10:00.123Z');
  const id = await runOf(company, { finishedAt }, [{ resource: 'departments', finishedAt }]);
  const list = `environment=test&amp;company_id=${company.companyId}&amp;resource=departments`;
  const address = `/certificates?${list}&amp;until=${encodeURIComponent(finishedAt.toISOString())}`;
  expect(await runPage(id)).toContain(`href="${address}"`);
  expect((await page.open(address.replaceAll('&amp;', '&'))).status).toBe(200);
});

test('a hold is shown on the run that found it', async () => {
  const company = await admin.addCompany();
  const id = await runOf(company, { finishedAt: new Date() }, [{ resource: 'employees' }]);
  const { id: walkId } = await admin.db.prisma.walk.findFirstOrThrow({ where: { runId: id } });
  const hold = { ...company, resource: 'employees', runId: id, walkId, count: 40, living: 41, sample: [], status: 'open' };
  const { id: holdId } = await admin.db.prisma.hold.create({ data: hold });
  const html = await runPage(id);
  expect(wordsOf(html)).toContain('40 deletions were held back. Open See the hold of employees');
  expect(html).toContain(`href="/holds/${holdId}"`);
  expect((await page.open(`/holds/${holdId}`)).status).toBe(200);
  await admin.db.prisma.hold.updateMany({ where: { walkId }, data: { status: 'rejected' } });
  expect(wordsOf(await runPage(id))).toContain('40 deletions were held back. Rejected See the hold');
});

test('one line says how far a run is, with one time left', async () => {
  const company = await admin.addCompany();
  const id = await runOf(company, { status: 'running', startedAt: new Date(Date.now() - 50_000) }, [
    { resource: 'departments', received: 100, totalRecords: 100, pages: 1 },
    { resource: 'employees', status: 'running', verified: false, received: 150, totalRecords: 1_150, pages: 3 },
  ]);
  const words = wordsOf(await runPage(id));
  expect(words).toMatch(/20 % employees, list 2 of 2 250 of 1,250 records 4 pages about 3 min [\d s]*left/);
  expect(words.match(/left/g)).toHaveLength(1);
  expect(wordsOf(rowOf((await page.open('/runs?status=running')).html, id))).toMatch(/Running 20 %, about 3 min/);
});

test('a run of a company that was removed says so, and offers nothing that would fail', async () => {
  const company = await admin.addCompany();
  const id = await failedRun(company);
  await admin.call('DELETE', `/api/companies/test/${company.companyId}`);
  const html = await runPage(id);
  expect(wordsOf(html)).toContain(`${company.companyId} , a company that was removed`);
  expect(wordsOf(html)).toContain('The company was removed since, so nothing is to be done.');
  expect(html).not.toMatch(/run\.retry|href="\/(companies\/test|rejected|certificates)/);
  const row = rowOf((await page.open(`/runs?company_id=${company.companyId}`)).html, id);
  expect(wordsOf(row)).toContain('removed');
  expect(row).not.toContain('/companies/test');
});

test('the filters of the page are those of the API, and the page keeps them', async () => {
  const company = await admin.addCompany();
  const id = await runOf(company, { trigger: 'resync' }, [{ resource: 'employees' }]);
  const today = new Date().toISOString().slice(0, 10);
  const { html } = await page.open(`/runs?status=succeeded&trigger=resync&environment=test&resource=employees&day=${today}`);
  expect(rowOf(html, id)).not.toBe('');
  expect(html).toMatch(/<option value="resync" selected>resync of many<\/option>/);
  expect(html).toMatch(new RegExp(`<input type="date" name="day" value="${today}"`));
  expect(rowOf((await page.open('/runs?trigger=resync&day=2024-11-23')).html, id)).toBe('');
  expect((await page.open(`/runs?day=${randomUUID()}`)).status).toBe(400);
});
