import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { checkClock } from '../../src/doctor/clock.js';
import { DatabaseAccess } from '../../src/doctor/database-access.js';
import { checkIssuer } from '../../src/doctor/issuer.js';
import { checkServices } from '../../src/doctor/service.js';
import { serviceProbes } from '../../src/doctor/service-probes.js';
import { HttpClient } from '../../src/http/http-client.js';
import { Proxies, type ProxyAddress, readProxyAddress } from '../../src/http/proxy/proxies.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { startProxy } from '../support/proxy-server.js';
import { found } from './findings.js';

const http = new HttpClient();
/** For whoever says nothing. */
const impatient = new HttpClient({ connectTimeoutMs: 1_000, silenceTimeoutMs: 500, deadlineMs: 1_000 });
const CLIENT_SECRET = 'doctor-canary-client-secret';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});
afterAll(async () => {
  await sandbox.stop();
  await http.close();
  await impatient.close();
});

function probesAt(url: URL | string, client = http) {
  const provider = {
    clientId: 'muster',
    clientSecret: new Secret(CLIENT_SECRET),
    redirectUri: new URL('http://localhost/oauth/callback'),
  };
  return serviceProbes(client, { test: { ...provider, baseUrl: new URL(url), authUrl: new URL(url) } }, systemClock);
}

const look = (url: URL | string, client = http) => found(...checkServices(probesAt(url, client), { wrong: false }));

async function serve(listener: RequestListener, tls?: { key: string; cert: string }): Promise<string> {
  const server = (tls ? createTlsServer(tls, listener) : createServer(listener)).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http${tls ? 's' : ''}://localhost:${(server.address() as AddressInfo).port}`;
}

