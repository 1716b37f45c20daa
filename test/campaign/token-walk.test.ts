import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Deployment } from '../process/deployment.js';
import type { TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';

const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 100 },
  },
};
const backends = (['postgres', 'redis'] as const).filter((backend) => backend === 'postgres' || redisUrl());
const MINUTE = 60_000;

let deployment: Deployment;
let processes: TestProcess[];

async function deploy(backend: string, sandbox: object, workers: number): Promise<void> {
  deployment = await Deployment.open({
    redisUrl: backend === 'redis' ? redisUrl() : undefined,
    catalogue: CATALOGUE,
    sandbox,
  });
  processes = [await deployment.startApi()];
  for (let i = 0; i < workers; i++) processes.push(await deployment.startWorker());
}

async function tearDown(): Promise<void> {
  for (const one of processes) one.kill('SIGTERM');
  await Promise.all(processes.map((one) => one.exit));
  await deployment.close();
}

/** Pages behind so many are held, so that the walk cannot be over before something happens to its company. */
const holdBehind = (skip: number) =>
  deployment.sandbox.faults.add({ kind: 'hold' }, { path: '/employees', skip, times: Infinity });
const path = (companyId: string) => `/api/companies/test/${companyId}`;
const requestSync = (companyId: string) => deployment.call('POST', `${path(companyId)}/sync`, { mode: 'full' });

describe('tokens that the provider ends early', () => {
  let ahead = 0;
  beforeAll(() =>
    deploy(
      'postgres',
      {
        latencyMs: 40,
        clock: { ...systemClock, now: () => Date.now() + ahead },
        companies: [{ name: 'Early', employees: 20_000 }],
      },
      1,
    ),
  );
  afterAll(tearDown);

  test('pages in flight side by side that all see a 401 cause one renewal, and the walk goes on', async () => {
    const { sandbox } = deployment;
    const { companyId } = sandbox.companies[0]!;
    holdBehind(20);
    await deployment.onboard(companyId);
    for (const [pages, refreshes] of [
      [10, 2],
      [30, 3],
    ] as const) {
      await waitFor(async () => (await deployment.lastRun(companyId)).walks[0]!.pages >= pages);
      ahead += 2 * 60 * MINUTE;
      sandbox.faults.clear();
      if (refreshes < 3) holdBehind(40);
      await waitFor(() => sandbox.requests.all('/auth/token').length === refreshes);
    }
    expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }] });
    expect(sandbox.requests.all('/auth/token')).toHaveLength(3);
    expect(sandbox.requests.all('/employees').filter(({ status }) => status === 401).length).toBeGreaterThan(2);
  });
});

describe.each(backends)('a company that is revoked during its walk, with the queue on %s', (backend) => {
  beforeAll(() => deploy(backend, { latencyMs: 40, companies: [{ name: 'Revoked', employees: 20_000 }] }, 2));
  afterEach(tearDown);

  test('its state is there within a minute, and the provider sees no further request of it', async () => {
    const { sandbox } = deployment;
    const { companyId } = sandbox.companies[0]!;
    holdBehind(20);
    await deployment.onboard(companyId);
    await waitFor(async () => (await deployment.lastRun(companyId)).walks[0]!.pages >= 10);

    // A person, in the provider's page.
    const pressed = await fetch(new URL(`/sandbox/companies/${companyId}/revoke`, sandbox.url), {
      method: 'POST',
      redirect: 'manual',
    });
    expect(pressed.status).toBe(303);
    sandbox.faults.clear();
    const status = async () => ((await deployment.call('GET', path(companyId))).body as { status: string }).status;
    await waitFor(async () => (await status()) === 'reauthorization_required');
    expect((await deployment.runEnd(companyId)).status).toBe('failed');
    const refreshes = sandbox.requests.all('/auth/token').length;
    // Its first token, and the one refresh that was refused; not one for each page that was in flight.
    expect(refreshes).toBe(2);

    // Everything that would make a request of a healthy company.
    const asked = sandbox.requests.all().length;
    await deployment.database.db.pool.query('UPDATE muster.connections SET next_sync_at = now()');
    await deployment.database.db.pool.query('UPDATE muster.tokens SET refresh_at = now()');
    expect((await requestSync(companyId)).status).toBe(409);
    expect((await deployment.call('POST', `${path(companyId)}/resume`)).status).toBe(409);
    await sleep(8_000);
    expect(sandbox.requests.all().length).toBe(asked);
    expect(sandbox.reusedRefreshTokens).toBe(0);
  });
});
