import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyModel } from '../../src/api/companies/company-model.js';
import type { TestProcess } from '../support/process.js';
import { ENTRIES } from '../walks/company-fixture.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

// A worker and services that misbehave for some time: nobody does anything, and the mirror is whole in the end.

let deployment: Deployment;
let processes: TestProcess[];

beforeAll(async () => {
  deployment = await Deployment.open({
    sandbox: { companies: ['One', 'Two'].map((name) => ({ name, employees: 20, departments: 5 })) },
    catalogue: { employees: ENTRIES.employees, departments: { ...ENTRIES.departments, optional: true } },
  });
  processes = [await deployment.startApi(), await deployment.startWorker()];
});
afterAll(() => deployment.close());

const listOf = async (companyId: string, resource: string) =>
  ((await deployment.call('GET', `/api/companies/test/${companyId}`)).body as CompanyModel).resources.find(
    (list) => list.resource === resource,
  );

test('a maintenance page in the place of a list is waited out, and the other list is mirrored meanwhile', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  const headers = { 'content-type': 'text/html' };
  deployment.sandbox.faults.add(
    { kind: 'status', status: 200, headers, body: '<html>Maintenance</html>' },
    { path: '/employees', times: Infinity },
  );
  await deployment.onboard(companyId);
  const waiting = await waitFor(async () => {
    const run = await deployment.lastRun(companyId);
    return run.retry_at === undefined ? undefined : run;
  });
  expect(waiting).toMatchObject({
    status: 'queued',
    walks: [{ error: { code: 'malformed_response' } }, { status: 'succeeded', verified: true }],
  });
  deployment.sandbox.faults.clear();
  expect(await deployment.runRetried(companyId)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }, {}] });
});

test('a list that the company does not have is said to be unavailable, until it is there', async () => {
  const { companyId } = deployment.sandbox.companies[1]!;
  const headers = { 'content-type': 'application/json' };
  deployment.sandbox.faults.add(
    { kind: 'status', status: 402, headers, body: '{"message":"Not in your plan."}' },
    { path: '/departments', times: Infinity },
  );
  await deployment.onboard(companyId);
  expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }, {}] });
  expect(await listOf(companyId, 'departments')).toMatchObject({ state: 'unavailable', service_says: 'Not in your plan.' });
  await processes[1]!.waitForOutput(/Not in your plan\./);
  deployment.sandbox.faults.clear();
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`);
  await deployment.runEnd(companyId);
  expect(await listOf(companyId, 'departments')).toMatchObject({ state: 'on_time', records: 5 });
});