test('a service that refuses who has no token is well, and no token or secret is sent to it', async () => {
  const heard: string[] = [];
  const spy = await serve((request, response) => {
    heard.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`);
    response.writeHead(request.url!.startsWith('/api') ? 401 : 400).end();
  });
  for (const url of [sandbox.url, spy]) {
    expect(await look(url)).toEqual([
      expect.stringMatching(/^ok: http:\/\/[\w.]+:\d+\/auth\/authorize answers 400 in \d+ ms$/),
      expect.stringMatching(/^ok: http:\/\/[\w.]+:\d+\/api\/companies\/00000000-[0-]+ answers 401 in \d+ ms$/),
    ]);
  }
  expect(heard).toHaveLength(2);
  expect(heard.join()).not.toMatch(/canary|authorization|token|secret/i);
});

test.each<[string, number, RegExp[]]>([
  ['fails', 503, [/^problem: .* answers 503/, /^problem: .* answers 503/]],
  ['is another program', 404, [/^warning: .* answers 404/, /^warning: .* answers 404/]],
  ['is a page that greets everybody', 200, [/^ok: .* answers 200/, /^warning: .* answers 200/]],
  ['asks for patience', 429, [/^warning: .* answers 429/, /^warning: .* answers 429/]],
])('one that %s is told apart', async (_what, status, lines) => {
  const url = await serve((_request, response) => void response.writeHead(status).end());
  expect(await look(url)).toEqual(lines.map((line) => expect.stringMatching(line) as string));
});

test('troubles of TLS are said in words', async () => {
  const made = generate([{ name: 'commonName', value: 'localhost' }], { keySize: 2048, algorithm: 'sha256' });
  const untrusted = await serve(() => {}, { key: made.private, cert: made.cert });
  expect(await look(untrusted)).toEqual(
    Array(2).fill(expect.stringMatching(/^problem: .*its certificate was not issued by a trusted authority/)),
  );
  const plain = await serve((_request, response) => void response.end());
  expect(await look(plain.replace('http:', 'https:'))).toEqual(
    Array(2).fill(expect.stringMatching(/^problem: .*the server there does not speak TLS/)),
  );
});

test('one that says nothing, and one that is not there, are said to be so within the limit', async () => {
  const silent = await serve(() => {});
  expect(await look(silent, impatient)).toEqual(
    Array(2).fill(expect.stringMatching(/^problem: .*(got no answer in time|took longer than)/)),
  );
  servers.pop()!.close().closeAllConnections();
  expect(await look(silent)).toEqual(Array(2).fill(expect.stringMatching(/^problem: .*nothing listens there/)));
});

test('further hosts of the API are looked at, too', async () => {
  const urls = await Promise.all(
    [401, 404, 200, 503].map((status) => serve((_request, response) => void response.writeHead(status).end())),
  );
  const [one, two, three, four] = urls.map((url) => new URL(url));
  const provider = { clientId: 'muster', clientSecret: new Secret(CLIENT_SECRET), redirectUri: new URL('http://localhost/') };
  const bases = { one: one!, two: two!, three: three!, four: four! };
  const probes = serviceProbes(http, { test: { ...provider, baseUrl: sandbox.url, authUrl: sandbox.url, bases } }, systemClock);
  const [, , ...lines] = await found(...checkServices(probes, { wrong: false }));
  expect(lines).toEqual(
    [/^ok: .* answers 401/, /^ok: .* answers 404/, /^warning: .* answers 200/, /^problem: .* answers 503/].map(
      (line) => expect.stringMatching(line) as string,
    ),
  );
});

test('the proxy on the way is named, and so is the part of the way that fails', async () => {
  const proxy = await startProxy();
  const through = (url: string) => new HttpClient({}, new Proxies({ http: readProxyAddress(url) as ProxyAddress }));
  const way = `127\\.0\\.0\\.1:${proxy.port} \\(HTTP_PROXY\\)`;
  expect(await look(sandbox.url, through(proxy.url))).toEqual([
    expect.stringMatching(`^ok: .*/auth/authorize answers 400 in \\d+ ms, through the proxy ${way}$`),
    expect.stringMatching(`^ok: .* answers 401 in \\d+ ms, through the proxy ${way}$`),
  ]);
  expect(proxy.asked).toEqual([expect.stringMatching(/^GET http:.*authorize$/), expect.stringMatching(/^GET http:/)]);
  expect(await look('http://127.0.0.1:9', through(proxy.url))).toEqual(
    Array(2).fill(expect.stringMatching(`^problem: .* answers 502 in \\d+ ms, through the proxy ${way}$`)),
  );
  await proxy.close();
  expect(await look(sandbox.url, through(proxy.url.replace('//', '//user:c4n4ry@')))).toEqual(
    Array(2).fill(
      expect.stringMatching(/^problem: .*the proxy 127\.0\.0\.1:\d+ of HTTP_PROXY cannot be reached: .*nothing listens there/),
    ),
  );
});

test('settings that are wrong leave nobody to ask', async () => {
  expect(await found(...checkServices({}, { wrong: true }))).toEqual(['warning: not looked at: its settings are wrong']);
});

test('the clock of the service is read from its Date', async () => {
  const access = new DatabaseAccess({ absent: { level: 'warning', found: 'not here', next: 'nowhere' } });
  const dated = (ms: number) =>
    serve((_request, response) => void response.writeHead(401, { date: new Date(Date.now() + ms).toUTCString() }).end());
  const compare = async (url: string | URL) =>
    (await found(checkClock({ access, probes: probesAt(url), clock: systemClock }))).at(-1);
  expect(await compare(sandbox.url)).toBe('ok: within 5 s of that of the test service');
  expect(await compare(await dated(-30_000))).toMatch(/^warning: (29|30|31) s ahead of that of the test service$/);
  expect(await compare(await dated(300_000))).toMatch(/^problem: (299|300|301) s behind that of the test service$/);
});

test('an issuer is well that answers and is the one that is set', async () => {
  let answer: [number, string] = [200, ''];
  const issuer = new URL('/realms/staff', await serve((_request, response) => void response.writeHead(answer[0]).end(answer[1])));
  const lookAt = (status: number, body: unknown) => {
    answer = [status, typeof body === 'string' ? body : JSON.stringify(body)];
    return found(...checkIssuer(http, issuer));
  };
  const address = `${issuer.href}/.well-known/openid-configuration`;
  expect(await lookAt(200, { issuer: issuer.href })).toEqual([`ok: ${address} answers 200, and is the issuer that is set`]);
  const wrong = [
    [200, { issuer: `${issuer.href}/` }, `answers 200, and is the issuer ${issuer.href}/`],
    [200, '<h1>', 'answers 200, and names no issuer'],
    [200, { issuer: 7 }, 'answers 200, and names no issuer'],
    [200, 'null', 'answers 200, and names no issuer'],
    [404, '', 'answers 404'],
    [503, '', 'answers 503'],
  ] as const;
  for (const [status, body, text] of wrong) expect(await lookAt(status, body)).toEqual([`problem: ${address} ${text}`]);
  expect(await found(...checkIssuer(http, new URL('http://127.0.0.1:9')))).toEqual([expect.stringMatching(/^problem: /)]);
  expect(checkIssuer(http, undefined)).toEqual([]);
});
