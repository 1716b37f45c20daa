import { describe, expect, test } from 'vitest';
import { foreignLists } from './foreign-lists.js';

// Lists of servers that others wrote are mirrored whole, and what changes there is followed.

const COMPANY = '1f3c9d84-6a2b-4c57-8e19-7d5b3f0a4c02';
const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;
const odata = (path: string, more: object = {}) => ({
  method: 'GET',
  path,
  query: { $count: true },
  // The service decides on the size of its pages; $top would end the list.
  pager: { style: 'next-link', sizeName: 'none', size: 100 },
  id: ['id'],
  fields: { data: 'value', next: '@odata.nextLink', total: '@odata.count' },
  ...more,
});
const json = (pager: object, more: object = {}) => ({
  method: 'GET',
  path: '/api/companies/{company_id}/notes',
  pager,
  id: ['id'],
  fields: { data: 'none', total: 'header X-Total-Count' },
  ...more,
});

const lists = foreignLists();

describe.each([
  ['odata', 'shifts_by_company', 'token-chain', odata('/odata/v4/roster/Companies({company_id})/shifts')],
  ['json', 'numbered', 'two-pass', json({ style: 'page-number', pageName: '_page', sizeName: '_limit', size: 60 })],
  ['json', 'linked', 'token-chain', json({ style: 'next-link', sizeName: '_limit', size: 60 }, { query: { _page: 1 } })],
  ['json', 'cut', 'join', json({ style: 'skip-take', skipName: '_start', takeName: '_limit', size: 60 })],
] as const)('%s, walked as %s', (name, resource, proof, entry) => {
  test('is mirrored whole, and follows what changes', async () => {
    const { records } = lists.service(name);
    const harness = await lists.harness(name, { [resource]: entry });
    const company = await harness.connect(COMPANY);
    const ids = async () => {
      const { rows } = await lists.database.db.pool.query<{ data: object }>(
        `SELECT data FROM mirror."${resource}" WHERE deleted_at IS NULL ORDER BY id::int`,
      );
      return rows.map(({ data }) => data);
    };
    const [first] = (await harness.sync(company, NIGHTLY)).walks;
    expect(first).toMatchObject({ verified: true, proof, received: records.length, total_records: records.length });
    expect(await ids()).toEqual(records);
    Object.assign(records[17]!, { title: 'changed', text: resource });
    records.splice(100, 1);
    const [second] = (await harness.sync(company, NIGHTLY)).walks;
    expect(second).toMatchObject({ verified: true, inserted: 0, updated: 1, deleted: 1 });
    expect(await ids()).toEqual(records);
    const [third] = (await harness.sync(company, NIGHTLY)).walks;
    expect(third).toMatchObject({ verified: true, inserted: 0, updated: 0, unchanged: records.length });
    await harness.close();
  });
});

test('$top cuts an OData list short, which is told from a whole one', async () => {
  const harness = await lists.harness('odata', {
    topped: odata('/odata/v4/roster/Companies({company_id})/shifts', {
      pager: { style: 'next-link', sizeName: '$top', size: 60 },
    }),
  });
  const company = await harness.connect(COMPANY);
  const [walk] = (await harness.sync(company, NIGHTLY)).walks;
  expect(walk).toMatchObject({
    verified: false,
    unverified_reason: 'total_mismatch',
    received: 60,
    total_records: lists.service('odata').records.length,
  });
  await harness.close();
});
