import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { PageClient } from '../page-client.js';

let admin: AdminFixture;
let company: CompanyKey;
let page: PageClient;
let fields: { environment: string; company_id: string; back: string };

beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());
beforeEach(async () => {
  company = await admin.addCompany();
  const path = `/companies/${company.environment}/${company.companyId}`;
  fields = { environment: company.environment, company_id: company.companyId, back: path };
  page = await PageClient.signedIn(admin.url);
  await page.open(path);
});

const isPaused = async () =>
  (await admin.db.prisma.connection.findUniqueOrThrow({ where: { environment_companyId: company } })).paused;

describe('a form is refused, and nothing is done,', () => {
  test.each<[string, (own: PageClient) => Promise<{ status: number }>]>([
    ['without the text of its session', (own) => own.send('/act/company.pause', fields)],
    ['with another text', (own) => own.send('/act/company.pause', { ...fields, csrf: 'x'.repeat(43) })],
    [
      'with the text of another session',
      async (own) => {
        const other = await PageClient.signedIn(admin.url);
        await other.open('/companies');
        return own.send('/act/company.pause', { ...fields, csrf: other.csrf });
      },
    ],
    ['from another site', (own) => own.act('company.pause', fields, { 'sec-fetch-site': 'cross-site' })],
    ['from another host of the site', (own) => own.act('company.pause', fields, { 'sec-fetch-site': 'same-site' })],
    ['with a right text, by an address that was typed', (own) => own.act('company.pause', fields, { 'sec-fetch-site': 'none' })],
  ])('%s', async (_, send) => {
    expect((await send(page)).status).toBe(403);
    expect(await isPaused()).toBe(false);
  });

  test('in the place of another one', async () => {
    const answer = await fetch(`${admin.url}/act/company.pause`, {
      method: 'POST',
      headers: { cookie: page.cookie!, 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
      body: JSON.stringify({ ...fields, csrf: page.csrf }),
    });
    expect(answer.status).toBe(415);
    expect(await isPaused()).toBe(false);
  });

  test('without a session', async () => {
    page.cookie = undefined;
    const { location } = await page.act('company.pause', fields);
    expect(location).toBe(`/login?next=${encodeURIComponent(`${fields.back}?undone=company.pause`)}`);
    expect(await isPaused()).toBe(false);
  });
});

test('a browser that does not say the site is judged by its origin', async () => {
  const send = (origin: string | undefined) =>
    fetch(`${admin.url}/login`, {
      method: 'POST',
      redirect: 'manual',
      headers: origin === undefined ? {} : { origin },
      body: new URLSearchParams({ token: TOKEN }),
    });
  expect((await send('https://elsewhere.example')).status).toBe(403);
  expect((await send('null')).status).toBe(403);
  expect((await send('https://muster.example')).status).toBe(303);
  expect((await send(admin.url)).status).toBe(303);
  expect((await send(undefined)).status).toBe(303);
});

test('a button does what the call does, in the name of the person, and shows the page again', async () => {
  const { status, location } = await page.act('company.pause', fields);
  expect([status, location]).toEqual([303, `${fields.back}?done=company.pause`]);
  expect(await isPaused()).toBe(true);
  expect((await page.open(location!)).html).toContain('The company is paused');
  const [entry] = await admin.db.prisma.auditEntry.findMany({ where: company, orderBy: { id: 'desc' }, take: 1 });
  expect(entry).toMatchObject({ actor: 'admin', action: 'company.pause', details: { outcome: 'done' } });
});

test('`done` and `back` say nothing but what is ours', async () => {
  const { html } = await page.open('/companies?done=%3Cb%3EYou+have+won%3C/b%3E');
  expect(html).not.toContain('You have won');
  expect(html).not.toContain('class="notice good"');
  expect((await page.open('/companies?done=constructor')).html).not.toContain('class="notice good"');
  expect((await page.act('company.pause', { ...fields, back: '//elsewhere.example' })).location).toBe('/?done=company.pause');
});

test('what the API refuses is said with its reason, what to do, and the way back', async () => {
  await page.act('company.pause', fields);
  const { status, html } = await page.act('company.sync', fields);
  expect(status).toBe(409);
  expect(html).toContain('company_paused');
  expect(html).toContain('Resume the company first.');
  expect(html).toContain(`href="${fields.back}"`);
  expect((await page.act('company.nothing', fields)).status).toBe(404);
  expect((await page.act('company.pause', { ...fields, company_id: '../../runs' })).status).toBe(400);
});

test('an action on a selection does what it can, and says what it could not', async () => {
  const other = await admin.addCompany({}, { paused: true });
  const ticked = [company, other].map(({ environment, companyId }): [string, string] => [
    'company',
    `${environment}/${companyId}`,
  ]);
  const { status, html } = await page.send('/act/selection', [
    ['csrf', page.csrf],
    ['action', 'company.sync'],
    ['back', '/companies'],
    ...ticked,
  ]);
  expect(status).toBe(200);
  expect(html).toContain('Done for 1 of 2 selected companies.');
  expect(html).toContain('It is paused');
  expect(html).toContain(`/companies/${other.environment}/${other.companyId}`);
  expect((await admin.runs.list({ ...company, limit: 5 })).data).toMatchObject([{ status: 'queued', trigger: 'resync' }]);
});

test('a connect link is shown once, as it was made', async () => {
  const { status, html } = await page.act('company.link', fields);
  expect(status).toBe(200);
  expect(html).toMatch(/value="https:\/\/muster\.example\/connect\/[\w-]+"/);
});

test('a removal is asked for twice', async () => {
  const { html } = await page.open(`${fields.back}/remove`);
  expect(html).toContain('Remove</button>');
  expect((await page.act('company.remove', { ...fields, back: '/companies' })).location).toBe('/companies?done=company.remove');
  expect((await page.open(fields.back)).status).toBe(404);
});
