import { expect, test } from 'vitest';
import { pagerFor } from '../../src/pagers/registry.js';
import { Baseline } from '../../src/unchanged/baseline.js';
import { SkipUnchanged } from '../../src/unchanged/skip-unchanged.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';

test.each<[string, boolean, ('strong' | 'weak' | 'ignore')?]>([
  ['"strong"', true],
  ['W/"weak"', false],
  ['W/"weak"', true, 'weak'],
  ['"strong"', true, 'weak'],
  ['"strong"', false, 'ignore'],
  ['""', false],
  ['bare', false],
  ['"with space "', false],
  ['"quote"inside"', false],
  [`"${'x'.repeat(501)}"`, false],
  ['"latin \u00e9"', false],
])('the ETag %s is kept: %s %s', async (etag, isKept, mode = 'strong') => {
  const [endpoint] = endpointsOf({ employees: { ...ENTRIES.employees, etag: mode } });
  const bytes = Buffer.from('{"totalRecords":1,"totalDisplayRecords":1,"data":[{"id":"1"}]}');
  const format = { resource: 'employees', id: ['id'], pager: pagerFor(endpoint!), ignoreTotals: false };
  const comparison = new SkipUnchanged(new Baseline([], undefined, async function* () {}), endpoint!, 'ask');
  const { answer } = await comparison.read('request', { bytes, headers: { etag }, url: 'http://service/' }, format, 'id');
  expect(answer).toEqual(isKept ? { request: 'request', etag, total: 1 } : undefined);
});
