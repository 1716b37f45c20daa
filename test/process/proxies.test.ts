import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createServer } from 'node:tls';
import { generate } from 'selfsigned';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { anyPort } from '../support/port.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { type ProxyServer, startProxy } from '../support/proxy-server.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const SERVICE = 'service.internal';
const OWN = generate([{ name: 'commonName', value: SERVICE }], {
  keySize: 2048,
  algorithm: 'sha256',
  extensions: [
    { name: 'basicConstraints', cA: true },
    { name: 'subjectAltName', altNames: [{ type: 2, value: SERVICE }] },
  ],
});

let deployment: Deployment;
let tls: Server;
let receiver: HttpServer;
let proxy: ProxyServer;
let running: TestProcess[] = [];
const received: string[] = [];

beforeAll(async () => {
  receiver = createHttpServer((request, response) => {
    received.push(request.url!);
    request.resume().on('end', () => response.end());
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const webhook = `http://hooks.localhost:${(receiver.address() as AddressInfo).port}`;
  deployment = await Deployment.open({
    sandbox: { companies: [{ name: 'One', employees: 1_234 }] },
    env: {
      HEARTBEAT_URL: `${webhook}/heartbeat`,
      NOTIFY_WEBHOOK_URL: `${webhook}/hook`,
      NOTIFY_WEBHOOK_SECRET: 'a-secret-for-signing',
    },
  });
  tls = createServer({ key: OWN.private, cert: OWN.cert }, (outside) => {
    const inside = connect(Number(deployment.sandbox.url.port), deployment.sandbox.url.hostname);
    pipeline(outside, inside, outside, () => {});
  });
  tls.listen(0, '127.0.0.1');
  await once(tls, 'listening');
  proxy = await startProxy({
    credentials: 'muster:proxy-canary-1',
    hosts: {
      [`${SERVICE}:443`]: `127.0.0.1:${(tls.address() as AddressInfo).port}`,
      [new URL(webhook).host]: new URL(webhook).host.replace('hooks.localhost', '127.0.0.1'),
    },
  });
  const authority = join(deployment.home, 'authority.pem');
  writeFileSync(authority, OWN.cert);
  const proxyFile = join(deployment.home, 'proxy');
  writeFileSync(proxyFile, `${proxy.url}\n`);
  Object.assign(deployment.env, {
    TEST_BASE_URL: `https://${SERVICE}`,
    TEST_AUTH_URL: `https://${SERVICE}`,
    NODE_EXTRA_CA_CERTS: authority,
    HTTPS_PROXY_FILE: proxyFile,
    http_proxy: proxy.url,
  });
});

async function stop(): Promise<void> {
  for (const each of running) each.kill('SIGTERM');
  await Promise.all(running.map(({ exit }) => exit));
  running = [];
}

afterAll(async () => {
  await stop();
  tls.close();
  receiver.close().closeAllConnections();
  await proxy.close();
  await deployment.close();
});

const doctor = async (env: Record<string, string> = {}) => {
  const examined = startMuster(['doctor'], { ...deployment.env, ...env });
  await examined.exit;
  return examined.stdout;
};

test('a service that only a proxy can reach is mirrored, and the webhook and the heartbeat go the same way', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  running = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  await deployment.onboard(companyId);
  expect((await deployment.runEnd(companyId)).status).toBe('succeeded');
  expect(await mirrored(deployment.database.db, 'employees', companyId)).toEqual(
    upstream(deployment.sandbox, 'employees', companyId),
  );
  expect((await deployment.call('POST', '/api/notifications/test')).status).toBeLessThan(300);
  await waitFor(async () => ['/hook', '/heartbeat'].every((path) => received.includes(path)));
  expect(new Set(proxy.asked.map((line) => line.replace(/:\d+/, '')))).toEqual(
    new Set([`CONNECT ${SERVICE}`, 'POST http://hooks.localhost/hook', 'GET http://hooks.localhost/heartbeat']),
  );
  const { body } = await deployment.call('GET', '/api/companies');
  expect(JSON.stringify(body)).not.toContain('proxy-canary');
  for (const { stdout, stderr } of running) expect(stdout + stderr).not.toContain('proxy-canary');
  await stop();
});

test('muster doctor names the proxy by host and port, and the part of the way that fails', async () => {
  expect(await doctor()).toMatch(
    new RegExp(
      `ok .*https://${SERVICE}/api/companies/[0-]+ answers 401 in \\d+ ms, through the proxy 127\\.0\\.0\\.1:${proxy.port} \\(HTTPS_PROXY\\)`,
    ),
  );
  const wrong = { HTTPS_PROXY_FILE: '', HTTPS_PROXY: proxy.url.replace('proxy-canary-1', 'proxy-canary-2') };
  const said = await doctor(wrong);
  expect(said).toMatch(
    /problem .*the proxy 127\.0\.0\.1:\d+ does not take the user and password \(407\); set them right in HTTPS_PROXY/,
  );
  expect(said).not.toContain('proxy-canary');
  expect(await doctor({ HTTPS_PROXY_FILE: '' })).toMatch(
    /problem .*service\.internal.* no connection: (there is no host|the name of the host)/,
  );
});

test('a proxy that is wrong stops the start, and one message says so', async () => {
  const started = startMuster(['worker'], {
    ...deployment.env,
    HTTPS_PROXY_FILE: '',
    HTTPS_PROXY: 'socks5://me:proxy-canary-3@proxy:1',
    NO_PROXY: 'a b//c',
  });
  expect(await started.exit).toMatchObject({ code: 2 });
  expect(started.stderr).toMatch(
    /2 settings are wrong or missing[^]*HTTPS_PROXY: must begin with http:\/\/ or https:\/\/[^]*NO_PROXY: entry 2/,
  );
  expect(started.stderr).not.toContain('canary');
});

test('the sandbox of muster up is asked directly', async () => {
  const database = await testDatabase();
  onTestFinished(() => database.close());
  const up = startMuster(['up', '--sandbox', '--json'], {
    DATABASE_URL: database.url,
    MUSTER_ENCRYPTION_KEYS: deployment.env['MUSTER_ENCRYPTION_KEYS']!,
    MUSTER_HOME: join(deployment.home, 'own'),
    PORT: '0',
    HTTP_PROXY: `http://127.0.0.1:${anyPort()}`,
  });
  await up.waitForOutput(/"url":/);
  up.kill('SIGTERM');
  expect(await up.exit).toMatchObject({ code: 0 });
  expect(up.stdout + up.stderr).not.toMatch(/service_unreachable/);
});
