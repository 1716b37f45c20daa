import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BUILT_IN_TEXTS } from '../../../src/api/companies/connect-texts.js';
import { validateCatalogue } from '../../../src/catalogue/validate.js';
import { type AdminFixture, SILENT, startAdmin } from '../admin-fixture.js';

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
const list = (more: object = {}) => ({
  method: 'GET',
  path: '/api/companies/{company_id}/list',
  pager: { style: 'skip-take', in: 'query', size: 200 },
  ...more,
});
const CATALOGUE = validateCatalogue(
  { employees: list({ privacy: { nationalId: 'drop', 'home.bankAccount': 'drop', iban: 'mask' } }), time_entries: list() },
  'the catalogue of this test',
  undefined,
);
const OPERATOR = { name: 'Nordlys <Regnskap> & Co', contact: 'hjelp@nordlys.example', texts: BUILT_IN_TEXTS };

let admin: AdminFixture;
let plain: AdminFixture;
beforeAll(async () => {
  const providers = { production: SILENT, test: SILENT };
  admin = await startAdmin(providers, { catalogue: CATALOGUE, operator: OPERATOR });
  plain = await startAdmin(providers);
});
afterAll(async () => {
  await admin.stop();
  await plain.stop();
});

async function newLink({ call, url }: AdminFixture, body: object = { environment: 'test' }): Promise<string> {
  return url + new URL((await call('POST', '/api/connect-links', body)).json.url).pathname;
}

async function open(address: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(address, { method, redirect: 'manual', headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const flows = async ({ db }: AdminFixture) => db.prisma.authorizationFlow.count();

test('a program is sent on at once, and a browser once it has seen who asks', async () => {
  const link = await newLink(admin);
  for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }]) {
    const { status, headers: answered } = await open(link, headers);
    expect([status, answered.get('location')]).toEqual([302, expect.stringContaining('/auth/authorize?response_type=code')]);
  }
  const before = await flows(admin);
  for (const method of ['GET', 'HEAD', 'GET']) {
    const page = await open(link, BROWSER, method);
    expect([page.status, page.headers.get('location'), page.headers.get('set-cookie')]).toEqual([200, null, null]);
    expect(page.headers.get('cache-control')).toBe('no-store');
  }
  expect(await flows(admin)).toBe(before);
  const page = await open(link, BROWSER);
  const [, href] = /<a class="action" href="([^"]+)">Continue</.exec(page.text)!;
  const onward = await open(new URL(href!, link).href, BROWSER);
  expect([onward.status, onward.headers.get('location')]).toEqual([302, expect.stringContaining('/auth/authorize?')]);
  expect(await flows(admin)).toBe(before + 1);
});

test('the page says who asks, for which company, what is read and what is not stored, and whom to ask', async () => {
  const { companyId } = await admin.addCompany();
  await admin.db.prisma.company.updateMany({ where: { companyId }, data: { name: 'Fjord & <b>Sønn</b>' } });
  const { text } = await open(await newLink(admin, { environment: 'test', company_id: companyId }), BROWSER);
  expect(text).toContain('Nordlys &#60;Regnskap&#62; &#38; Co asks for permission to read data of Fjord &#38; &#60;b&#62;Sønn');
  expect(text).toContain(
    '<li>employees<small>not stored: national id, bank account; stored only in unreadable form: iban</small></li>',
  );
  expect(text).toContain('<li>time entries</li>');
  expect(text).toContain(
    'Questions? Contact Nordlys &#60;Regnskap&#62; &#38; Co: <a href="mailto:hjelp@nordlys.example">hjelp@nordlys.example</a>.',
  );
  const bare = await open(await newLink(plain), BROWSER);
  expect(bare.text).toContain('The person who sent you this link asks for permission to read data of your company.');
  for (const page of [text, bare.text]) {
    const shown = page.replace(/<style>.*?<\/style>/s, '');
    expect(shown).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}|\btest\b|token|oauth|sandbox|muster/i);
  }
});

test('a link that opens nothing says so, and a company whose name is not known is yours', async () => {
  for (const path of ['/connect/x', '/connect', `/connect/${'A'.repeat(43)}`]) {
    const page = await open(plain.url + path, BROWSER);
    expect([page.status, page.text]).toEqual([404, expect.stringContaining('<h1>This link is not known</h1>')]);
    expect(page.text).toContain('If you need help, ask the person who sent you the link.');
  }
  const link = await newLink(plain, { environment: 'test', company_id: randomUUID() });
  expect((await open(link, BROWSER)).text).toContain('choose your company and decide there.');
  await plain.db.prisma.connectLink.updateMany({ data: { expiresAt: new Date() } });
  const expired = await open(link, BROWSER);
  expect([expired.status, expired.text]).toEqual([410, expect.stringContaining('<h1>This link has expired</h1>')]);
});

test.each([
  ['nb', 'nb'],
  ['nb-NO,en;q=0.5', 'nb'],
  ['no', 'nb'],
  ['nn-NO;q=0.9, de;q=1', 'nb'],
  ['en;q=0.8, nb;q=0.9', 'nb'],
  ['en-GB, nb', 'en'],
  ['nb;q=0, en', 'en'],
  ['de', 'en'],
  ['*', 'en'],
  ['', 'en'],
  ['x,'.repeat(5_000), 'en'],
  ['nb;q=high', 'en'],
])('Accept-Language: %s is answered in %s', async (wanted, language) => {
  const { text, headers } = await open(await newLink(plain), { ...BROWSER, 'accept-language': wanted });
  expect(headers.get('content-language')).toBe(language);
  expect(text).toContain(`<html lang="${language}" dir="ltr">`);
  expect(text).toContain(language === 'nb' ? '<li>ansatte</li>' : '<li>employees</li>');
});
