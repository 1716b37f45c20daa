import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { documentedFetch } from '../../support/documented-answers.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

// A proxy that serves Muster under a path of its own, and takes that path away before it asks.

let proxy: Server;
let admin: AdminFixture;
let outside: string;

beforeAll(async () => {
  proxy = createServer((incoming, answer) => {
    const path = /^\/muster(\/.*)?$/.exec(incoming.url!)?.[1] ?? '/';
    const { hostname, port } = new URL(admin.url);
    const { method, headers } = incoming;
    const asked = request({ hostname, port, path, method: method!, headers }, (given) => {
      answer.writeHead(given.statusCode!, given.headers);
      given.pipe(answer);
    });
    incoming.pipe(asked);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  outside = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/muster`;
  admin = await startAdmin(undefined, { publicUrl: new URL(`${outside}/`) });
});
afterAll(async () => {
  await admin.stop();
  await new Promise((resolve) => proxy.close(resolve));
});

test.each(['', '/'])('the bare address with %j behind it leads to the control room, with all that it loads', async (end) => {
  const page = await fetch(outside + end);
  expect([page.status, page.url]).toEqual([200, `${outside}/login`]);
  expect(await page.text()).toContain('action="/muster/login"');
});

test.each(['/login', '/api/docs'])('%s loads everything through the proxy', async (path) => {
  const page = await fetch(outside + path);
  const files = [...(await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => new URL(file!, page.url).href);
  expect(files.length).toBeGreaterThan(1);
  for (const file of files) expect([file, (await fetch(file)).status]).toEqual([expect.stringContaining(`${outside}/`), 200]);
});

test('the document names the outside address, and calls find their way from there', async () => {
  const document = (await (await fetch(`${outside}/api/openapi.json`)).json()) as { servers: { url: string }[] };
  expect(document.servers.map(({ url }) => url)).toEqual([outside]);
  const answer = await documentedFetch(() => document.servers[0]!.url)('/api/companies', {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  expect(answer.status).toBe(200);
});

test('a connect link leads through the proxy to the service', async () => {
  const { json } = await admin.call('POST', '/api/connect-links', { environment: 'test' });
  expect(json.url).toContain(`${outside}/connect/`);
  const opened = await fetch(json.url, { redirect: 'manual' });
  expect([opened.status, new URL(opened.headers.get('location')!).pathname]).toEqual([302, '/auth/authorize']);
});

test('whether a name is always reached by TLS is for the proxy to say', async () => {
  for (const path of ['/healthz', '/api/companies', '/api/docs', '/connect/x', '/nothing'])
    expect((await fetch(outside + path)).headers.get('strict-transport-security')).toBeNull();
});

test.each(['/connect/%ff', '/connect/%', '/connect/a%zz/b?c=%ff'])(
  'a customer sees a page at a mangled link: %s',
  async (path) => {
    const answer = await fetch(outside + path);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(await answer.text()).toContain('<h1>');
  },
);
