import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXPIRED } from '../oauth/fixture.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

let deployment: Deployment;
let worker: TestProcess;

beforeAll(async () => {
  const companies = ['Throttled', 'Silent', 'Leased'].map((name) => ({ name, employees: 1_200 }));
  deployment = await Deployment.open({ sandbox: { companies } });
  [, worker] = await Promise.all([deployment.startApi(), deployment.startWorker()]);
});

afterAll(() => deployment.close());

test.each([
  ['told to come back in a minute', 0, { kind: 'status', status: 503, headers: { 'retry-after': '60' } }],
  ['given no answer', 1, { kind: 'hang', when: 'before' }],
] as const)('a worker that is %s stops by itself, and its run goes on elsewhere', async (_, company, effect) => {
  const { companyId } = deployment.sandbox.companies[company]!;
  deployment.sandbox.faults.add(effect, { path: '/employees', skip: 1, times: Infinity });
  await deployment.onboard(companyId);
  await waitFor(async () => (await deployment.lastRun(companyId)).walks[0]!.pages === 1);
  worker.kill('SIGTERM');
  expect(await worker.exit).toEqual({ code: 0, signal: null });
  expect(worker.stderr).not.toContain('stopping took too long');
  expect(await deployment.lastRun(companyId)).toMatchObject({ status: 'running', attempts: 0 });

  deployment.sandbox.faults.clear();
  // The minute that the service asked for holds for every worker.
  await deployment.database.db.pool.query('DELETE FROM muster.request_budgets');
  worker = await deployment.startWorker();
  expect(await deployment.runEnd(companyId)).toMatchObject({
    status: 'succeeded',
    walks: [{ verified: true, resumed: true, received: 1_200 }, {}],
  });
});

test('a worker stops by itself while it waits for a token that a dead one was renewing', async () => {
  const { companyId } = deployment.sandbox.companies[2]!;
  const { pool } = deployment.database.db;
  worker.kill('SIGTERM');
  await worker.exit;
  await deployment.onboard(companyId);
  const lease = `lease_owner = 'dead', lease_until = now() + interval '10 minutes'`;
  await pool.query(`UPDATE muster.tokens SET ${EXPIRED}, ${lease} WHERE company_id = $1`, [companyId]);
  worker = await deployment.startWorker();
  await waitFor(async () => (await deployment.lastRun(companyId)).status === 'running');
  worker.kill('SIGTERM');
  expect(await worker.exit).toEqual({ code: 0, signal: null });
  expect(worker.stderr).not.toContain('stopping took too long');
  expect(await deployment.lastRun(companyId)).toMatchObject({ status: 'running', attempts: 0 });

  await pool.query('UPDATE muster.tokens SET lease_until = now() WHERE company_id = $1', [companyId]);
  worker = await deployment.startWorker();
  expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded' });
});
