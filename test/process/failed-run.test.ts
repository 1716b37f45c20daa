import { afterAll, beforeAll, expect, test } from 'vitest';
import { runMuster } from '../cli/run-muster.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';

let deployment: Deployment;
let processes: TestProcess[];

beforeAll(async () => {
  deployment = await Deployment.open({ sandbox: { companies: [{ name: 'One', employees: 50 }] } });
  processes = await Promise.all([deployment.startApi(), deployment.startWorker()]);
});

afterAll(async () => {
  for (const running of processes) running.kill('SIGTERM');
  await Promise.all(processes.map(({ exit }) => exit));
  await deployment.close();
});

const operate = (...args: string[]) =>
  runMuster([...args, '--url', deployment.url], { MUSTER_ADMIN_TOKEN: deployment.adminToken });

test('a run that failed, and deletions that were held back, are told with what to do', async () => {
  const { sandbox } = deployment;
  const { companyId } = sandbox.companies[0]!;
  await deployment.onboard(companyId);
  await deployment.runEnd(companyId);
  const before = await operate('status');
  expect(before.stdout).toMatch(/^last runs +none failed$/m);

  sandbox.list(companyId, 'employees').remove(0, 40);
  sandbox.faults.add({ kind: 'status', status: 403 }, { path: '/departments', times: Infinity });
  const synced = await operate('sync', '--environment', 'test', '--company', companyId, '--wait');
  expect([synced.code, synced.stderr]).toEqual([1, 'muster: The run failed.\n']);
  const shown = await operate('runs', 'show', /^[0-9a-f-]{36}/m.exec(synced.stdout)![0]);
  for (const { stdout } of [synced, shown]) {
    expect(stdout).toMatch(/^departments: .*403.* \[service_refused\]$/m);
    expect(stdout).toMatch(/^employees: 40 deletions are held back: see `muster holds`\.$/m);
  }

  const { stdout: status } = await operate('status');
  expect(status).toMatch(/^last runs +1 company failed: see `muster runs --status failed`$/m);
  expect(status).toMatch(/^open holds +1: see `muster holds --status open`$/m);
  expect((await operate('status', '--json')).json()).toMatchObject([{ companies_last_run_failed: 1, open_holds: 1 }]);
});
