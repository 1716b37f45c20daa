import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import { shareOf } from './share.js';

// The provider's tokens live for 5 seconds, on its own clock. So a machine that stands still for seconds sees one refused.

const LIFE_SECONDS = 5;
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 100 },
  },
};
/** Each company's token is renewed so often that a few minutes show what hours would. */
const DURATION_MS = shareOf(600_000);

let deployment: Deployment;

beforeAll(async () => {
  const companies = [
    { name: 'Large', employees: 20_000 },
    { name: 'Small', employees: 300 },
    { name: 'Empty', employees: 0 },
  ];
  deployment = await Deployment.open({
    catalogue: CATALOGUE,
    sandbox: { accessTokenSeconds: LIFE_SECONDS, latencyMs: 20, companies },
  });
  await Promise.all([deployment.startApi(), deployment.startWorker(), deployment.startWorker()]);
});
afterAll(() => deployment.close());

test('constant syncing: no 401, no token sent twice, every run succeeds', async () => {
  const { sandbox } = deployment;
  for (const { companyId } of sandbox.companies) await deployment.onboard(companyId);
  const until = performance.now() + DURATION_MS;
  const seen = { runs: 0, refreshes: 0, pages: 0, refused: 0 };
  // The log is bounded, so it is counted and cleared as it goes.
  const count = () => {
    seen.refreshes += sandbox.requests.all('/auth/token').length;
    seen.pages += sandbox.requests.all('/employees').length;
    seen.refused += sandbox.requests.all().filter(({ status }) => status === 401).length;
    sandbox.requests.clear();
  };
  await Promise.all(
    sandbox.companies.map(async ({ companyId }) => {
      while (performance.now() < until) {
        expect((await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' })).status).toBe(202);
        const run = await deployment.runEnd(companyId);
        expect(run, JSON.stringify(run)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }] });
        seen.runs += 1;
        count();
      }
    }),
  );
  count();
  console.log(`tokens of ${LIFE_SECONDS} s:`, JSON.stringify(seen));
  expect(seen.refused).toBe(0);
  expect(sandbox.reusedRefreshTokens).toBe(0);
  expect(seen.refreshes).toBeGreaterThan((DURATION_MS / 1_000 / LIFE_SECONDS) * 2);
});
