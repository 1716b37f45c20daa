import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Secret } from '../../../src/core/secret.js';
import { Sessions } from '../../../src/dashboard/sign-in/sessions.js';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { PageClient } from '../page-client.js';

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());
beforeEach(() => admin.db.prisma.session.deleteMany());

const client = () => new PageClient(admin.url);

test.each(['/', '/companies', '/runs', '/holds', '/notifications', '/audit', '/queue', '/tokens', '/settings'])(
  'without a session %s leads to the page for signing in, and from there back',
  async (path) => {
    const page = client();
    const { status, location } = await page.open(path);
    expect([status, location]).toEqual([302, path === '/' ? '/login' : `/login?next=${encodeURIComponent(path)}`]);
    const { html } = await page.open(location!);
    expect(html).toContain(`name="next" value="${path}"`);
    expect((await page.send('/login', { token: TOKEN, next: path })).location).toBe(path);
    expect((await page.open('/companies')).status).toBe(200);
  },
);

test('the cookie is for this host and no script, and the database knows only a hash of it', async () => {
  const page = client();
  const { headers } = await page.send('/login', { token: TOKEN });
  const cookie = headers.get('set-cookie')!;
  const [, key] = /^muster_session=([\w-]{43});/.exec(cookie)!;
  expect(cookie.split('; ').slice(1)).toEqual(['Path=/', 'HttpOnly', 'SameSite=Lax', 'Secure']);
  const stored = JSON.stringify(await admin.db.prisma.session.findMany());
  expect(stored).not.toContain(key);
  expect(stored).not.toContain(TOKEN);
  expect(stored).not.toContain(createHash('sha256').update(TOKEN).digest('base64url'));
  expect(admin.log()).not.toContain(key);
});

test('a wrong token signs nobody in, is shown nowhere, and leaves the trace that it leaves in a call', async () => {
  const page = client();
  const wrong = 'a-wrong-token-4711';
  const { status, html, headers } = await page.send('/login', { token: wrong });
  expect([status, headers.get('set-cookie')]).toEqual([401, null]);
  expect(html).toContain('role="alert"');
  expect(html).not.toContain(wrong);
  expect(admin.log()).toContain('sent a wrong token');
  expect(admin.log()).not.toContain(wrong);
  expect((await page.send('/login', { token: '' })).status).toBe(401);
  expect((await page.open('/companies')).status).toBe(302);
});

test.each([
  'https://elsewhere.example/',
  '//elsewhere.example/',
  '/\\elsewhere.example/',
  '\\\\elsewhere.example',
  'javascript:alert(1)',
  '/login?next=/login',
  '/logout',
  '/a\r\nset-cookie: x=1',
  '/../..//elsewhere.example',
])('signing in leads to our own pages only, whatever `next` says: %j', async (next) => {
  expect((await client().send('/login', { token: TOKEN, next })).location).toBe('/');
});

test('signing in again ends the session before, whose key may have been planted', async () => {
  const page = await PageClient.signedIn(admin.url);
  const before = page.cookie!;
  await page.send('/login', { token: TOKEN });
  expect(page.cookie).not.toBe(before);
  page.cookie = before;
  expect((await page.open('/companies')).status).toBe(302);
});

test.each([
  ['8 hours without a request', `seen_at = now() - interval '8 hours 1 second'`, 302],
  ['almost 8 hours', `seen_at = now() - interval '7 hours 59 minutes'`, 200],
  ['its end, which is a day after its beginning', `ends_at = ends_at - interval '24 hours'`, 302],
  ['almost a day', `ends_at = ends_at - interval '23 hours 59 minutes'`, 200],
])('a session ends after its limits: %s', async (_, change, status) => {
  const page = await PageClient.signedIn(admin.url);
  await admin.db.pool.query(`UPDATE muster.sessions SET ${change}`);
  expect((await page.open('/companies')).status).toBe(status);
});

