import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SERVER_LIMITS } from '../../../src/api/plumbing/server-limits.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { waitFor } from '../../support/wait-for.js';
import { PageClient } from '../page-client.js';

const HOSTILE = `<script>alert(1)</script>"'><img src=x onerror=alert(2)> & Sønner`;
const RUN = randomUUID();
const HOLD = randomUUID();
let admin: AdminFixture;
let company: CompanyKey;
let page: PageClient;

beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany({}, { reauthorizationReason: 'token_refused' });
  const { environment, companyId } = company;
  await admin.db.prisma.company.update({ where: { environment_companyId: company }, data: { name: HOSTILE } });
  await admin.db.prisma.run.create({
    data: {
      id: RUN,
      environment,
      companyId,
      trigger: 'nightly',
      mode: 'full',
      status: 'failed',
      error: { code: HOSTILE, message: HOSTILE },
    },
  });
  const walk = await admin.db.prisma.walk.create({
    data: {
      runId: RUN,
      environment,
      companyId,
      resource: 'employees',
      position: 0,
      status: 'succeeded',
      verified: false,
      unverifiedReason: HOSTILE,
      serviceSays: HOSTILE,
      finishedAt: new Date(Date.now() + 3_600_000),
    },
  });
  await admin.db.prisma.list.create({ data: { ...company, resource: 'employees', unavailableSince: new Date() } });
  await admin.db.prisma.hold.create({
    data: {
      id: HOLD,
      environment,
      companyId,
      resource: 'employees',
      runId: RUN,
      walkId: walk.id,
      count: 40,
      living: 41,
      sample: [HOSTILE],
      status: 'open',
    },
  });
  await admin.db.prisma.notification.create({
    data: { environment, companyId, type: 'run_failed', change: 'run_failed 1', details: { reason: HOSTILE } },
  });
  await admin.db.prisma.auditEntry.create({
    data: { actor: HOSTILE, action: HOSTILE, environment, companyId, details: { outcome: HOSTILE, what: HOSTILE } },
  });
  page = await PageClient.signedIn(admin.url);
});
afterAll(() => admin.stop());

const paths = () => [
  '/',
  '/companies',
  '/companies/connect',
  `/companies/${company.environment}/${company.companyId}`,
  `/companies/${company.environment}/${company.companyId}/remove`,
  `/companies/${company.environment}/${company.companyId}/quiet-hours`,
  `/companies/${company.environment}/${company.companyId}/forget`,
  '/records',
  `/records/${company.environment}/${company.companyId}/employees/1`,
  `/companies/${company.environment}/${company.companyId}/forget?resource=employees&id=1`,
  '/runs',
  `/runs/${RUN}`,
  '/holds',
  '/holds?status=',
  `/holds/${HOLD}`,
  '/holds/approve-grants/test',
  '/syncs?status=failed',
  '/certificates',
  '/notifications',
  '/audit',
  '/queue',
  '/rejected',
  '/companies?resource=employees&state=unavailable',
  '/companies?proof=never',
  '/tokens',
  '/settings',
];

test('every page is whole, light, and runs nothing but our own files', async () => {
  for (const path of [...paths(), '/login']) {
    const { status, headers, html } = await page.open(path);
    if (path === '/login') continue;
    expect([path, status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      path,
      200,
      'text/html; charset=utf-8',
      'no-store',
    ]);
    const policy = headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("style-src 'self';");
    expect(policy).not.toContain('unsafe');
    expect([
      path,
      html.match(/<script(?![^>]* src="\/assets\/[0-9a-f]{16}\/[\w-]+\.js")[^>]*>|<style|\sstyle=|\son\w+="/),
    ]).toEqual([path, null]);
    expect(html).toMatch(/<h1>[^]*<script/);
    expect(html.length).toBeLessThan(60_000);
  }
});

test('what others named is text wherever it stands', async () => {
  for (const path of paths()) {
    const { html } = await page.open(path);
    expect([path, html.includes('<script>'), html.includes('<img')]).toEqual([path, false, false]);
  }
  expect((await page.open(paths()[3]!)).html).toContain('&lt;script>alert(1)&lt;/script>');
});

test('page, style and scripts weigh less than 150 kB, and the files are kept for good', async () => {
  const { html } = await page.open('/companies');
  let weight = html.length;
  const files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, file]) => file!);
  expect(files.length).toBe(3);
  for (const file of files) {
    const { status, headers, html: text } = await page.open(file);
    expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable']);
    weight += text.length;
  }
  expect(weight).toBeLessThan(150_000);
  // A page of another version, for which a load balancer has taken this process.
  const another = await page.open(files[0]!.replace(/[0-9a-f]{16}/, '0123456789abcdef'));
  expect([another.status, another.headers.get('cache-control')]).toEqual([200, 'no-store']);
  expect((await page.open('/assets/0123456789abcdef/nothing.css')).status).toBe(404);
});

