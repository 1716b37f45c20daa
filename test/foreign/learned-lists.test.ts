import { expect, test } from 'vitest';
import { MOST_REQUESTS } from '../../src/learn/probing.js';
import { learn } from '../learn/learning.js';
import { foreignLists } from './foreign-lists.js';

// Lists of servers that others wrote are found without a hint, and their entries give verified walks.

const COMPANY = '1f3c9d84-6a2b-4c57-8e19-7d5b3f0a4c02';
const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;

const lists = foreignLists();

test.each([
  [
    'odata',
    'learned_shifts',
    '/odata/v4/roster/Companies({company_id})/shifts',
    'token-chain',
    {
      query: { $count: true },
      pager: { style: 'next-link', sizeName: 'none', size: 100 },
      fields: { data: 'value', next: '@odata.nextLink', total: '@odata.count' },
      id: ['id'],
    },
  ],
  [
    'json',
    'learned_notes',
    '/api/companies/{company_id}/notes',
    'join',
    {
      pager: { style: 'skip-take', in: 'query', skipName: '_start', takeName: '_limit', size: 500 },
      fields: { data: 'none', total: 'header X-Total-Count' },
      id: ['id'],
    },
  ],
] as const)('%s: %s', async (service, name, path, proof, entry) => {
  const { url, records } = lists.service(service);
  const learned = await learn({ url, companyId: COMPANY, path, name });
  expect(learned.catalogue?.[name], learned.requests.map(({ asked, saw }) => `${asked}: ${saw}`).join('\n')).toMatchObject(entry);
  expect(learned.outcome).toBe('confirmed');
  expect(learned.sent.length).toBeLessThanOrEqual(MOST_REQUESTS);

  const harness = await lists.harness(service, learned.catalogue!);
  const company = await harness.connect(COMPANY);
  const [walk] = (await harness.sync(company, NIGHTLY)).walks;
  expect(walk).toMatchObject({ verified: true, proof, received: records.length, total_records: records.length });
  await harness.close();
});
