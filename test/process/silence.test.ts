import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { IssueModel } from '../../src/api/issues.js';
import { runMuster } from '../cli/run-muster.js';
import { Receiver } from '../notifications/receiver.js';
import { anyPort } from '../support/port.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { Deployment } from './deployment.js';

let receiver: Receiver;
let deployment: Deployment;
let processes: TestProcess[];
let beats = 0;
const probePort = String(anyPort());
const monitor = createServer((_request, response) => {
  beats += 1;
  response.end();
});

beforeAll(async () => {
  receiver = await Receiver.start();
  await new Promise<void>((resolve) => void monitor.listen(0, '127.0.0.1', resolve));
  deployment = await Deployment.open({
    sandbox: { companies: [{ name: 'Brattskjær AS', employees: 40 }] },
    env: {
      NOTIFY_WEBHOOK_URL: receiver.url.href,
      NOTIFY_WEBHOOK_SECRET: 'a-secret-for-signing',
      HEARTBEAT_URL: `http://127.0.0.1:${(monitor.address() as AddressInfo).port}/ping/canary-of-the-monitor`,
      LOG_LEVEL: 'trace',
    },
  });
  deployment.env['PUBLIC_URL'] = deployment.url;
  processes = [await deployment.startApi(), await deployment.startWorker({ PROBE_PORT: probePort })];
  const { companyId } = deployment.sandbox.companies[0]!;
  await deployment.onboard(companyId);
  await deployment.runEnd(companyId);
});
afterAll(async () => {
  for (const running of processes) running.kill('SIGTERM');
  await Promise.all(processes.map(({ exit }) => exit));
  await deployment.close();
  await receiver.goDown();
  await new Promise((resolve) => monitor.close(resolve));
});

const told = (status: string, count = 1) =>
  waitFor(
    () => {
      const events = receiver.received.map(({ event }) => event).filter((event) => event.issue_status === status);
      return events.length >= count ? events.at(-1) : undefined;
    },
    { intervalMs: 200, what: `an issue to be ${status}` },
  );
const issues = async (status: string) =>
  ((await deployment.call('GET', `/api/issues?status=${status}`)).body as { data: IssueModel[] }).data;

const probe = (path: string) => fetch(`http://127.0.0.1:${probePort}${path}`, { signal: AbortSignal.timeout(2_000) });

test('a worker answers probes, and a port that is taken stops the start', async () => {
  expect((await probe('/healthz')).status).toBe(200);
  expect(await (await probe('/readyz')).json()).toMatchObject({ ready: true, parts: { queue: { ready: true } } });
  for (const role of ['worker', 'api']) {
    const second = startMuster([role], { ...deployment.env, PORT: String(anyPort()), PROBE_PORT: probePort });
    expect(await second.exit).toEqual({ code: 2, signal: null });
    expect(second.stderr).toMatch(new RegExp(`PROBE_PORT: port ${probePort} on 127.0.0.1 is taken`));
  }
});

test('the monitor is asked, and no log has its address', async () => {
  await waitFor(() => beats > 0);
  expect(processes.map(({ stdout, stderr }) => stdout + stderr).join('')).not.toContain('canary-of-the-monitor');
});

test('a worker that is frozen is an issue that the webhook hears of, until it goes on', async () => {
  processes[1]!.kill('SIGSTOP');
  await expect(probe('/healthz')).rejects.toThrow(/timeout/);
  expect(await told('ongoing')).toMatchObject({ type: 'no_worker', cause: 'no_worker', environment: 'test', count: 1 });
  expect(await issues('ongoing')).toMatchObject([{ cause: 'no_worker', severity: 'action', companies: 1 }]);
  expect(await deployment.raw('/metrics')).toMatch(/^muster_workers 0$/m);
  const ready = await deployment.fetch('/readyz');
  expect([ready.status, await ready.json()]).toMatchObject([
    200,
    { ready: true, parts: { workers: { ready: false, problem: expect.stringMatching(/^No worker lives/) } } },
  ]);
  const env = { ...deployment.env, MUSTER_ADMIN_TOKEN: deployment.adminToken };
  const status = await runMuster(['status', '--url', deployment.url], env);
  expect([status.code, status.stdout]).toEqual([
    0,
    expect.stringMatching(/^ready +yes\n[^]*^workers +none, so nothing is fetched/m),
  ]);
  expect((await runMuster(['doctor'], env)).stdout).toMatch(/^problem +workers +no worker lives, and 1 company is onboarded$/m);

  processes[1]!.kill('SIGCONT');
  expect(await told('resolved')).toMatchObject({ type: 'no_worker' });
  expect(await issues('ongoing')).toEqual([]);
});

test('so is one that is killed, until another one lives', async () => {
  processes[1]!.kill('SIGKILL');
  await told('ongoing', 2);
  processes[1] = await deployment.startWorker();
  await told('resolved', 2);
  expect(await issues('resolved')).toMatchObject([{ cause: 'no_worker' }]);
});