test('what the service says is shown as text, on the page of the company and of the run', async () => {
  const escaped = 'The service says: <q>&lt;script>alert(1)&lt;/script>';
  for (const path of [`/companies/${company.environment}/${company.companyId}`, `/runs/${RUN}`]) {
    const { html } = await page.open(path);
    expect(html.replaceAll('&gt;', '>')).toContain(escaped);
  }
  const { html } = await page.open(`/companies/${company.environment}/${company.companyId}`);
  expect(html).toContain('Unavailable');
});

describe('a viewer', () => {
  let viewer: PageClient;
  beforeAll(async () => {
    viewer = await PageClient.signedIn(admin.url);
    await admin.db.pool.query(
      `UPDATE muster.sessions SET role = 'viewer', name = 'onlooker' WHERE created_at = (SELECT max(created_at) FROM muster.sessions)`,
    );
  });

  test('sees every page, and no button that would be refused', async () => {
    const visible = paths().filter((path) => !/remove|forget|connect$|^\/records\//.test(path));
    for (const path of visible) {
      const { status, html } = await viewer.open(path);
      expect([path, status]).toEqual([path, 200]);
      const buttons = [...html.matchAll(/<button[^>]*>([^<]*)<\/button>/g)].map(([, name]) => name);
      const harmless = ['Sign out', 'Show', 'Copy'];
      expect([path, buttons.filter((name) => !harmless.includes(name!))]).toEqual([path, []]);
      expect(html).not.toContain('curl -sS -X POST');
    }
  });

  test('is refused what needs more, with the reason', async () => {
    await viewer.open('/companies');
    const fields = { environment: company.environment, company_id: company.companyId, back: '/companies' };
    for (const name of ['company.sync', 'company.pause', 'company.remove', 'company.link']) {
      const { status, html } = await viewer.act(name, fields);
      expect([name, status, html.includes('forbidden')]).toEqual([name, 403, true]);
    }
    expect(await admin.db.prisma.connection.count({ where: { ...company, paused: false } })).toBe(1);
  });
});

test('the company that must authorize shows its link, and what is filtered stands in the address', async () => {
  const { html } = await page.open(paths()[3]!);
  expect(html).toContain('This company must authorize again');
  expect(html).toMatch(/value="https:\/\/muster\.example\/connect\//);
  const found = await page.open('/companies?status=reauthorization_required&environment=test');
  expect(found.html).toContain(company.companyId);
  expect((await page.open('/companies?status=paused')).html).not.toContain(company.companyId);
  expect((await page.open('/companies?status=odd')).status).toBe(400);
});

test('settings say where each comes from, and nothing of a secret', async () => {
  const { html } = await page.open('/settings');
  expect(html).toContain('<code>8080</code>');
  expect(html).toContain('set, and not shown');
  expect(html).toContain('the queue lives in the database');
});

test('quiet hours of a company are typed, refused with the fault named, and taken back', async () => {
  const { environment, companyId } = company;
  const companyPage = `/companies/${environment}/${companyId}`;
  expect((await page.open(companyPage)).html).toContain(`href="${companyPage}/quiet-hours"`);
  await page.open(`${companyPage}/quiet-hours`);
  const fields = { environment, company_id: companyId, back: companyPage };
  const refused = await page.act('company.quiet_hours', { ...fields, quiet_hours: '7-9' });
  expect([refused.status, refused.html.includes('These quiet hours cannot be used')]).toEqual([422, true]);
  for (const [typed, shown, prefilled] of [
    ['07:00-09:00', '07:00-09:00', 'value="07:00-09:00"'],
    ['', 'as the installation', 'value'],
  ] as const) {
    await page.act('company.quiet_hours', { ...fields, quiet_hours: typed });
    expect((await page.open(companyPage)).html).toContain(`Quiet hours</dt><dd>${shown}`);
    expect((await page.open(`${companyPage}/quiet-hours`)).html).toContain(
      `name="quiet_hours" maxlength="1000" ${prefilled} placeholder`,
    );
  }
});

test('what is not there says so in a page', async () => {
  for (const [path, title, back] of [
    [`/runs/${randomUUID()}`, 'No such run', '/runs'],
    [`/companies/test/${randomUUID()}`, 'No such company', '/companies'],
    [`/companies/test/${randomUUID()}/remove`, 'No such company', '/companies'],
    ['/runs/x', 'No such page', '/'],
    ['/companies/elsewhere/x', 'No such page', '/'],
    ['/holds/x', 'No such page', '/'],
    ['/company', 'No such page', '/'],
    ['/oauth', 'No such page', '/'],
  ]) {
    const { status, html, headers } = await page.open(path!, { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' });
    expect([path, status, html.includes(`<h1>${title}</h1>`)]).toEqual([path, 404, true]);
    expect(html.split('<main')[1]).toContain(`<a href="${back}">`);
    expect(headers.get('content-security-policy')).toContain("script-src 'self';");
  }
});

test('an unknown address leads a browser to sign in first, and tells a program what it tells every program', async () => {
  const stranger = new PageClient(admin.url);
  const html = { accept: 'text/html' };
  const { status, location } = await stranger.open('/nowhere?a=b', html);
  expect([status, location]).toEqual([302, `/login?next=${encodeURIComponent('/nowhere?a=b')}`]);
  for (const [path, headers, expected] of [
    ['/nowhere', {}, 404],
    ['/nowhere', { accept: 'application/json' }, 404],
    ['/api/nowhere', html, 401],
    ['/api', html, 401],
  ] as const) {
    const answer = await stranger.open(path, headers);
    expect([path, answer.status]).toEqual([path, expected]);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
  }
  const known = await fetch(`${admin.url}/api/nowhere`, { headers: { ...html, authorization: `Bearer ${TOKEN}` } });
  expect([known.status, known.headers.get('content-type')]).toEqual([404, 'application/problem+json; charset=utf-8']);
});

test('a part of a page that is asked for without a session leads the whole page to sign in', async () => {
  const { status, headers, html } = await new PageClient(admin.url).open('/queue', { 'hx-request': 'true' });
  expect([status, headers.get('hx-redirect'), html]).toEqual([401, '/login?next=%2Fqueue', '']);
});

test('the events of a run come as from the API, and stop being read when nobody listens', async () => {
  // There is room for one stream: one that went on unread would keep everybody else out.
  const small = await startAdmin(undefined, { limits: { ...SERVER_LIMITS, streams: 1 } });
  const run = await small.runs.request({ company: await small.addCompany(), trigger: 'manual' });
  const { cookie } = await PageClient.signedIn(small.url);
  const follow = (id: string, signal?: AbortSignal) =>
    fetch(`${small.url}/runs/${id}/events`, { headers: { cookie: cookie! }, ...(signal && { signal }) });
  for (let i = 0; i < 2; i++) {
    const closing = new AbortController();
    const answer = await waitFor(
      async () => {
        const opened = await follow(run.id, closing.signal);
        return opened.status === 200 ? opened : undefined;
      },
      { what: 'room for a stream' },
    );
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    const { value } = await answer.body!.getReader().read();
    expect(new TextDecoder().decode(value)).toContain(`"id":"${run.id}"`);
    expect((await follow(run.id)).status).toBe(503);
    closing.abort();
  }
  await small.runs.cancel(run.id);
  const last = await waitFor(async () => {
    const opened = await follow(run.id);
    return opened.status === 200 ? opened : undefined;
  });
  expect(await last.text()).toContain('"status":"cancelled"');
  expect((await follow(randomUUID())).status).toBe(404);
  await small.stop();
});
