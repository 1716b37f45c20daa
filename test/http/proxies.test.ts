import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { HttpClient, textOf } from '../../src/http/http-client.js';
import { type NoProxyRule, readNoProxyEntry } from '../../src/http/proxy/no-proxy.js';
import { Proxies, type ProxyAddress, readProxyAddress } from '../../src/http/proxy/proxies.js';
import { Webhook } from '../../src/notifications/webhook.js';
import { anyPort } from '../support/port.js';
import { type ProxyServer, startProxy } from '../support/proxy-server.js';

const { private: key, cert } = generate([{ name: 'commonName', value: 'localhost' }], { keySize: 2048, algorithm: 'sha256' });

const servers: Server[] = [];
const proxyServers: ProxyServer[] = [];
const clients: { close(): Promise<void> }[] = [];
let heard: string[] = [];
const answer: RequestListener = (request, response) => {
  heard.push(`${request.method} ${request.headers.host} ${request.url} ${request.headers['proxy-authorization'] ?? ''}`.trim());
  request.resume().on('end', () => response.end('the answer'));
};
let secure: number;
let plain: number;

beforeAll(async () => {
  secure = await listen(createTlsServer({ key, cert }, answer));
  plain = await listen(createHttpServer(answer));
  // What is tried here is the way; certificates are tried in test/process/proxies.test.ts.
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
});
afterEach(async () => {
  heard = [];
  for (const each of [...clients.splice(0), ...proxyServers.splice(0)]) await each.close();
});
afterAll(() => {
  delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  for (const server of servers) server.close().closeAllConnections();
});

