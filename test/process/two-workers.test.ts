import { afterAll, beforeAll, expect, test } from 'vitest';
import { runMuster } from '../cli/run-muster.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const COMPANIES = [0, 1, 37, 1_234, 3_000].map((employees) => ({ name: `With ${employees}`, employees }));

let deployment: Deployment;
let processes: TestProcess[];

beforeAll(async () => {
  deployment = await Deployment.open({
    sandbox: { companies: COMPANIES },
  });
  // All at once: each applies the migrations that it finds missing.
  processes = await Promise.all([deployment.startApi(), deployment.startWorker(), deployment.startWorker()]);
});

afterAll(() => deployment.close());

test('two workers mirror every company of the sandbox between them', async () => {
  const { sandbox, database } = deployment;
  // No list is walked before each worker has one: a quick worker alone could be through with all of them.
  sandbox.faults.add({ kind: 'hold' }, { path: '/employees', times: Infinity });
  await Promise.all(sandbox.companies.map(({ companyId }) => deployment.onboard(companyId)));
  const holders = () => database.db.prisma.run.findMany({ where: { holder: { not: null } }, distinct: ['holder'] });
  await waitFor(async () => (await holders()).length === 2, { what: 'both workers to have a run' });
  sandbox.faults.clear();
  for (const { companyId, name } of sandbox.companies) {
    const run = await deployment.runEnd(companyId);
    expect(run, name).toMatchObject({
      status: 'succeeded',
      trigger: 'onboarding',
      walks: [{ verified: true }, { verified: true }],
    });
    for (const resource of ['employees', 'departments'] as const)
      expect(await mirrored(database.db, resource, companyId), `${resource} of ${name}`).toEqual(
        upstream(sandbox, resource, companyId),
      );
    const { body } = await deployment.call('GET', `/api/companies/test/${companyId}`);
    expect(body).toMatchObject({ company_id: companyId, name, status: 'active' });
  }
  const [, first, second] = processes;
  for (const worker of [first!, second!]) await worker.waitForOutput(/run succeeded/);
  expect(sandbox.reusedRefreshTokens).toBe(0);
});

test('what changed upstream is inserted, updated and deleted by the next sync', async () => {
  const { sandbox, database } = deployment;
  const { companyId } = sandbox.companies[3]!;
  await deployment.call('GET', '/api/changes?limit=1'); // numbers what was committed
  const { rows } = await database.db.pool.query<{ last: string }>('SELECT max(seq) AS last FROM mirror.changes');
  const employees = sandbox.list(companyId, 'employees');
  employees.remove(100, 5);
  employees.insert(7);
  employees.insert(900);
  employees.change(50);
  expect((await deployment.call('POST', `/api/companies/test/${companyId}/sync`)).status).toBe(202);
  const run = await deployment.runEnd(companyId);
  expect(run.walks[0]).toMatchObject({
    verified: true,
    received: 1231,
    inserted: 2,
    updated: 1,
    unchanged: 1228,
    deleted: 5,
    total_records: 1231,
  });
  expect(await mirrored(database.db, 'employees', companyId)).toEqual(upstream(sandbox, 'employees', companyId));
  const { body } = await deployment.call('GET', `/api/changes?after=${rows[0]!.last}`);
  const ops = (body as { data: { op: string }[] }).data.map(({ op }) => op);
  expect(ops.toSorted()).toEqual(['delete', 'delete', 'delete', 'delete', 'delete', 'insert', 'insert', 'update']);
});

test('a run that failed, and deletions that were held back, are told with what to do', async () => {
  const { sandbox } = deployment;
  const { companyId } = sandbox.companies[3]!;
  const operate = (...args: string[]) =>
    runMuster([...args, '--url', deployment.url], { MUSTER_ADMIN_TOKEN: deployment.adminToken });
  const before = await operate('status');
  expect(before.stdout).toMatch(/^last runs +none failed$/m);

  sandbox.list(companyId, 'employees').remove(0, 1_000);
  sandbox.faults.add({ kind: 'status', status: 403 }, { path: '/departments', times: Infinity });
  const [synced] = await Promise.all([
    operate('sync', '--environment', 'test', '--company', companyId, '--wait'),
    deployment.runGivenUp(companyId),
  ]);
  expect([synced.code, synced.stderr]).toEqual([1, expect.stringMatching(/^muster: The run failed\.\n$/m)]);
  const shown = await operate('runs', 'show', /^[0-9a-f-]{36}/m.exec(synced.stdout)![0]);
  for (const { stdout } of [synced, shown]) {
    expect(stdout).toMatch(/^departments: .*403.* \[service_refused\]$/m);
    expect(stdout).toMatch(/^employees: 1000 deletions are held back: see `muster holds`\.$/m);
  }

  // A scrape, by which `status` goes, is kept for some seconds.
  const status = await waitFor(async () => {
    const { stdout } = await operate('status');
    return stdout.includes('1 company failed') ? stdout : undefined;
  });
  expect(status).toMatch(/^last runs +1 company failed: see `muster runs --status failed`$/m);
  expect(status).toMatch(/^open holds +1: see `muster holds --status open`$/m);
  expect((await operate('status', '--json')).json()).toMatchObject([{ companies_last_run_failed: 1, holds_open: 1 }]);
});
