import { expect, test } from 'vitest';
import { pageSource } from '../../src/walks/page-source.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';

test.each<[string, boolean, string?]>([
  ['"strong"', true],
  ['W/"weak"', false],
  ['W/"weak"', true, 'weak'],
  ['"strong"', true, 'weak'],
  ['"strong"', false, 'ignore'],
  ['""', true],
  ['bare', false],
  ['"with space "', false],
  ['"quote"inside"', false],
  [`"${'x'.repeat(501)}"`, false],
  ['"latin \u00e9"', false],
])('the ETag %s is kept: %s %s', async (etag, isKept, mode = 'strong') => {
  const [endpoint] = endpointsOf({ employees: { ...ENTRIES.employees, etag: mode } });
  const text = '{"totalRecords":1,"totalDisplayRecords":1,"data":[{"id":"1"}]}';
  const request = async () => ({ status: 200 as const, headers: { etag }, text, bytes: Buffer.from(text) });
  const fetch = pageSource(
    { api: { request, baseUrl: 'http://service/' }, companyId: 'company', tokens: undefined as never },
    endpoint!,
  )({});
  const page = await fetch({ query: { skip: '0' } }, new AbortController().signal);
  const { answer } = await page.read('id');
  expect(answer).toEqual(isKept ? { request: '["http://service/",{"query":{"skip":"0"}}]', etag, total: 1 } : undefined);
});