test('a request keeps a session alive, and whoever signs in removes the ones that ended', async () => {
  const page = await PageClient.signedIn(admin.url);
  await admin.db.pool.query(`UPDATE muster.sessions SET seen_at = now() - interval '7 hours'`);
  await page.open('/companies');
  const { rows } = await admin.db.pool.query(`SELECT seen_at > now() - interval '1 minute' AS seen FROM muster.sessions`);
  expect(rows).toEqual([{ seen: true }]);
  await admin.db.pool.query(`UPDATE muster.sessions SET seen_at = now() - interval '9 hours'`);
  await PageClient.signedIn(admin.url);
  expect(await admin.db.prisma.session.count()).toBe(1);
});

test('a session ends when the token of the administrator is another', async () => {
  const before = new Sessions({ db: admin.db, adminToken: new Secret(TOKEN) });
  const key = await before.begin({ name: 'admin', role: 'admin' });
  expect(await before.find(key)).toMatchObject({ caller: { name: 'admin', role: 'admin' } });
  const after = new Sessions({ db: admin.db, adminToken: new Secret('another-token') });
  expect(await after.find(key)).toBeUndefined();
});

test.each([
  ['expires', 'expires_at = now()'],
  ['is deleted', 'revoked_at = now()'],
])('a session ends when its named token %s', async (_, change) => {
  const name = `token ${change.length}`;
  const { token } = (await admin.call('POST', '/api/tokens', { name, role: 'operator' })).json;
  const page = await PageClient.signedIn(admin.url, token);
  expect((await page.open('/companies')).html).toContain(`${name} <small>operator</small>`);
  await admin.db.pool.query(`UPDATE muster.named_tokens SET ${change} WHERE name = $1`, [name]);
  expect((await page.open('/companies')).status).toBe(302);
});

test('/logout ends the session, by the button and by its address', async () => {
  const page = await PageClient.signedIn(admin.url);
  await page.open('/companies');
  const { cookie, csrf } = page;
  expect((await page.send('/logout', {})).status).toBe(403);
  expect((await page.send('/logout', { csrf })).location).toBe('/login');
  expect(page.cookie).toBeUndefined();
  page.cookie = cookie;
  expect((await page.open('/companies')).status).toBe(302);

  const other = await PageClient.signedIn(admin.url);
  expect((await other.open('/logout', { 'sec-fetch-site': 'none' })).location).toBe('/login');
  expect(await admin.db.prisma.session.count()).toBe(0);
});

/** Opens the event stream of a run as its page does, and reads its first event. */
async function follow(page: PageClient): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const run = await admin.runs.request({ company: await admin.addCompany(), trigger: 'manual' });
  const answer = await fetch(`${admin.url}/runs/${run.id}/events`, { headers: { cookie: page.cookie! } });
  const reader = answer.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('event: run');
  return reader;
}

const ENDINGS: Readonly<Record<string, (page: PageClient) => Promise<unknown>>> = {
  'is signed out of': async (page) => {
    await page.open('/runs');
    await page.send('/logout', { csrf: page.csrf });
  },
  'is over': () => admin.db.pool.query('UPDATE muster.sessions SET ends_at = now()'),
  'was not used for too long': () => admin.db.pool.query(`UPDATE muster.sessions SET seen_at = now() - interval '9 hours'`),
  'has lost its token': () => admin.db.pool.query('UPDATE muster.named_tokens SET revoked_at = now()'),
};

test.each(Object.keys(ENDINGS))('a stream of a page ends once its session %s', async (how) => {
  const { token } = (await admin.call('POST', '/api/tokens', { name: `whose session ${how}`, role: 'viewer' })).json;
  const page = await PageClient.signedIn(admin.url, token);
  const reader = await follow(page);
  await ENDINGS[how]!(page);
  expect((await reader.read()).done).toBe(true);
  expect((await page.open('/runs')).status).toBe(302);
});

test('another site that leads to /logout ends nothing', async () => {
  const page = await PageClient.signedIn(admin.url);
  const { status, html } = await page.open('/logout', { 'sec-fetch-site': 'cross-site' });
  expect([status, html.includes('Sign out')]).toEqual([200, true]);
  expect((await page.open('/companies')).status).toBe(200);
});
