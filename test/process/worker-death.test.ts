import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import type { TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';
import { Deployment } from './deployment.js';

const SIZE = 200;
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
  let api: TestProcess;
  const [first, second] = [
    { name: 'Killed', employees: 20_000 },
    { name: 'Stopped', employees: 20_000 },
  ];

  beforeAll(async () => {
    deployment = await Deployment.open({
      redisUrl: backend === 'redis' ? redisUrl() : undefined,
      catalogue: CATALOGUE,
      sandbox: { companies: [first, second], latencyMs: 40 },
    });
    api = await deployment.startApi();
  });

  afterAll(async () => {
    api.kill('SIGTERM');
    await api.exit;
    await deployment.close();
  });

  test('kill -9 in the middle of a list costs no page that was committed', async () => {
    const { companyId } = deployment.sandbox.companies[0]!;
    const doomed = await deployment.startWorker();
    await deployment.onboard(companyId);
    const pages = await pagesOf(companyId, 20);
    doomed.kill('SIGKILL');
    await doomed.exit;
    const committed = Math.max(pages, (await deployment.lastRun(companyId)).walks[0]!.pages);

    deployment.sandbox.requests.clear();
    const heir = await deployment.startWorker();
    const run = await deployment.runEnd(companyId);
    expect(run).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: true, received: 20_000, inserted: 20_000, resumed: true }],
    });
    const again = offsetsAsked().filter((offset) => offset < (committed - 2) * (SIZE - 1));
    expect(again).toEqual([]);
    expect(await mirrored(deployment.database.db, 'employees', companyId)).toEqual(
      upstream(deployment.sandbox, 'employees', companyId),
    );
    heir.kill('SIGTERM');
    expect(await heir.exit).toEqual({ code: 0, signal: null });
  });

  test('SIGTERM during a walk loses no committed page, and exits 0', async () => {
    const { companyId } = deployment.sandbox.companies[1]!;
    const leaving = await deployment.startWorker();
    await deployment.onboard(companyId);
    await pagesOf(companyId, 20);
    leaving.kill('SIGTERM');
    expect(await leaving.exit).toEqual({ code: 0, signal: null });
    const left = (await deployment.lastRun(companyId)).walks[0]!;
    expect(left.status).toBe('running');
    expect(left.received).toBe(left.pages * (SIZE - 1) + 1);

    const heir = await deployment.startWorker();
    const run = await deployment.runEnd(companyId);
    expect(run).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: true, received: 20_000, inserted: 20_000, resumed: true }],
    });
    expect(run.walks[0]!.pages).toBe(Math.ceil((20_000 - 1) / (SIZE - 1)));
    expect(await mirrored(deployment.database.db, 'employees', companyId)).toEqual(
      upstream(deployment.sandbox, 'employees', companyId),
    );
    heir.kill('SIGTERM');
    await heir.exit;
  });

  /** Waits until so many pages of the company's run are committed. */
  function pagesOf(companyId: string, pages: number): Promise<number> {
    const committed = async () => (await deployment.lastRun(companyId)).walks[0]!.pages;
    return waitFor(async () => ((await committed()) >= pages ? committed() : undefined), { timeoutMs: 20_000, intervalMs: 20 });
  }

  function offsetsAsked(): number[] {
    return deployment.sandbox.requests.all('/employees').map(({ input }) => Number((input as Record<string, unknown>)['skip']));
  }
});