async function listen(server: Server): Promise<number> {
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function proxy(options: Parameters<typeof startProxy>[0] = {}): Promise<ProxyServer> {
  const server = await startProxy(options);
  proxyServers.push(server);
  return server;
}

function through(url: string, noProxy = ''): Proxies {
  const address = readProxyAddress(url) as ProxyAddress;
  const rules = noProxy
    .split(',')
    .filter(Boolean)
    .map((entry) => readNoProxyEntry(entry)!);
  return new Proxies({ https: address, http: address, noProxy: rules });
}

function client(proxies: Proxies, connectTimeoutMs = 5_000): HttpClient {
  const http = new HttpClient({ connectTimeoutMs, silenceTimeoutMs: 5_000 }, proxies);
  clients.push(http);
  return http;
}

const get = (http: HttpClient, url: string, options = {}) => http.send({ method: 'GET', url: new URL(url), ...options });

describe('a request', () => {
  test.each([{}, { credentials: 'muster:p%40ss' }])(
    'by https goes through a tunnel, with the credentials for the proxy alone: %o',
    async ({ credentials }) => {
      const server = await proxy(credentials === undefined ? {} : { credentials: 'muster:p@ss' });
      const url = credentials === undefined ? server.url : `http://${credentials}@127.0.0.1:${server.port}`;
      const response = await get(client(through(url)), `https://localhost:${secure}/a?b=c`);
      expect(textOf(response)).toBe('the answer');
      expect(server.asked).toEqual([`CONNECT localhost:${secure}`]);
      expect(heard).toEqual([`GET localhost:${secure} /a?b=c`]);
    },
  );

  test('goes through a proxy that itself speaks TLS', async () => {
    const server = await proxy({ tls: { key, cert }, credentials: 'muster:secret' });
    const http = client(through(server.url));
    await get(http, `https://localhost:${secure}/a`);
    await get(http, `http://localhost:${plain}/b`);
    expect(server.asked).toEqual([`CONNECT localhost:${secure}`, `GET http://localhost:${plain}/b`]);
    expect(heard).toEqual([`GET localhost:${secure} /a`, `GET localhost:${plain} /b`]);
    await expect(
      get(client(through(server.url.replace('https:', 'http:'))), `https://localhost:${secure}/`),
    ).rejects.toMatchObject({
      sent: false,
      message: expect.stringContaining(`the proxy 127.0.0.1:${server.port}`) as string,
    });
  });

  test('by http is sent to the proxy for its whole address', async () => {
    const server = await proxy({ credentials: 'muster:secret' });
    const http = client(through(server.url));
    for (const freshConnection of [false, false, true])
      await http.send({ method: 'POST', url: new URL(`http://localhost:${plain}/a?b=c`), body: '{}', freshConnection });
    expect(server.asked).toEqual(Array(3).fill(`POST http://localhost:${plain}/a?b=c`));
    expect(heard).toEqual(Array(3).fill(`POST localhost:${plain} /a?b=c`));
  });

  test('on a fresh connection has a tunnel of its own, and others share theirs', async () => {
    const server = await proxy();
    const http = client(through(server.url));
    for (let n = 0; n < 3; n++) await get(http, `https://localhost:${secure}/`);
    const shared = server.asked.length;
    expect(shared).toBeLessThan(3);
    for (let n = 0; n < 3; n++) await get(http, `https://localhost:${secure}/`, { freshConnection: true });
    expect(server.asked).toHaveLength(shared + 3);
  });

  test('to a host of NO_PROXY goes directly, and so does one by a scheme that has no proxy', async () => {
    const server = await proxy();
    await get(client(through(server.url, `localhost:${plain}`)), `http://localhost:${plain}/`);
    await get(client(new Proxies({ http: readProxyAddress(server.url) as ProxyAddress })), `https://localhost:${secure}/`);
    expect(server.asked).toEqual([]);
    expect(heard).toHaveLength(2);
  });

  test('reaches a host whose name the proxy alone knows', async () => {
    const server = await proxy({ hosts: { 'api.internal:443': `127.0.0.1:${secure}`, 'api.internal': `127.0.0.1:${plain}` } });
    const http = client(through(server.url));
    await get(http, 'https://api.internal/secure');
    await get(http, 'http://api.internal/plain');
    expect(heard).toEqual(['GET api.internal /secure', 'GET api.internal /plain']);
  });
});

describe('a proxy in the way', () => {
  const cases: [string, () => Promise<{ url: string; timeoutMs?: number }>, RegExp][] = [
    [
      'that is not there',
      async () => ({ url: `http://127.0.0.1:${anyPort()}` }),
      /the proxy 127\.0\.0\.1:\d+ of HTTPS?_PROXY cannot be reached: the connection was refused/,
    ],
    [
      'whose host does not exist',
      async () => ({ url: 'http://proxy.invalid:3128' }),
      /the proxy proxy\.invalid:3128 of HTTPS?_PROXY cannot be reached: (there is no host|the name of the host)/,
    ],
    [
      'that wants to know who we are',
      async () => ({ url: (await proxy({ credentials: 'a:b' })).url.replace('a:b@', '') }),
      /the proxy 127\.0\.0\.1:\d+ wants a user and a password \(407\); set HTTPS?_PROXY to/,
    ],
    [
      'that does not take our password',
      async () => ({ url: (await proxy({ credentials: 'a:b' })).url.replace('a:b@', 'a:wrong-canary@') }),
      /the proxy 127\.0\.0\.1:\d+ does not take the user and password \(407\); set them right in HTTPS?_PROXY/,
    ],
  ];

  test.each(cases)('%s is named, and nothing was sent', async (_what, begin, message) => {
    const { url } = await begin();
    for (const target of [`https://localhost:${secure}/`, `http://localhost:${plain}/`]) {
      const error = await get(client(through(url)), target).then(
        () => undefined,
        (failure: unknown) => failure,
      );
      expect(error).toMatchObject({
        code: 'service_unreachable',
        sent: false,
        message: expect.stringMatching(message) as string,
      });
      expect(JSON.stringify(error) + String((error as Error).stack)).not.toMatch(/canary/);
    }
    expect(heard).toEqual([]);
  });

  test.each([403, 502, 503])('that answers %i to CONNECT is named, and nothing was sent', async (refuses) => {
    const server = await proxy({ refuses });
    await expect(
      get(client(through(server.url)), `https://localhost:${secure}/`, { freshConnection: true }),
    ).rejects.toMatchObject({
      code: 'service_unreachable',
      sent: false,
      message: expect.stringMatching(
        `the proxy 127.0.0.1:${server.port} of HTTPS_PROXY opens no way to localhost:${secure} \\(${refuses}\\)`,
      ) as string,
    });
  });

  test('that hangs is waited for as long as for a connection, and nothing was sent', async () => {
    const server = await proxy({ hangs: true });
    await expect(get(client(through(server.url), 300), `https://localhost:${secure}/`)).rejects.toMatchObject({
      code: 'service_unreachable',
      sent: false,
      message: expect.stringMatching(/the proxy .* opened no way to localhost:\d+ within 300 ms/) as string,
    });
  });

  test('that hangs for longer than the request may take: nothing was sent', async () => {
    const server = await proxy({ hangs: true });
    const late = { code: 'service_timeout', sent: false };
    await expect(get(client(through(server.url)), `https://localhost:${secure}/`, { deadlineMs: 200 })).rejects.toMatchObject(
      late,
    );
    await expect(get(client(through(server.url)), `http://localhost:${plain}/`, { deadlineMs: 200 })).rejects.toMatchObject({
      ...late,
      sent: true,
    });
  });

  test('is not to blame for a target beyond it that speaks no TLS: the message names both', async () => {
    const server = await proxy();
    await expect(get(client(through(server.url)), `https://localhost:${plain}/`)).rejects.toMatchObject({
      code: 'service_unreachable',
      sent: false,
      message: expect.stringMatching(
        new RegExp(
          `^GET localhost:${plain}/ through the proxy 127.0.0.1:${server.port} \\(HTTPS_PROXY\\) failed: no connection: `,
        ),
      ) as string,
    });
  });

  test('has nothing to do with a 407 of the target', async () => {
    const target = await listen(createTlsServer({ key, cert }, (_request, response) => void response.writeHead(407).end()));
    const server = await proxy();
    expect((await get(client(through(server.url)), `https://localhost:${target}/`)).status).toBe(407);
    expect((await get(client(new Proxies()), `https://localhost:${target}/`)).status).toBe(407);
  });
});

test('the webhook goes through the proxy, and a proxy in its way is told', async () => {
  const server = await proxy({ credentials: 'muster:secret' });
  const send = async (url: string, target: string) => {
    const webhook = new Webhook({ url: new URL(target), secret: new Secret('a-secret-for-signing') }, systemClock, {
      proxies: through(url),
    });
    clients.push(webhook);
    return webhook.post('1', '{}');
  };
  expect(await send(server.url, `https://localhost:${secure}/hook`)).toEqual({ delivered: true });
  expect(await send(server.url, `http://localhost:${plain}/hook`)).toEqual({ delivered: true });
  expect(server.asked).toEqual([`CONNECT localhost:${secure}`, `POST http://localhost:${plain}/hook`]);
  expect(heard).toEqual([`POST localhost:${secure} /hook`, `POST localhost:${plain} /hook`]);
  expect(await send(server.url.replace('secret', 'wrong'), `https://localhost:${secure}/hook`)).toEqual({
    delivered: false,
    error: { code: 'unreachable', cause: 'PROXY_AUTHENTICATION' },
  });
});

describe('NO_PROXY', () => {
  const at = (host: string, port = 443) => ({ hostname: host, port });
  test.each<[string, ReturnType<typeof at>[], ReturnType<typeof at>[]]>([
    ['*', [at('example.com'), at('10.0.0.1')], []],
    [
      'example.com',
      [at('example.com'), at('api.example.com'), at('example.com', 80), at('example.com.')],
      [at('notexample.com'), at('example.com.evil.test')],
    ],
    ['Example.COM.', [at('example.com')], []],
    ['.example.com', [at('api.example.com'), at('example.com')], [at('notexample.com')]],
    ['*.example.com', [at('api.example.com')], [at('notexample.com')]],
    ['example.com:8443', [at('example.com', 8443), at('api.example.com', 8443)], [at('example.com')]],
    ['localhost', [at('localhost'), at('sandbox.localhost')], [at('127.0.0.1')]],
    ['127.0.0.1', [at('127.0.0.1'), at('127.0.0.1', 8080)], [at('127.0.0.2'), at('x127.0.0.1')]],
    ['127.0.0.1:8080', [at('127.0.0.1', 8080)], [at('127.0.0.1')]],
    ['10.0.0.0/8', [at('10.1.2.3')], [at('11.0.0.1'), at('10.example.com')]],
    ['::1', [at('::1'), at('0:0:0:0:0:0:0:1')], [at('::2')]],
    ['[::1]:8080', [at('::1', 8080)], [at('::1')]],
    ['fd00::/8', [at('fd12::1')], [at('fe80::1'), at('10.0.0.1')]],
  ])('%s', (entry, direct, proxied) => {
    const rule = readNoProxyEntry(entry) as NoProxyRule;
    for (const target of direct) expect([target, rule(target)]).toEqual([target, true]);
    for (const target of proxied) expect([target, rule(target)]).toEqual([target, false]);
  });

  test.each([
    'http://example.com',
    'example.com/path',
    '10.0.0.0/33',
    '300.0.0.0/8',
    '169.254/16',
    'a*b',
    '.',
    'a:b:c',
    'example.com:',
  ])('%s is no entry', (entry) => expect(readNoProxyEntry(entry)).toBeUndefined());

  test('brackets, case and default ports of an address make no difference', () => {
    const proxies = through('proxy:1', '[::1]:443,example.com:80');
    expect(proxies.proxyFor(new URL('https://[::1]/'))).toBeUndefined();
    expect(proxies.proxyFor(new URL('https://[::1]:444/'))).toMatchObject({ hostname: 'proxy', port: 1 });
    expect(proxies.proxyFor(new URL('http://EXAMPLE.com/'))).toBeUndefined();
    expect(proxies.except(new URL('http://127.0.0.1:9000')).proxyFor(new URL('http://127.0.0.1:9000/x'))).toBeUndefined();
    expect(proxies.proxyFor(new URL('http://127.0.0.1:9000/x'))).toBeDefined();
  });
});

describe('the address of a proxy', () => {
  test.each([
    ['http://proxy.example.com:3128', { isTls: false, hostname: 'proxy.example.com', port: 3128 }],
    ['proxy.example.com:3128', { isTls: false, hostname: 'proxy.example.com', port: 3128 }],
    ['proxy', { isTls: false, hostname: 'proxy', port: 80 }],
    ['https://proxy.example.com/', { isTls: true, hostname: 'proxy.example.com', port: 443 }],
    ['http://[::1]:8080', { isTls: false, hostname: '::1', port: 8080 }],
  ])('%s', (text, address) => expect(readProxyAddress(text)).toEqual(address));

  test.each([
    ['http://user:p%40ss%3A@proxy:1', 'user:p@ss:'],
    ['user@proxy:1', 'user:'],
    ['http://:token@proxy:1', ':token'],
  ])('%s has credentials', (text, pair) => {
    const { authorization } = readProxyAddress(text) as ProxyAddress;
    expect(authorization?.reveal()).toBe(`Basic ${Buffer.from(pair).toString('base64')}`);
  });

  test.each([
    'socks5://proxy:1080',
    'ftp://proxy',
    'http://',
    'proxy:port',
    'http://proxy:1/path',
    'http://proxy:1?x',
    'http://a:%zz@proxy:1',
    'http://proxy:99999',
  ])('%s is wrong', (text) => expect(readProxyAddress(text)).toEqual({ problem: expect.stringMatching(/^must /) as string }));
});
