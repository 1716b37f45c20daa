import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Deployment } from '../process/deployment.js';
import { waitFor } from '../process/wait-for.js';
import type { TestProcess } from '../support/process.js';

const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 100 },
  },
};
const MINUTE = 60_000;
/** More than twice as many as may be in flight, behind each hold. */
const PAGES = 100;

let deployment: Deployment;
let processes: TestProcess[];

async function deploy(sandbox: object, workers: number): Promise<void> {
  deployment = await Deployment.open({
    catalogue: CATALOGUE,
    sandbox,
  });
  processes = [await deployment.startApi()];
  for (let i = 0; i < workers; i++) processes.push(await deployment.startWorker());
}

async function tearDown(): Promise<void> {
  await deployment.close();
}

/** Pages behind so many are held, so that the walk cannot be over before something happens to its company. */
function holdBehind(pages: number): void {
  for (let page = pages; page < PAGES; page += 1)
    deployment.sandbox.faults.add({ kind: 'hold' }, { path: '/employees', input: { skip: `${page * 100}` }, times: Infinity });
}
const path = (companyId: string) => `/api/companies/test/${companyId}`;
const requestSync = (companyId: string) => deployment.call('POST', `${path(companyId)}/sync`, { mode: 'full' });

describe('tokens that the provider ends early', () => {
  let ahead = 0;
  beforeAll(() =>
    deploy(
      {
        latencyMs: 40,
        clock: { ...systemClock, now: () => Date.now() + ahead },
        companies: [{ name: 'Early', employees: PAGES * 100 }],
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
      [50, 3],
    ] as const) {
      await waitFor(async () => (await deployment.lastRun(companyId)).walks[0]!.pages >= pages);
      ahead += 2 * 60 * MINUTE;
      sandbox.faults.clear();
      if (refreshes < 3) holdBehind(60);
      await waitFor(() => sandbox.requests.all('/auth/token').length === refreshes);
    }
    expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }] });
    expect(sandbox.requests.all('/auth/token')).toHaveLength(3);
    expect(sandbox.requests.all('/employees').filter(({ status }) => status === 401).length).toBeGreaterThan(2);
  });
});

describe('a company that is revoked during its walk', () => {
  beforeAll(() =>
    deploy(
      {
        latencyMs: 40,
        companies: [
          { name: 'Revoked', employees: PAGES * 100 },
          { name: 'Healthy', employees: 50 },
        ],
      },
      2,
    ),
  );
  afterEach(tearDown);

  test('its state is shown, and the provider sees no further request of it', async () => {
    const { sandbox } = deployment;
    const [companyId, healthy] = sandbox.companies.map((company) => company.companyId) as [string, string];
    await deployment.onboard(healthy);
    await deployment.runEnd(healthy);
    sandbox.requests.clear();
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
    const failed = await deployment.runEnd(companyId);
    expect(failed.status).toBe('failed');
    const refreshes = sandbox.requests.all('/auth/token').length;
    // Its first token, and the one refresh that was refused; not one for each page that was in flight.
    expect(refreshes).toBe(2);

    // Everything that makes requests of a healthy company, twice, so that what the first time led to has been done.
    const pages = (company: string) => sandbox.requests.all(`/companies/${company}/`).length;
    const asked = pages(companyId);
    expect((await requestSync(companyId)).status).toBe(409);
    expect((await deployment.call('POST', `${path(companyId)}/resume`)).status).toBe(409);
    for (const time of [1, 2]) {
      const { id } = await deployment.lastRun(healthy);
      await deployment.database.db.pool.query('UPDATE muster.connections SET next_sync_at = now()');
      await deployment.database.db.pool.query('UPDATE muster.tokens SET refresh_at = now()');
      await waitFor(async () => (await deployment.lastRun(healthy)).id !== id);
      expect((await deployment.runEnd(healthy)).status).toBe('succeeded');
      await waitFor(() => sandbox.requests.all('/auth/token').length >= refreshes + time);
    }
    expect(sandbox.requests.all('/auth/token')).toHaveLength(refreshes + 2);
    expect(pages(companyId)).toBe(asked);
    expect(await deployment.lastRun(companyId)).toEqual(failed);
    expect(sandbox.reusedRefreshTokens).toBe(0);
  });
});
