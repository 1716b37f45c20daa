import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Secret } from '../../../src/core/secret.js';
import { OidcClient } from '../../../src/dashboard/sign-in/oidc-client.js';
import { beginFlow } from '../../../src/dashboard/sign-in/sign-in-flow.js';
import { Proxies, type ProxyAddress, readProxyAddress } from '../../../src/http/proxy/proxies.js';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { startProxy } from '../../support/proxy-server.js';
import { PageClient } from '../page-client.js';

// What the issuer does for Muster, and what Muster makes of it, is tested with a real one: test/machines/sign-in.test.ts.

let issuer: URL;
let asked = 0;
let answer: RequestListener;
const metadata = () => ({
  issuer: issuer.href,
  authorization_endpoint: `${issuer.href}authorize`,
  token_endpoint: `${issuer.href}token`,
  jwks_uri: `${issuer.href}jwks`,
});
const json: RequestListener = (_request, response) =>
  void response.setHeader('content-type', 'application/json').end(JSON.stringify(metadata()));
const server = createServer((request, response) => {
  asked += 1;
  answer(request, response);
});
let admin: AdminFixture;

const settings = () => ({
  issuer,
  clientId: 'muster',
  clientSecret: new Secret('the-secret-of-the-client'),
  scope: 'openid groups',
  roleClaim: 'groups',
  roles: { admin: ['ops'], operator: [], viewer: [] },
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  answer = json;
  admin = await startAdmin(undefined, { oidc: settings() });
});
afterAll(async () => {
  await admin.stop();
  server.closeAllConnections();
  server.close();
});
afterEach(() => {
  answer = json;
});

const BROKEN: Readonly<Record<string, RequestListener>> = {
  'does not answer': (request) => void request.socket.destroy(),
  'is down': (_request, response) => void response.writeHead(503).end(),
  'answers with a page': (_request, response) => void response.setHeader('content-type', 'text/html').end('<h1>Hello'),
  'is another one': (_request, response) =>
    void response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ ...metadata(), issuer: 'https://elsewhere.example' })),
};

test.each(Object.keys(BROKEN))(
  'an issuer that %s: a page says so, tokens sign in, and the next person finds it mended',
  async (how) => {
    const own = await startAdmin(undefined, { oidc: settings() });
    answer = BROKEN[how]!;
    const page = new PageClient(own.url);
    const { status, html, headers } = await page.open('/login/oidc');
    expect([status, headers.getSetCookie()]).toEqual([how === 'is another one' ? 403 : 502, []]);
    expect(html).toContain('You are not signed in.');
    expect(html).toContain('href="/login"');
    expect(own.log()).toContain('A sign-in by OpenID Connect failed');
    expect((await page.send('/login', { token: TOKEN })).location).toBe('/');
    answer = json;
    expect((await new PageClient(own.url).open('/login/oidc')).status).toBe(303);
    await own.stop();
  },
);

test('neither the start nor the page for signing in asks the issuer, and the token comes in as ever', async () => {
  const before = asked;
  const own = await startAdmin(undefined, { oidc: settings() });
  const { html } = await new PageClient(own.url).open('/login?next=/runs');
  expect(html).toContain(`href="https://muster.example/login/oidc?next=%2Fruns">Sign in with ${issuer.host}</a>`);
  expect(html).toContain('<label for="token">Access token</label>');
  expect(html).toContain('<button class="main">Sign in</button>');
  expect(asked).toBe(before);
  await own.stop();
});

test('without an issuer nothing speaks of one', async () => {
  const own = await startAdmin();
  const page = new PageClient(own.url);
  expect((await page.open('/login')).html).not.toContain('Sign in with');
  for (const path of ['/login/oidc', '/login/callback?code=a&state=b', '/login/oidc/sign-out'])
    expect((await page.open(path)).status).toBe(404);
  await own.stop();
});

test('the issuer is asked with PKCE, state and nonce, and the browser keeps the flow in a cookie for this host', async () => {
  const { location, headers } = await new PageClient(admin.url).open('/login/oidc?next=/runs');
  const { origin, pathname, searchParams } = new URL(location!);
  expect(origin + pathname).toBe(`${issuer.href}authorize`);
  const { state, nonce, code_challenge, ...rest } = Object.fromEntries(searchParams);
  expect(rest).toEqual({
    client_id: 'muster',
    redirect_uri: 'https://muster.example/login/callback',
    scope: 'openid groups',
    response_type: 'code',
    code_challenge_method: 'S256',
  });
  const texts = [state, nonce, code_challenge];
  for (const text of texts) expect(text).toMatch(/^[\w-]{43}$/);
  const [cookie] = headers.getSetCookie();
  expect(cookie).toMatch(/^__Host-muster_sign_in=\d+\.[\w-]{43}\.[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
  for (const text of texts) expect(cookie).not.toContain(text);
  const again = new URL((await new PageClient(admin.url).open('/login/oidc')).location!);
  expect(texts).not.toContain(again.searchParams.get('state'));
});

test('another site that leads to the beginning only reaches the page for signing in', async () => {
  for (const site of ['cross-site', 'same-site']) {
    const { status, location, headers } = await new PageClient(admin.url).open('/login/oidc', { 'sec-fetch-site': site });
    expect([status, location, headers.getSetCookie()]).toEqual([303, '/login?next=%2F', []]);
  }
});

test('a browser that began nothing is told to begin, and the issuer is not asked', async () => {
  const before = asked;
  const { status, html } = await new PageClient(admin.url).open('/login/callback?code=a&state=b');
  expect([status, html.includes('This sign-in did not begin here')]).toEqual([403, true]);
  expect(asked).toBe(before);
  expect((await new PageClient(admin.url).open('/login/callback')).status).toBe(403);
  const head = await fetch(`${admin.url}/login/callback?code=a&state=b`, { method: 'HEAD' });
  expect(head.status).toBe(404);
});

test('the issuer is asked through the proxy', async () => {
  const proxy = await startProxy({ hosts: { 'login.internal': issuer.host } });
  const outside = { ...settings(), issuer: new URL('http://login.internal/') };
  answer = (_request, response) =>
    void response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ ...metadata(), issuer: outside.issuer.href }));
  const proxies = new Proxies({ http: readProxyAddress(proxy.url) as ProxyAddress });
  const client = new OidcClient(outside, { callback: new URL('https://muster.example/login/callback'), now: Date.now, proxies });
  await client.signInUrl(beginFlow('/', 0));
  expect(proxy.asked).toEqual(['GET http://login.internal/.well-known/openid-configuration']);
  await proxy.close();
});

test('an issuer that moved is found again within the hour', async () => {
  let now = 0;
  const client = new OidcClient(settings(), { callback: new URL('https://muster.example/login/callback'), now: () => now });
  const before = asked;
  for (now of [0, 3_599_999, 3_600_000, 3_600_001]) await client.signInUrl(beginFlow('/', 0));
  expect(asked - before).toBe(2);
});
