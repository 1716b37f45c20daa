import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import type { TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { Deployment } from './deployment.js';

const backends = ['postgres', 'redis'] as const;

describe.each(backends.filter((backend) => backend === 'postgres' || redisUrl()))('with the queue on %s', (backend) => {
  let deployment: Deployment;
  let processes: TestProcess[];

  beforeAll(async () => {
    deployment = await Deployment.open({ redisUrl: backend === 'redis' ? redisUrl() : undefined });
    // All at once: each applies the migrations that it finds missing.
    processes = await Promise.all([deployment.startApi(), deployment.startWorker(), deployment.startWorker()]);
  });

  afterAll(async () => {
    for (const running of processes) running.kill('SIGTERM');
    await Promise.all(processes.map(({ exit }) => exit));
    await deployment.close();
  });

  test('two workers mirror every company of the sandbox between them', async () => {
    const { sandbox, database } = deployment;
    await Promise.all(sandbox.companies.map(({ companyId }) => deployment.onboard(companyId)));
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
    for (const worker of [first!, second!]) expect(worker.stderr).toMatch(/run succeeded/);
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
});
