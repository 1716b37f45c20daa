import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CompanyKey, keyText } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin } from '../../api/admin-fixture.js';
import { PageClient } from '../page-client.js';

let admin: AdminFixture;
let page: PageClient;

beforeAll(async () => {
  admin = await startAdmin();
  for (let i = 0; i < 57; i++) await named(`Fjord ${String(i).padStart(2, '0')}`);
  await named('Ødegård');
  page = await PageClient.signedIn(admin.url);
});
afterAll(() => admin.stop());

async function named(name: string): Promise<CompanyKey> {
  const company = await admin.addCompany({ companyId: randomUUID() });
  await admin.db.prisma.company.update({ where: { environment_companyId: company }, data: { name } });
  return company;
}
const open = async (path: string) => (await page.open(path)).html.replaceAll('&amp;', '&');
const linkOf = (html: string, text: string) => new RegExp(`href="([^"]+)"[^>]*>${text}</a>`).exec(html)?.[1];
const namesOf = (html: string) => [...html.matchAll(/>(Fjord \d\d|Ødegård)<\/a>/g)].map(([, name]) => name);
const paused = () => admin.db.prisma.connection.count({ where: { paused: true } });
const matching = (html: string) => ({
  match: /name="match" value="([^"]*)"/.exec(html)![1]!,
  count: /name="count" value="([^"]*)"/.exec(html)![1]!,
  back: /name="back" value="([^"]*)"/.exec(html)![1]!,
});

test('pages say which items of how many they show, and lead on, back and to the first one', async () => {
  const first = await open('/companies?sort=name');
  expect(first).toContain('1–50 of 58');
  expect(linkOf(first, 'Previous page')).toBeUndefined();
  const second = await open(linkOf(first, 'Next page')!);
  expect(second).toContain('51–58 of 58');
  expect(linkOf(second, 'First page')).toBe('/companies?sort=name');
  const back = await open(linkOf(second, 'Previous page')!);
  expect(back).toContain('1–50 of 58');
  expect(namesOf(back)).toEqual(namesOf(first));
});

test('a heading orders the list, and a second time the other way round, with the filters kept', async () => {
  const first = await open('/companies?environment=test&q=d');
  expect(first).not.toContain('aria-sort');
  const byName = linkOf(first, 'Company')!;
  expect(byName).toBe('/companies?q=d&environment=test&sort=name');
  const sorted = await open(byName);
  expect(sorted).toContain('aria-sort="ascending"');
  const reversed = await open(linkOf(sorted, 'Company')!);
  expect(reversed).toContain('aria-sort="descending"');
  expect(namesOf(reversed)[0]).toBe('Ødegård');
  expect(linkOf(first, 'Rows')).toContain('sort=records&order=desc');
});

test('a search without diacritics finds, and one that finds nothing says how to go on', async () => {
  expect(namesOf(await open('/companies?q=odegard'))).toEqual(['Ødegård']);
  const empty = await open('/companies?q=nothing+like+it');
  expect(empty).toContain('No company matches.');
  expect(linkOf(empty, 'Clear the filters')).toBe('/companies');
});

test('all companies that match are one CSV file, whatever page a person is on', async () => {
  const download = linkOf(await open('/companies?q=fjord&sort=name&order=desc'), 'Download as CSV')!;
  expect(download).toBe('/companies.csv?q=fjord&sort=name&order=desc');
  const { status, headers, html } = await page.open(download);
  expect([status, headers.get('content-type'), headers.get('content-disposition')]).toEqual([
    200,
    'text/csv; charset=utf-8; header=present',
    'attachment; filename="companies.csv"',
  ]);
  const lines = html.trimEnd().split('\r\n');
  expect(lines[0]).toMatch(/^environment,company_id,name,status,resource/);
  const employees = lines.slice(1).filter((line) => line.split(',')[4] === 'employees');
  expect(employees.map((line) => line.split(',')[2])).toEqual(
    Array.from({ length: 57 }, (_, i) => `Fjord ${String(56 - i).padStart(2, '0')}`),
  );
  expect((await page.open(`${download}&limit=10`)).html).toBe(html);
  expect((await page.open('/companies.csv?q=nothing+like+it')).html.trimEnd().split('\r\n')).toHaveLength(1);
  const wrong = await page.open('/companies.csv?status=nonsense');
  expect([wrong.status, wrong.html.includes('<h1>')]).toEqual([400, true]);
  expect((await page.open('/audit.csv?action=no.such')).html).toMatch(/^id,|^seq,|^at,/);
});

