import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { Secret } from '../../src/core/secret.js';
import { MOST_REQUESTS } from '../../src/learn/probing.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { endpointsOf } from '../walks/company-fixture.js';
import { syncHarness } from '../walks/sync-harness.js';
import { learn } from './learning.js';

// Every list of the sandbox is found without a hint, and its entry gives a verified walk.

const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;
const COMPANY = '/api/companies/{company_id}';
const COMPANY_V2 = '/api/v2.0/companies/{company_id}';
const LISTS = [
  [
    'employees',
    `${COMPANY}/employees`,
    { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 500 },
    'join',
  ],
  [
    'departments',
    `${COMPANY_V2}/departments/list`,
    { style: 'skip-take', in: 'body', skipName: 'skip', takeName: 'take', size: 500 },
    'join',
  ],
  ['absences', `${COMPANY}/absences`, { style: 'odata', size: 500 }, 'join'],
  [
    'documents',
    `${COMPANY_V2}/documents/list`,
    { style: 'continuation', in: 'body', tokenName: 'continuationToken', sizeName: 'pageSize', size: 500 },
    'token-chain',
  ],
  [
    'documents',
    `${COMPANY}/documents-legacy`,
    { style: 'continuation', in: 'query', tokenName: 'continuationToken', sizeName: 'pageSize', size: 500 },
    'token-chain',
  ],
  [
    'contracts',
    `${COMPANY}/contracts`,
    { style: 'page-number', in: 'query', pageName: 'page', sizeName: 'pageSize', first: 1, size: 500 },
    'two-pass',
  ],
  ['shifts', '/odata/companies/{company_id}/shifts', { style: 'next-link', sizeName: '$top', size: 500 }, 'token-chain'],
  ['notes', `${COMPANY}/notes`, { style: 'skip-take', in: 'query', skipName: 'skip', takeName: 'take', size: 500 }, 'join'],
  [
    'positions',
    `${COMPANY}/positions`,
    { style: 'skip-take', in: 'query', skipName: 'skip', takeName: 'take', size: 500 },
    'join',
  ],
  [
    'payslips',
    `${COMPANY_V2}/payslips/list`,
    { style: 'continuation', in: 'body', tokenName: 'after', sizeName: 'limit', size: 500 },
    'token-chain',
  ],
  [
    'timesheets',
    `${COMPANY}/timesheets`,
    { style: 'continuation', in: 'query', tokenName: 'cursor', sizeName: 'limit', size: 500 },
    'token-chain',
  ],
] as const;

let sandbox: Sandbox;
let database: TestDatabase;

beforeAll(async () => {
  sandbox = await startSandbox({ companies: [{ name: 'Learned', employees: 137, positions: 137, departments: 137 }] });
  database = await testDatabase();
  await ensureMirrorTables(database.db, loadCatalogue(new URL('../../examples/catalogue.yaml', import.meta.url).pathname));
});
afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

async function tokensOf(companyId: string) {
  const response = await fetch(new URL('/auth/token', sandbox.url), {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: sandbox.issueRefreshToken(companyId).reveal(),
      client_id: sandbox.clientId,
      client_secret: sandbox.clientSecret.reveal(),
    }),
  });
  const token = new Secret(((await response.json()) as { access_token: string }).access_token);
  return { get: async () => token, renew: async () => token, refused: async () => {} };
}

describe.each(LISTS)('%s at %s', (resource, path, pager, proof) => {
  test('is found within thirty requests, and its entry gives a verified walk', async () => {
    const { companyId } = sandbox.companies[0]!;
    const learned = await learn({ url: sandbox.url, companyId, path, name: resource, tokens: await tokensOf(companyId) });
    expect(learned.catalogue?.[resource]?.['pager'], learned.entry).toEqual(pager);
    expect(learned.outcome).toBe('confirmed');
    expect(learned.sent.length).toBeLessThanOrEqual(MOST_REQUESTS);
    const harness = syncHarness(database.db, sandbox, endpointsOf(learned.catalogue!));
    const company = { environment: 'test', companyId } as const;
    if ((await database.db.prisma.company.count()) === 0) await harness.onboard(companyId);
    const [walk] = (await harness.sync(company, NIGHTLY)).walks;
    expect(walk).toMatchObject({ verified: true, proof });
    expect(await mirrored(database.db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));
    await harness.close();
  });
});

test.each(loadCatalogue().endpoints)(
  'the built-in entry of $resource is right for the service, and a look agrees',
  async (known) => {
    const { companyId } = sandbox.companies[0]!;
    const { resource: name, method, path } = known;
    const learned = await learn({ url: sandbox.url, companyId, path, method, name, known, tokens: await tokensOf(companyId) });
    expect(learned.findings.filter(({ about }) => about === 'catalogue').map(({ says }) => says)).toEqual([
      "The catalogue's entry agrees.",
    ]);
    const other = { ...known, id: ['elsewhere'], fields: { total: 'count' } };
    const differing = await learn({
      url: sandbox.url,
      companyId,
      path,
      method,
      name,
      known: other,
      tokens: await tokensOf(companyId),
    });
    expect(differing.findings.find(({ about }) => about === 'catalogue')!.says).toMatch(/differs in fields\.total, id:/);
  },
);
