import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyModel } from '../../src/api/companies/company-model.js';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { Deployment } from '../process/deployment.js';
import { waitFor } from '../process/wait-for.js';
import type { TestProcess } from '../support/process.js';

const COMPANIES = 20;
const MINUTE = 60_000;
/** Minutes that are watched. */
const WATCHED = 4;

const pager = { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 500 };
/** `employees` comes every minute, `departments` with a night that does not come. */
const catalogue = {
  employees: { method: 'GET', path: '/api/companies/{company_id}/employees', pager, schedule: '* * * * *' },
  departments: {
    method: 'POST',
    path: '/api/v2.0/companies/{company_id}/departments/list',
    pager: { style: 'skip-take', in: 'body', size: 500 },
  },
};

let deployment: Deployment;
let workers: TestProcess[];
beforeAll(async () => {
  const companies = Array.from({ length: COMPANIES }, (_, n) => ({ name: `Company ${n}`, employees: 10 * n }));
  deployment = await Deployment.open({ sandbox: { companies }, catalogue });
  const [, ...started] = await Promise.all([deployment.startApi(), deployment.startWorker(), deployment.startWorker()]);
  workers = started;
  for (const { companyId } of deployment.sandbox.companies) await deployment.onboard(companyId);
  for (const { companyId } of deployment.sandbox.companies) await deployment.runEnd(companyId);
});
afterAll(() => deployment.close());

/** Runs of the company by the schedule, oldest first, with the minutes of the clock in which they were made. */
async function scheduledRuns(companyId: string): Promise<{ run: RunModel; minute: number }[]> {
  const { body } = await deployment.call('GET', `/api/runs?company_id=${companyId}&trigger=scheduled&limit=100`);
  const runs = (body as { data: RunModel[] }).data.toReversed();
  const rows = await deployment.database.db.prisma.run.findMany({ where: { companyId, trigger: 'scheduled' } });
  const madeAt = new Map(rows.map(({ id, createdAt }) => [id, createdAt.getTime()]));
  return runs.map((run) => ({ run, minute: Math.floor(madeAt.get(run.id)! / MINUTE) }));
}

test('twenty companies are walked every minute, though a worker is killed in between', async () => {
  const { companies } = deployment.sandbox;
  const from = Math.floor(Date.now() / MINUTE) + 1;
  await waitFor(async () => Math.floor(Date.now() / MINUTE) >= from + WATCHED / 2, {
    what: 'half of the minutes',
    timeoutMs: 600_000,
  });
  workers[0]!.kill('SIGKILL');
  workers[0] = await deployment.startWorker();
  await waitFor(async () => Math.floor(Date.now() / MINUTE) > from + WATCHED, { what: 'the other half', timeoutMs: 600_000 });
  for (const { companyId } of companies) {
    const runs = await scheduledRuns(companyId);
    for (const { run } of runs) expect(run.walks.map(({ resource }) => resource)).toEqual(['employees']);
    const minutes = runs.map(({ minute }) => minute);
    // Each company has its place in the minute, and a sweep comes every five seconds.
    for (let minute = from; minute < from + WATCHED; minute += 1)
      expect(
        minutes.some((made) => made === minute || made === minute + 1),
        `${companyId} in minute ${minute - from}`,
      ).toBe(true);
    const { body } = await deployment.call('GET', `/api/companies/test/${companyId}`);
    const employees = (body as CompanyModel).resources.find(({ resource }) => resource === 'employees')!;
    expect(employees.state).toBe('on_time');
    expect(Date.parse(employees.next_sync_at!)).toBeLessThan(Date.now() + 2 * MINUTE);
  }
});