test('every list takes a company by its name', async () => {
  const company = await named('Åsgård');
  await admin.db.prisma.run.create({ data: { ...company, trigger: 'nightly', mode: 'full', status: 'succeeded' } });
  for (const path of ['/runs', '/audit', '/notifications', '/certificates'])
    expect(await open(path)).toMatch(/<span>Company<\/span><input type="search" name="company"/);
  expect(await open('/runs?company=asgard')).toContain('>Åsgård</a>');
  expect(await open('/runs?company=odegard')).toContain('No run matches.');
  const one = await open(`/runs?company_id=${company.companyId}`);
  expect(one).toContain(`<input type="hidden" name="company_id" value="${company.companyId}"/>`);
  expect(linkOf(one, 'All companies')).toBe('/runs');
  await admin.call('DELETE', `/api/companies/${company.environment}/${company.companyId}`);
});

test('all that match are acted on, and no other company, after a question that names their number', async () => {
  const list = await open('/companies?q=fjord');
  const all = await open(linkOf(list, 'Select all 57 that match')!);
  expect(all).toContain('All 57 companies that match are selected');
  const form = matching(all);
  const asked = await page.act('matching', { ...form, action: 'company.pause' });
  expect(asked.html).toContain('Pause: 57 companies?');
  expect(await paused()).toBe(0);
  const done = await page.act('matching', {
    ...matching(asked.html.replaceAll('&amp;', '&')),
    action: 'company.pause',
    confirmed: 'yes',
  });
  expect(done.html).toContain('57 of 57');
  expect(await paused()).toBe(57);
  const other = await admin.db.prisma.company.findFirstOrThrow({ where: { name: 'Ødegård' } });
  const key = { environment: other.environment, companyId: other.companyId };
  expect((await admin.db.prisma.connection.findUniqueOrThrow({ where: { environment_companyId: key } })).paused).toBe(false);
  const entries = await admin.db.prisma.auditEntry.findMany({ where: { action: 'company.pause' } });
  expect(new Set(entries.map((entry) => keyText(entry as CompanyKey))).size).toBe(57);
  await page.act('matching', { ...form, action: 'company.resume', confirmed: 'yes' });
  expect(await paused()).toBe(0);
});

test('if another number matches by then, nothing is done, and the person is asked again', async () => {
  const form = matching(await open('/companies?q=fjord+0&all=1'));
  expect(form.count).toBe('10');
  const added = await named('Fjord 0x');
  const asked = await page.act('matching', { ...form, action: 'company.pause', confirmed: 'yes' });
  expect(asked.html).toContain('10 companies matched when you selected them, and 11 match now.');
  expect(await paused()).toBe(0);
  // Twenty and fewer are not asked about where the number is right.
  await page.act('matching', { ...form, count: '11', action: 'company.pause' });
  expect(await paused()).toBe(11);
  await page.act('matching', { ...form, count: '11', action: 'company.resume' });
  await admin.call('DELETE', `/api/companies/${added.environment}/${added.companyId}`);
});

test('a form for all that match is refused without the text of its session, to a viewer, and for an unknown action', async () => {
  const form = matching(await open('/companies?q=fjord+0&all=1'));
  expect((await page.send('/act/matching', { ...form, action: 'company.pause' })).status).toBe(403);
  expect((await page.act('matching', { ...form, action: 'company.remove' })).status).toBe(404);
  const { json } = await admin.call('POST', '/api/tokens', { name: 'reader', role: 'viewer' });
  const viewer = await PageClient.signedIn(admin.url, json.token);
  const html = (await viewer.open('/companies?q=fjord&all=1')).html;
  expect(html).not.toContain('that match are selected');
  expect(html).not.toContain('Select all');
  expect((await viewer.act('matching', { ...form, action: 'company.pause' })).html).toContain('0 of 10');
  expect(await paused()).toBe(0);
});

test('a token is made and withdrawn on one page, and found by its name', async () => {
  await page.open('/tokens');
  const made = await page.act('token.create', { name: 'Åse', role: 'viewer', expires_at: '', back: '/tokens' });
  expect(made.html).toContain('It has the role viewer.');
  const html = await open('/tokens?q=ase');
  expect(html).toContain('>Åse</b>');
  expect(await open('/tokens?q=ole')).toContain('No token matches.');
  const id = /name="id" value="([^"]+)"/.exec(html)![1]!;
  const withdrawn = await page.act('token.delete', { id, back: '/tokens?q=ase' });
  expect(withdrawn.location).toBe('/tokens?q=ase&done=token.delete');
  expect(await open('/tokens?q=ase')).toContain('No token matches.');
});

test('a sync of more than twenty companies is asked about, and nothing is requested, then or later', async () => {
  const companies = await admin.db.prisma.connection.findMany({
    where: { paused: false },
    select: { environment: true, companyId: true },
  });
  await admin.db.prisma.run.createMany({
    data: companies.map((company) => ({ ...company, trigger: 'manual', mode: 'full', status: 'failed', finishedAt: new Date() })),
  });
  const press = async () => {
    await page.open('/runs');
    return page.act('companies.sync', { back: '/runs', status: 'failed' });
  };
  expect((await press()).location).toMatch(/^\/syncs\?/);
  for (let i = 0; i < 3; i++) await press();
  expect(await admin.db.prisma.run.count({ where: { trigger: 'resync' } })).toBe(0);
});
