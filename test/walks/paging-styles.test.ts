import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { PAGER_STYLES } from '../../src/pagers/registry.js';
import type { Resource } from '../../src/sandbox/company-spec.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { syncHarness } from './sync-harness.js';

// The catalogue to try, against the sandbox that it is written for: a list in each style of paging.

const catalogue = loadCatalogue(new URL('../../examples/catalogue.yaml', import.meta.url).pathname);
const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;
const PROOFS: Readonly<Record<string, string>> = {
  employees: 'join',
  departments: 'join',
  absences: 'join',
  documents: 'token-chain',
  contracts: 'two-pass',
  shifts: 'token-chain',
  notes: 'join',
  positions: 'token-chain',
  payslips: 'token-chain',
  timesheets: 'token-chain',
};

let sandbox: Sandbox;
let database: TestDatabase;

beforeAll(async () => {
  sandbox = await startSandbox({ companies: [{ name: 'Styles', employees: 137, positions: 137, departments: 137 }] });
  database = await testDatabase();
  await ensureMirrorTables(database.db, catalogue);
});
afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

test('the catalogue to try has a list in each style', () => {
  expect(new Set(catalogue.endpoints.map(({ pager }) => pager.style))).toEqual(new Set(Object.keys(PAGER_STYLES)));
  expect(catalogue.endpoints.map(({ resource }) => resource)).toEqual(Object.keys(PROOFS));
});

describe.each(catalogue.endpoints)('$resource', (endpoint) => {
  const resource = endpoint.resource as Resource;

  test('is mirrored whole, and follows what changes', async () => {
    const harness = syncHarness(database.db, sandbox, [endpoint]);
    const { companyId } = sandbox.companies[0]!;
    const company = { environment: 'test', companyId } as const;
    if (resource === 'employees') await harness.onboard(companyId);
    const list = sandbox.list(companyId, resource);
    const [first] = (await harness.sync(company, NIGHTLY)).walks;
    expect(first).toMatchObject({ verified: true, proof: PROOFS[resource], received: list.size, inserted: list.size });
    expect(await mirrored(database.db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));

    list.change(20, list.texts()[20]!.replace('{', '{"marker":1,'));
    list.remove(3, 2);
    const [second] = (await harness.sync(company, NIGHTLY)).walks;
    expect(second).toMatchObject({ verified: true, inserted: 0, updated: 1, deleted: 2 });
    const [third] = (await harness.sync(company, NIGHTLY)).walks;
    expect(third).toMatchObject({ verified: true, inserted: 0, updated: 0, deleted: 0, unchanged: list.size });
    expect(await mirrored(database.db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));
    await harness.close();
  });
});
