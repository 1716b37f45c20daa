import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createServer } from 'node:tls';
import { generate } from 'selfsigned';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';

const TRUSTED_BY_NOBODY = generate([{ name: 'commonName', value: 'localhost' }], { keySize: 2048, algorithm: 'sha256' });

let deployment: Deployment;
let authorityFile: string;
let tls: Server;
let running: TestProcess[] = [];

beforeAll(async () => {
  deployment = await Deployment.open({ sandbox: { companies: [{ name: 'One', employees: 2_345 }] } });
  authorityFile = join(deployment.home, 'authority.pem');
  writeFileSync(authorityFile, TRUSTED_BY_NOBODY.cert);
  tls = createServer({ key: TRUSTED_BY_NOBODY.private, cert: TRUSTED_BY_NOBODY.cert }, (outside) => {
    const inside = connect(Number(deployment.sandbox.url.port), deployment.sandbox.url.hostname);
    pipeline(outside, inside, outside, () => {});
  });
  await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
  const address = `https://localhost:${(tls.address() as AddressInfo).port}`;
  Object.assign(deployment.env, { TEST_BASE_URL: address, TEST_AUTH_URL: address });
});

async function stop(): Promise<void> {
  for (const each of running) each.kill('SIGTERM');
  await Promise.all(running.map(({ exit }) => exit));
  running = [];
}

afterAll(async () => {
  await stop();
  tls.close();
  await deployment.close();
});

test('a service whose certificate an authority of its own issued is mirrored once that is trusted, and until then told apart', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  running = [await deployment.startApi()];
  await expect(deployment.onboard(companyId)).rejects.toThrow(/answered 502: .*service_unreachable.*NODE_EXTRA_CA_CERTS/s);
  await running[0]!.waitForOutput(/failed: no connection: its certificate was not issued by a trusted authority/);
  await stop();

  deployment.env.NODE_EXTRA_CA_CERTS = authorityFile;
  running = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  await deployment.onboard(companyId);
  const run = await deployment.runEnd(companyId);
  expect(run.status).toBe('succeeded');
  const employees = await mirrored(deployment.database.db, 'employees', companyId);
  expect(employees).toEqual(upstream(deployment.sandbox, 'employees', companyId));
  expect(employees).toHaveLength(2_345);
});
