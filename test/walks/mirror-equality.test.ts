import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import type { Resource } from '../../src/sandbox/company-spec.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { syncHarness } from './sync-harness.js';

const COMPANY = { name: 'Equal', employees: 37, departments: 23, absences: 40, documents: 35, positions: 31 };

let sandbox: Sandbox;
let database: TestDatabase;

beforeAll(async () => {
  sandbox = await startSandbox({ companies: [COMPANY, { ...COMPANY, name: 'Clamped' }], maxTake: 32, wrapped: ['documents'] });
  database = await testDatabase();
});

afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

/** A list in each style, as a catalogue file would say it. Sizes that divide 35, 40, … and that do not; 500 is clamped by the service, as are sizes of more than 32. */
const lists: { resource: Resource; total: number; entry: (size: number) => object }[] = [
  {
    resource: 'employees',
    total: 37,
    entry: (size) => ({
      method: 'GET',
      path: '/api/companies/{company_id}/employees',
      pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size },
    }),
  },
  {
    resource: 'departments',
    total: 23,
    entry: (size) => ({
      method: 'POST',
      path: '/api/v2.0/companies/{company_id}/departments/list',
      pager: { style: 'skip-take', in: 'body', size },
    }),
  },
  {
    resource: 'absences',
    total: 40,
    entry: (size) => ({ method: 'GET', path: '/api/companies/{company_id}/absences', pager: { style: 'odata', size } }),
  },
  {
    resource: 'positions',
    total: 31,
    entry: (size) => ({
      method: 'GET',
      path: '/api/companies/{company_id}/positions',
      pager: { style: 'skip-take', in: 'query', size },
      envelope: 'none',
    }),
  },
  {
    resource: 'documents',
    total: 35,
    entry: (size) => ({
      method: 'POST',
      path: '/api/v2.0/companies/{company_id}/documents/list',
      pager: { style: 'continuation', in: 'body', size },
      envelope: 'value',
    }),
  },
  {
    resource: 'documents',
    total: 35,
    entry: (size) => ({
      method: 'GET',
      path: '/api/companies/{company_id}/documents-legacy',
      pager: { style: 'continuation', in: 'query', size },
      envelope: 'value',
    }),
  },
];

describe.each(lists)('$resource by $entry', ({ resource, total, entry }) => {
  test.each([1, 7, 10, total, 500])('pages of %i give an equal table', async (size) => {
    const endpoints = validateCatalogue({ [resource]: entry(size) }, 'test').endpoints;
    await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
    const harness = syncHarness(database.db, sandbox, endpoints);
    const { companyId } = sandbox.companies[0]!;
    const company = await harness.onboard(companyId);
    const run = await harness.sync(company);
    expect(run.status).toBe('succeeded');
    expect(run.walks).toEqual([
      expect.objectContaining({
        resource,
        verified: true,
        received: total,
        inserted: total,
        updated: 0,
        unchanged: 0,
        deleted: 0,
        rejected: 0,
        duplicates: 0,
      }),
    ]);
    expect(await mirrored(database.db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));

    const again = await harness.sync(company);
    expect(again.walks[0]).toMatchObject({ verified: true, received: total, inserted: 0, updated: 0, unchanged: total });
    await harness.close();
    await removeCompany();
  });
});

async function removeCompany(): Promise<void> {
  for (const table of [
    'muster.connections',
    'mirror.companies',
    'muster.lists',
    'muster.runs',
    ...new Set(lists.map(({ resource }) => `mirror.${resource}`)),
  ]) {
    await database.db.pool.query(`DELETE FROM ${table}`).catch(() => {});
  }
}
