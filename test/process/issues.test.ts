import { afterAll, beforeAll, expect, test } from 'vitest';
import type { IssueModel } from '../../src/api/operation/issues.js';
import type { OverviewModel } from '../../src/api/operation/overview.js';
import type { TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { Deployment } from './deployment.js';

let deployment: Deployment;
let processes: TestProcess[];
let companyId: string;

beforeAll(async () => {
  deployment = await Deployment.open({ sandbox: { companies: [{ name: 'Brattskjær AS', employees: 40 }] } });
  deployment.env['PUBLIC_URL'] = deployment.url;
  processes = [await deployment.startApi(), await deployment.startWorker()];
  companyId = deployment.sandbox.companies[0]!.companyId;
  await deployment.onboard(companyId);
  await deployment.runEnd(companyId);
});
afterAll(() => deployment.close());

const issues = async (status: string) =>
  ((await deployment.call('GET', `/api/issues?status=${status}`)).body as { data: IssueModel[] }).data;
const overview = async () => (await deployment.call('GET', '/api/overview')).body as OverviewModel;

test('a list that fails is an issue, and the call that it names ends it', async () => {
  const looksLike = {
    ready: true,
    lists: { total: 2, verified: 2, late: 0, never: 0, unverified: 0 },
    issues_open: 0,
    workers: 1,
  };
  await waitFor(async () => (await overview()).lists.verified === 2);
  expect(await overview()).toMatchObject(looksLike);

  deployment.sandbox.faults.add({ kind: 'status', status: 403 }, { path: '/departments', times: Number.POSITIVE_INFINITY });
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  expect((await deployment.runGivenUp(companyId)).status).toBe('failed');
  const [issue] = await waitFor(async () => ((await issues('ongoing')).length > 0 ? issues('ongoing') : undefined));
  expect(issue).toMatchObject({
    cause: 'service_refused',
    environment: 'test',
    resource: 'departments',
    severity: 'action',
    companies: 1,
    sample: [companyId],
  });
  await waitFor(async () => (await overview()).issues_open === 1);
  expect((await fetch(issue!.docs_url)).status).toBe(200);

  deployment.sandbox.faults.clear();
  const { method, path, body } = issue!.action;
  expect((await deployment.call(method, path, body)).body).toEqual({ queued: 1 });
  await waitFor(async () => (await issues('resolved')).some(({ id }) => id === issue!.id));
  expect(await issues('ongoing')).toEqual([]);
});

test('a worker counts until it stops', async () => {
  processes[1]!.kill('SIGTERM');
  expect(await processes[1]!.exit).toEqual({ code: 0, signal: null });
  await waitFor(async () => (await overview()).workers === 0);
  expect((await overview()).workers).toBe(0);
});
