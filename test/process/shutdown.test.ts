import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from './deployment.js';
import type { TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

let deployment: Deployment;
let api: TestProcess;

beforeAll(async () => {
  const companies = ['Throttled', 'Silent'].map((name) => ({ name, employees: 1_200 }));
  deployment = await Deployment.open({ sandbox: { companies } });
  api = await deployment.startApi();
});

afterAll(async () => {
  api.kill('SIGTERM');
  await api.exit;
  await deployment.close();
});

/** Before the request that gets no answer is given up by itself, after 30 s. */
const LATE_MS = 25_000;

test.each([
  ['told to come back in a minute', 0, { kind: 'status', status: 503, headers: { 'retry-after': '60' } }],
  ['given no answer', 1, { kind: 'hang', when: 'before' }],
] as const)('a worker that is %s stops without waiting for it, and its run goes on elsewhere', async (_, company, effect) => {
  const { companyId } = deployment.sandbox.companies[company]!;
  deployment.sandbox.faults.add(effect, { path: '/employees', skip: 1, times: Infinity });
  const worker = await deployment.startWorker();
  await deployment.onboard(companyId);
  await waitFor(async () => (await deployment.lastRun(companyId)).walks[0]!.pages === 1);
  worker.kill('SIGTERM');
  const late = setTimeout(() => worker.kill('SIGKILL'), LATE_MS);
  expect(await worker.exit).toEqual({ code: 0, signal: null });
  clearTimeout(late);
  expect(await deployment.lastRun(companyId)).toMatchObject({ status: 'running', attempts: 0 });

  deployment.sandbox.faults.clear();
  // The minute that the service asked for holds for every worker.
  await deployment.database.db.pool.query('DELETE FROM muster.request_budgets');
  const heir = await deployment.startWorker();
  expect(await deployment.runEnd(companyId)).toMatchObject({
    status: 'succeeded',
    walks: [{ verified: true, resumed: true, received: 1_200 }, {}],
  });
  heir.kill('SIGTERM');
  await heir.exit;
});
