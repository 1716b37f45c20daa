import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { anyPort } from '../support/port.js';
import { startMuster } from '../support/process.js';
import { HANGS_MS, waitFor } from '../support/wait-for.js';
import { WatchedDeployment } from './watched-deployment.js';

let watched: WatchedDeployment;
let beats = 0;
const probePort = String(anyPort());
const monitor = createServer((_request, response) => {
  beats += 1;
  response.end();
});

beforeAll(async () => {
  await new Promise<void>((resolve) => void monitor.listen(0, '127.0.0.1', resolve));
  watched = await WatchedDeployment.open({
    env: { HEARTBEAT_URL: `http://127.0.0.1:${(monitor.address() as AddressInfo).port}/ping/canary-of-the-monitor` },
    workerEnv: { PROBE_PORT: probePort },
  });
});
afterAll(async () => {
  await watched.close();
  await new Promise((resolve) => monitor.close(resolve));
});

const probe = (path: string, timeoutMs = HANGS_MS) =>
  fetch(`http://127.0.0.1:${probePort}${path}`, { signal: AbortSignal.timeout(timeoutMs) });

test('a worker answers probes', async () => {
  expect((await probe('/healthz')).status).toBe(200);
  expect(await (await probe('/readyz')).json()).toMatchObject({ ready: true, parts: { queue: { ready: true } } });
});

test('the monitor is asked, and no log has its address', async () => {
  await waitFor(() => beats > 0);
  expect(watched.processes.map(({ stdout, stderr }) => stdout + stderr).join('')).not.toContain('canary-of-the-monitor');
});

test('a worker that is frozen keeps its port, and is an issue that the webhook hears of, until it goes on', async () => {
  const { deployment, processes } = watched;
  processes[1]!.kill('SIGSTOP');
  await expect(probe('/healthz', 1_000)).rejects.toThrow(/timeout/);
  await deployment.ageHeartbeats();
  // The API is patient with an absent worker for half a minute, in which others can be tried.
  for (const role of ['worker', 'api']) {
    const second = startMuster([role], { ...deployment.env, PORT: String(anyPort()), PROBE_PORT: probePort });
    expect(await second.exit).toEqual({ code: 2, signal: null });
    expect(second.stderr).toMatch(new RegExp(`PROBE_PORT: port ${probePort} on 127.0.0.1 is taken`));
  }
  expect(await watched.told('ongoing')).toMatchObject({ type: 'no_worker', cause: 'no_worker', environment: 'test', count: 1 });
  expect(await watched.issues('ongoing')).toMatchObject([{ cause: 'no_worker', severity: 'action', companies: 1 }]);
  expect(await deployment.raw('/metrics')).toMatch(/^muster_workers 0$/m);
  const ready = await deployment.fetch('/readyz');
  expect([ready.status, await ready.json()]).toMatchObject([
    200,
    { ready: true, parts: { workers: { ready: false, problem: expect.stringMatching(/^No worker lives/) } } },
  ]);
  const status = await watched.command('status');
  expect([status.code, status.stdout]).toEqual([
    0,
    expect.stringMatching(/^ready +yes\n[^]*^workers +none, so nothing is fetched/m),
  ]);
  expect((await watched.command('doctor')).stdout).toMatch(/^problem +workers +no worker lives, and 1 company is onboarded$/m);

  processes[1]!.kill('SIGCONT');
  expect(await watched.told('resolved')).toMatchObject({ type: 'no_worker' });
  expect(await watched.issues('ongoing')).toEqual([]);
});

test('so is one that is killed, until another one lives', async () => {
  const { deployment, processes } = watched;
  processes[1]!.kill('SIGKILL');
  await processes[1]!.exit;
  await deployment.ageHeartbeats();
  await watched.told('ongoing', 2);
  processes[1] = await deployment.startWorker();
  await watched.told('resolved', 2);
  expect(await watched.issues('resolved')).toMatchObject([{ cause: 'no_worker' }]);
});
