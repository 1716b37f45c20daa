import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { runMuster } from '../../cli/run-muster.js';
import { PageClient } from '../../dashboard/page-client.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

const PATH = '/api/connect-links/reauthorization';
let admin: AdminFixture;
let lost: CompanyKey[];
beforeAll(async () => {
  admin = await startAdmin();
  const id = (n: number) => ({ companyId: `${n}0000000-0000-4000-8000-000000000000` });
  lost = [];
  for (const n of [1, 2, 3]) lost.push(await admin.addCompany(id(n), { reauthorizationReason: 'token_refused' }));
  await admin.addCompany({ environment: 'production', ...id(4) }, { reauthorizationReason: 'token_refused' });
  await admin.addCompany(id(5));
  await admin.addCompany(id(6), { paused: true });
});
afterAll(() => admin.stop());

const tokenOf = (url: string) => url.split('/connect/')[1]!;

test('makes one for each company of the environment that must authorize again, the same ones when it is asked again', async () => {
  const { status, json } = await admin.call('POST', PATH, { environment: 'test' });
  expect([status, json.next_cursor]).toEqual([201, null]);
  expect(json.data).toEqual(
    lost.map(({ companyId }) => ({
      environment: 'test',
      company_id: companyId,
      company_name: `Company ${companyId.slice(0, 4)}`,
      url: expect.stringMatching(/^https:\/\/muster\.example\/connect\/[\w-]{43}$/),
      expires_at: expect.stringMatching(/Z$/),
    })),
  );
  expect((await admin.call('POST', PATH, { environment: 'test' })).json).toEqual(json);
  const shown = await admin.call('GET', `/api/companies/test/${lost[0]!.companyId}`);
  expect(shown.json.authorize_url).toBe(json.data[0].url);
  const started = await admin.fetch(`/connect/${tokenOf(json.data[0].url)}`, { redirect: 'manual' });
  expect([started.status, started.headers.get('location')]).toEqual([302, expect.stringContaining(lost[0]!.companyId)]);
});

test('without an environment, it makes those of both', async () => {
  const { status, json } = await admin.call('POST', PATH, {});
  expect([status, json.data.map((link: { environment: string }) => link.environment)]).toEqual([
    201,
    ['production', 'test', 'test', 'test'],
  ]);
  const page = await PageClient.signedIn(admin.url);
  const companies = await page.open('/companies?status=reauthorization_required');
  expect(companies.html).toContain('Make the links</button>');
  expect((await page.open('/companies?status=reauthorization_required&q=Company')).html).not.toContain('Make the links');
  expect((await page.act('connect_links.create', {})).html).toContain('Links for 4 companies');
  const file = await page.act('connect_links.create', { as: 'csv' });
  expect(file.html.trimEnd().split('\r\n')).toHaveLength(5);
});

test('comes in pages that are bounded', async () => {
  const first = await admin.call('POST', PATH, { environment: 'test', limit: 2 });
  const second = await admin.call('POST', PATH, { environment: 'test', limit: 2, cursor: first.json.next_cursor });
  expect([...first.json.data, ...second.json.data].map(({ company_id }) => company_id)).toEqual(
    lost.map(({ companyId }) => companyId),
  );
  expect(second.json.next_cursor).toBe(null);
  for (const body of [{ environment: 'test', limit: 501 }, { environment: 'test', cursor: '!' }, { environment: 'x' }])
    expect((await admin.call('POST', PATH, body)).status).toBe(400);
});

test('no link is in the log, in any table or in the answer that is kept for an Idempotency-Key', async () => {
  const send = () => admin.call('POST', PATH, { environment: 'test' }, { 'idempotency-key': 'the-links' });
  const { json } = await send();
  const again = await send();
  expect([again.json, again.headers.get('idempotent-replayed')]).toEqual([json, 'true']);
  const { rows } = await admin.db.pool.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname IN ('muster', 'mirror')`,
  );
  expect(rows.length).toBeGreaterThan(20);
  const stored = await Promise.all(rows.map(({ name }) => admin.db.pool.query(`SELECT t::text AS row FROM ${name} t`)));
  const kept = stored.flatMap((table) => table.rows.map(({ row }) => String(row))).join('\n');
  expect(kept).toContain('connect_links.create');
  for (const { url } of json.data) {
    expect(kept).not.toContain(tokenOf(url));
    expect(admin.log()).not.toContain(tokenOf(url));
  }
});

test('an environment that is not configured is refused', async () => {
  const own = await startAdmin({});
  try {
    const { status, json } = await own.call('POST', PATH, { environment: 'test' });
    expect([status, json.code]).toEqual([422, 'environment_not_configured']);
  } finally {
    await own.stop();
  }
});

test('the command line prints them for people, for programs and for spreadsheets', async () => {
  const operate = (...args: string[]) =>
    runMuster(['connect-link', '--environment', 'test', ...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN });
  const { data } = (await admin.call('POST', PATH, { environment: 'test' })).json;
  expect((await operate('--all', '--json')).json()).toEqual(data);
  const table = (await operate('--all')).stdout.split('\n');
  expect([table.length, table[1]]).toEqual([5, expect.stringContaining(data[0].url)]);
  const csv = (await operate('--csv')).stdout.split('\r\n');
  expect(csv[0]).toBe('environment,company_id,company_name,url,expires_at');
  expect(csv[1]).toBe(Object.values(data[0]).join(','));
  expect((await operate('--all', '--company', lost[0]!.companyId)).code).toBe(2);
});

test('a button of the issue makes them for all: a page with a link a company, and a file', async () => {
  const issue = { cause: 'reauthorization_required', environment: 'test', severity: 'action', companies: 3, told: 3 };
  await admin.db.prisma.issue.create({ data: { ...issue, sample: lost.map(({ companyId }) => companyId) } });
  const page = await PageClient.signedIn(admin.url);
  const { html: overview } = await page.open('/');
  expect(overview).toContain('Make the links</button>');
  expect(overview).toContain(`Company ${lost[0]!.companyId.slice(0, 4)}</a>`);
  const fields = { environment: 'test', back: '/' };
  const { status, html, headers } = await page.act('connect_links.create', fields);
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
  expect(html.match(/value="https:\/\/muster\.example\/connect\/[\w-]+"/g)).toHaveLength(3);
  for (const { companyId } of lost) expect(html).toContain(`Link of Company ${companyId.slice(0, 4)}`);
  expect(html).toContain('Download as CSV</button>');
  const file = await page.act('connect_links.create', { ...fields, as: 'csv' });
  expect([file.status, file.headers.get('content-type'), file.headers.get('content-disposition')]).toEqual([
    200,
    'text/csv; charset=utf-8; header=present',
    'attachment; filename="links.csv"',
  ]);
  expect(file.html.split('\r\n')).toHaveLength(5);
});
