import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import type { TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';
import { Deployment } from './deployment.js';

const SIZE = 50;
const RECORDS = 2_000;
/** Pages behind these are not answered while the first worker lives, so that the walk cannot be over before it ends. */
const HALF_WAY = 20;
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: SIZE },
  },
};
const backends = ['postgres', 'redis'] as const;

describe.each(backends.filter((backend) => backend === 'postgres' || redisUrl()))('with the queue on %s', (backend) => {
  let deployment: Deployment;
  let worker: TestProcess;
  const [first, second] = [
    { name: 'Killed', employees: RECORDS },
    { name: 'Stopped', employees: RECORDS },
  ];

  beforeAll(async () => {
    deployment = await Deployment.open({
      redisUrl: backend === 'redis' ? redisUrl() : undefined,
      catalogue: CATALOGUE,
      sandbox: { companies: [first, second], latencyMs: 120 },
    });
    [, worker] = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  });

  afterAll(async () => {
    await deployment.close();
  });

  test('kill -9 in the middle of a list costs no page that was committed', async () => {
    const { companyId } = deployment.sandbox.companies[0]!;
    holdUpHalfWay();
    await deployment.onboard(companyId);
    const pages = await pagesOf(companyId, 10);
    worker.kill('SIGKILL');
    await worker.exit;
    deployment.sandbox.faults.clear();
    const committed = Math.max(pages, (await deployment.lastRun(companyId)).walks[0]!.pages);

    deployment.sandbox.requests.clear();
    worker = await deployment.startWorker();
    const run = await deployment.runEnd(companyId);
    expect(run).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: true, received: RECORDS, inserted: RECORDS, resumed: true }],
    });
    const again = offsetsAsked().filter((offset) => offset < (committed - 2) * (SIZE - 1));
    expect(again).toEqual([]);
    expect(await mirrored(deployment.database.db, 'employees', companyId)).toEqual(
      upstream(deployment.sandbox, 'employees', companyId),
    );
  });

  test('SIGTERM during a walk loses no committed page, and exits 0', async () => {
    const { companyId } = deployment.sandbox.companies[1]!;
    holdUpHalfWay();
    await deployment.onboard(companyId);
    await pagesOf(companyId, 10);
    worker.kill('SIGTERM');
    expect(await worker.exit).toEqual({ code: 0, signal: null });
    deployment.sandbox.faults.clear();
    const left = (await deployment.lastRun(companyId)).walks[0]!;
    expect(left.status).toBe('running');
    expect(left.received).toBe(left.pages * (SIZE - 1) + 1);

    worker = await deployment.startWorker();
    const run = await deployment.runEnd(companyId);
    expect(run).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: true, received: RECORDS, inserted: RECORDS, resumed: true }],
    });
    expect(run.walks[0]!.pages).toBe(Math.ceil((RECORDS - 1) / (SIZE - 1)));
    expect(await mirrored(deployment.database.db, 'employees', companyId)).toEqual(
      upstream(deployment.sandbox, 'employees', companyId),
    );
    worker.kill('SIGTERM');
    expect(await worker.exit).toEqual({ code: 0, signal: null });
  });

  function holdUpHalfWay(): void {
    deployment.sandbox.faults.add({ kind: 'hang', when: 'before' }, { path: '/employees', skip: HALF_WAY, times: Infinity });
  }

  /** Waits until so many pages of the company's run are committed. */
  function pagesOf(companyId: string, pages: number): Promise<number> {
    const committed = async () => (await deployment.lastRun(companyId)).walks[0]!.pages;
    return waitFor(async () => ((await committed()) >= pages ? committed() : undefined), { intervalMs: 20 });
  }

  function offsetsAsked(): number[] {
    return deployment.sandbox.requests.all('/employees').map(({ input }) => Number((input as Record<string, unknown>)['skip']));
  }
});
