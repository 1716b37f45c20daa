import { expect, test } from 'vitest';
import { placesOf } from '../../src/learn/entry.js';
import { entryNameOf } from '../../src/learn/entry-name.js';
import { wantedBy } from '../../src/learn/refusal-words.js';
import { totalPlaces } from '../../src/learn/totals.js';

const CHAIN = { total: 'totalRecords', hasNext: 'hasNextPage', next: 'nextPageToken' };

test.each([
  ['all where it is by default', { data: ['data'], total: 'totalRecords' }, { total: 'totalRecords' }, {}],
  [
    'a wrapped envelope',
    { data: ['value', 'data'], total: 'value.totalRecords' },
    { total: 'totalRecords' },
    { envelope: 'value' },
  ],
  [
    'a wrapped chain',
    { data: ['value', 'data'], hasNext: 'value.hasNextPage', next: 'value.nextPageToken' },
    CHAIN,
    { envelope: 'value' },
  ],
  [
    'a total elsewhere',
    { data: ['value', 'data'], total: 'meta.total' },
    { total: 'totalRecords' },
    { fields: { data: 'value.data', total: 'meta.total' } },
  ],
  ['a token without a flag', { data: ['data'], next: 'nextPageToken' }, CHAIN, { fields: { next: 'nextPageToken' } }],
  [
    'a bare array',
    { data: [], total: 'header X-Total-Count' },
    { total: 'totalRecords' },
    { fields: { data: 'none', total: 'header X-Total-Count' } },
  ],
])('%s is written in the fewest members', (_, places, defaults, entry) => {
  expect(placesOf(places, defaults)).toEqual(entry);
});

test.each([
  ['Paging is mandatory: $take is missing.', ['$take'], {}],
  ['expand must be department.', ['expand'], { expand: 'department' }],
  ["Missing required parameter: 'page[size]'", ['page[size]'], {}],
  ['limit must be an integer of at least 1.', ['limit'], {}],
  ['The field from is required.', ['from'], {}],
  ['Use POST.', [], {}],
  [undefined, [], {}],
])('%s', (sentence, names, constants) => {
  const wanted = wantedBy(sentence);
  expect(wanted.names).toEqual(expect.arrayContaining(names));
  expect(wanted.constants).toEqual(constants);
});

test.each([
  ['/api/companies/{company_id}/employees', 'employees'],
  ['/api/v2.0/companies/{company_id}/departments/list', 'departments'],
  ['/api.xro/2.0/{company_id}/BankTransactions', 'bank_transactions'],
  ['/odata/v4/roster/Companies({company_id})/shifts', 'shifts'],
  ['/api/{company_id}/runs', 'runs_list'],
  ['/{company_id}', 'list'],
])('the list at %s is called %s', (path, name) => {
  expect(entryNameOf(path)).toBe(name);
});

test('a total is what stays the same whatever the size of the page, give or take a record that joins', () => {
  const tally = (count: number, numbers: Record<string, number>) => ({ count, numbers: new Map(Object.entries(numbers)) });
  const pages = [
    tally(20, { total: 137, count: 20, pages: 7, limit_max: 200 }),
    tally(3, { total: 138, count: 3, pages: 46, limit_max: 200 }),
  ];
  expect(totalPlaces(pages)).toEqual(['total']);
  expect(totalPlaces([tally(10, { count: 10 })])).toEqual([]);
  expect(totalPlaces([tally(10, { total: 100 }), tally(3, { total: 3 })])).toEqual([]);
});
