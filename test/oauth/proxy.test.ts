import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { HttpClient } from '../../src/http/http-client.js';
import { Proxies, type ProxyAddress, readProxyAddress } from '../../src/http/proxy/proxies.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import { anyPort } from '../support/port.js';
import { type ProxyServer, startProxy } from '../support/proxy-server.js';
import { TokenServer } from './token-server.js';

// Whether a refresh token was sent decides whether its answer is lost: a proxy in the way has sent nothing on.

let server: TokenServer;
const proxies: ProxyServer[] = [];
beforeAll(async () => {
  server = await TokenServer.start();
});
afterAll(async () => {
  for (const proxy of proxies) await proxy.close();
  await server.stop();
});

async function refresh(proxyUrl: string, authUrl = server.url) {
  const address = readProxyAddress(proxyUrl) as ProxyAddress;
  const http = new HttpClient({ connectTimeoutMs: 300 }, new Proxies({ http: address, https: address }));
  const redirectUri = new URL('http://127.0.0.1/oauth/callback');
  const provider = {
    baseUrl: authUrl,
    authUrl,
    clientId: 'client-1',
    clientSecret: new Secret('the-client-secret'),
    redirectUri,
  };
  const answer = await new TokenEndpoint(http, provider, systemClock).refresh(new Secret('a-refresh-token'));
  await http.close();
  return answer.kind;
}

async function proxyAt(options: Parameters<typeof startProxy>[0]): Promise<string> {
  const proxy = await startProxy(options);
  proxies.push(proxy);
  return proxy.url;
}

const secure = new URL('https://login.internal');

test.each<[string, () => Promise<string> | string, URL?]>([
  ['is not there', () => `http://127.0.0.1:${anyPort()}`],
  ['is not there', () => `http://127.0.0.1:${anyPort()}`, secure],
  ['wants another password', async () => (await proxyAt({ credentials: 'a:b' })).replace('a:b', 'a:c')],
  ['wants another password', async () => (await proxyAt({ credentials: 'a:b' })).replace('a:b', 'a:c'), secure],
  ['refuses the way', () => proxyAt({ refuses: 403 }), secure],
  ['finds no way', () => proxyAt({ refuses: 503 }), secure],
  ['opens none in time', () => proxyAt({ hangs: true }), secure],
])('a refresh through a proxy that %s was not sent', async (_what, proxy, authUrl) => {
  expect(await refresh(await proxy(), authUrl)).toBe('unreachable');
  expect(server.received).toEqual([]);
});

test('a refresh through a proxy that lets it pass was sent', async () => {
  await refresh(await proxyAt({}));
  expect(server.received).toHaveLength(1);
});
