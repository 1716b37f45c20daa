import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MOST_REQUESTS } from '../../src/learn/probing.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { type ShapeName, startShape } from '../support/foreign-shapes.js';
import { endpointsOf } from '../walks/company-fixture.js';
import { foreignHarness } from '../walks/sync-harness.js';
import { learn } from './learning.js';

// Lists as services of other makers write them: each is found without a hint, and its entry gives a verified walk.

const COMPANY = '1f3c9d84-6a2b-4c57-8e19-7d5b3f0a4c02';
const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;

const SHAPES: readonly (readonly [ShapeName, object, string])[] = [
  [
    'scim',
    {
      pager: { style: 'skip-take', in: 'query', skipName: 'startIndex', takeName: 'count', first: 1, size: 60 },
      fields: { data: 'Resources', total: 'totalResults' },
      id: ['id'],
    },
    'join',
  ],
  [
    'personio',
    {
      pager: { style: 'skip-take', in: 'query', skipName: 'offset', takeName: 'limit', size: 500 },
      fields: { total: 'metadata.total_elements' },
      id: ['attributes.id.value'],
    },
    'join',
  ],
  [
    'fortnox',
    {
      pager: { style: 'page-number', in: 'query', pageName: 'page', sizeName: 'limit', first: 1, size: 200 },
      fields: { data: 'Invoices', total: 'MetaInformation.@TotalResources' },
      id: ['DocumentNumber'],
    },
    'two-pass',
  ],
  [
    'xero',
    {
      pager: { style: 'page-number', in: 'query', pageName: 'page', sizeName: 'pageSize', first: 1, size: 500 },
      fields: { data: 'Contacts', total: 'pagination.itemCount' },
      id: ['ContactID'],
    },
    'two-pass',
  ],
  [
    'dynamics',
    {
      query: { $count: true },
      pager: { style: 'next-link', sizeName: 'none', size: 50 },
      fields: { data: 'value', total: '@odata.count', next: '@odata.nextLink' },
      id: ['contactid'],
    },
    'token-chain',
  ],
  [
    'github',
    { pager: { style: 'next-link', sizeName: 'per_page', size: 100 }, fields: { data: 'none' }, id: ['id'] },
    'token-chain',
  ],
];

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

describe.each(SHAPES)('%s', (name, entry, proof) => {
  test('is found within thirty requests, and its entry gives a verified walk', async () => {
    const service = await startShape(name);
    const learned = await learn({ url: service.url, companyId: COMPANY, path: service.path, name });
    expect(service.requests.length).toBeLessThanOrEqual(MOST_REQUESTS);
    expect(learned.catalogue?.[name], learned.entry).toMatchObject(entry);
    expect(learned.outcome).toBe('confirmed');

    const endpoints = endpointsOf(learned.catalogue!);
    await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
    const harness = foreignHarness(database.db, service.url, endpoints);
    const company = await harness.connect(COMPANY);
    const [walk] = (await harness.sync(company, NIGHTLY)).walks;
    expect(walk).toMatchObject({ verified: true, proof, received: service.records.length, rejected: 0 });
    await harness.close();
    await service.stop();
  });
});
