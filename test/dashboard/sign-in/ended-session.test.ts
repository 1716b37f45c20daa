import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { PageClient } from '../page-client.js';

let admin: AdminFixture;
let company: CompanyKey;
let page: PageClient;
let path: string;
let fields: { environment: string; company_id: string; back: string };

beforeAll(async () => void (admin = await startAdmin()));
afterAll(() => admin.stop());
beforeEach(async () => {
  company = await admin.addCompany();
  path = `/companies/${company.environment}/${company.companyId}`;
  fields = { environment: company.environment, company_id: company.companyId, back: path };
  page = await PageClient.signedIn(admin.url);
  await page.open(path);
  // The session ends while the form is open.
  await admin.db.prisma.session.deleteMany();
});

const isPaused = async () =>
  (await admin.db.prisma.connection.findUniqueOrThrow({ where: { environment_companyId: company } })).paused;
const NOTHING = 'Nothing was done: “Pause” was not pressed.';

test('the person signs in, comes back to the page of the form, and reads that nothing was done', async () => {
  const { status, location } = await page.act('company.pause', fields);
  expect(status).toBe(303);
  expect((await page.open(location!)).html).toContain(NOTHING);
  const next = new URLSearchParams(location!.split('?')[1]).get('next')!;
  const back = await page.send('/login', { token: TOKEN, next });
  expect([back.status, back.location]).toEqual([303, next]);
  expect(next.split('?')[0]).toBe(path);
  expect((await page.open(next)).html).toContain(NOTHING);
  expect(await isPaused()).toBe(false);
  // The button of this page works, and its notice replaces the other.
  const done = await page.act('company.pause', { ...fields, back: next.split('?')[0]! });
  expect((await page.open(done.location!)).html).not.toContain('Nothing was done');
  expect(await isPaused()).toBe(true);
});

test('a script that sends the form leads the whole page to sign in, and back', async () => {
  const { status, headers } = await page.act('company.pause', fields, { 'hx-request': 'true' });
  expect([status, headers.get('hx-redirect')]).toEqual([
    401,
    `/login?next=${encodeURIComponent(`${path}?undone=company.pause`)}`,
  ]);
});

test('the filters of a list are kept, and the buttons for many companies are named', async () => {
  const back = '/companies?q=a&done=company.sync';
  const next = '/companies?q=a&undone=company.pause';
  for (const route of ['selection', 'matching']) {
    const { location } = await page.act(route, { action: 'company.pause', back });
    expect(location).toBe(`/login?next=${encodeURIComponent(next)}`);
  }
});

test('a form of another site is refused as ever, and a name that is not ours is not repeated', async () => {
  expect((await page.act('company.pause', fields, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  const { html } = await page.open(`/login?next=${encodeURIComponent('/?undone=You have won')}`);
  expect(html).toContain('Sign in to Muster');
  expect(html).not.toContain('You have won');
  const away = await page.act('company.pause', { ...fields, back: '//elsewhere.example' });
  expect(away.location).toBe(`/login?next=${encodeURIComponent('/?undone=company.pause')}`);
});
