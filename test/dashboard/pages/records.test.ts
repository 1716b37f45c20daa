import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { recordPath } from '../../../src/dashboard/parts/record-links.js';
import { type AdminFixture, startAdmin, writeChanges } from '../../api/admin-fixture.js';
import { PageClient } from '../page-client.js';

const HOSTILE = '<img src=x onerror=alert(1)>';
const IDS = [
  '1',
  'a/b',
  '..',
  '.',
  '100%',
  '%2F',
  'a b',
  '"quoted"',
  "O'Neill",
  HOSTILE,
  'é – \u{1f600}',
  'a?b#c&d=e+f',
  'ab'.repeat(100),
];

let admin: AdminFixture;
let company: CompanyKey;
let page: PageClient;

beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
  await admin.addCompany();
  await admin.db.prisma.company.updateMany({ where: company, data: { name: 'Fjord Foods' } });
  await admin.db.prisma.list.create({ data: { ...company, resource: 'employees', records: IDS.length } });
  for (const id of IDS) {
    await admin.db.prisma.employee.create({
      data: { ...company, id, data: { uid: id, name: `Øyvind of ${id}`, note: HOSTILE } },
    });
    await writeChanges(admin.db, company, [{ id, data: JSON.stringify({ uid: id, name: 'Øyvind' }) }]);
  }
  page = await PageClient.signedIn(admin.url);
});
afterAll(() => admin.stop());

const place = (id: string) => ({ environment: company.environment, company_id: company.companyId, resource: 'employees', id });
const decoded = (html: string) =>
  html.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
const headingOf = (html: string) => decoded(/<h1>(.*?)<\/h1>/s.exec(html)![1]!);

test('a person finds a record by company and name, and the result leads to its page and to its erasure', async () => {
  const { status, html } = await page.open('/records?company=fjord&q=oyvind+of+1');
  expect(status).toBe(200);
  expect(html).toContain('<a href="' + recordPath(place('1')) + '">Øyvind of 1</a>');
  expect(decoded(html)).toContain(`/companies/test/${company.companyId}/forget?resource=employees&id=1`);
  expect(html).not.toContain('<img');
  expect((await page.open('/records')).html).toContain('Name a company');
  expect((await page.open('/records?q=1')).html).toContain('Which company?');
  expect((await page.open('/records?company=nowhere')).html).toContain('No company matches.');
  expect((await page.open('/records?company=fjord&q=nobody+like+this')).html).toContain('No living record matches.');
  expect((await page.open(`/companies/test/${company.companyId}`)).html).toContain('Find a record');
});

test('a record of any id has a page, on which its history is', async () => {
  for (const id of IDS) {
    const { status, html } = await page.open(recordPath(place(id)));
    expect([status, headingOf(html)], id).toEqual([200, `Øyvind of ${id}`.slice(0, 80)]);
    expect(html).toContain('no. ');
    expect(html).not.toContain('<img');
  }
});

test('nobody is erased before the page has said who it is; then the record has a page that says so', async () => {
  for (const id of IDS.slice(0, 5)) {
    const asked = await page.open(
      `/companies/test/${company.companyId}/forget?${new URLSearchParams({ resource: 'employees', id })}`,
    );
    expect(headingOf(asked.html)).toBe(`Erase Øyvind of ${id}?`);
    expect(await admin.db.prisma.employee.count({ where: { ...company, id } })).toBe(1);
    const form = { environment: company.environment, company_id: company.companyId, resource: 'employees', id };
    const done = await page.act('record.forget', { ...form, back: '/' });
    expect([done.status, headingOf(done.html)]).toEqual([200, 'The person was erased']);
    expect(await admin.db.prisma.employee.count({ where: { ...company, id } })).toBe(0);
    const again = await page.open(recordPath(place(id)));
    expect([again.status, again.html.includes('This record was forgotten.')]).toEqual([200, true]);
    expect((await page.act('record.forget', { ...form, back: '/' })).html).toContain('Nothing was found');
  }
});

test('a misspelt id is not erased: the pages say so, and name the id that is like it', async () => {
  await admin.db.prisma.employee.create({ data: { ...company, id: 'Kari', data: { name: 'Kari' } } });
  for (const path of [recordPath(place('kari ')), `/companies/test/${company.companyId}/forget?resource=employees&id=kari`])
    expect((await page.open(path)).html).toMatch(/Did you mean.*>Kari<\/a>/s);
  const done = await page.act('record.forget', {
    environment: 'test',
    company_id: company.companyId,
    resource: 'employees',
    id: 'kari',
    back: '/',
  });
  expect(headingOf(done.html)).toBe('Nothing was found');
  expect(done.html).toMatch(/Did you mean.*>Kari<\/a>/s);
  expect(await admin.db.prisma.employee.count({ where: { ...company, id: 'Kari' } })).toBe(1);
});

test('a viewer is told who may see records, and sees none', async () => {
  const viewer = await PageClient.signedIn(admin.url, await tokenOf('viewer'));
  for (const path of ['/records', '/records?company=fjord&q=oyvind']) {
    const { status, html } = await viewer.open(path);
    expect(status).toBe(200);
    expect(html).toContain('Values of records are shown to operators and admins.');
    expect(html).not.toContain('Øyvind');
  }
  const { status, html } = await viewer.open(recordPath(place('Kari')));
  expect([status, html.includes('needs the role operator')]).toEqual([403, true]);
  expect((await viewer.open(`/companies/test/${company.companyId}`)).html).not.toContain('Find a record');
});

test('an operator sees records, and no way to erase them', async () => {
  const operator = await PageClient.signedIn(admin.url, await tokenOf('operator'));
  const { html } = await operator.open('/records?company=fjord&q=kari');
  expect([html.includes('>Kari</a>'), html.includes('Erase')]).toEqual([true, false]);
  expect((await operator.open(recordPath(place('Kari')))).html).not.toContain('Erase this person');
});

async function tokenOf(role: string): Promise<string> {
  return (await admin.call('POST', '/api/tokens', { name: `a ${role}`, role })).json.token;
}
