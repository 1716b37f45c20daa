import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { ColumnRow } from '../../src/db/tables/schema-columns.js';
import { catalogueLine } from '../../src/warehouse/catalogue-line.js';

const row = (change: object) =>
  ({ path: ['left'], type: 'text', declared: null, twins: [], kinds: {}, misfits: 0, ...change }) as unknown as ColumnRow;

test.each<[string, object, object | null]>([
  ['an inferred type', { type: 'date' }, { left: 'date' }],
  ['the newest twin', { twins: [{ type: 'date' }, { type: 'timestamp' }] }, { left: 'timestamp' }],
  ['misfits', { type: 'numeric', kinds: { number: 5, string: 1 }, misfits: 1 }, { left: 'text' }],
  ['misfits that are objects', { type: 'date', kinds: { date: 50, array: 1 }, misfits: 1 }, { left: 'jsonb' }],
  ['a day that says for ever', { type: 'date', kinds: { date: 50, date_beyond: 1 }, misfits: 1 }, { left: 'date' }],
  ['a declared type that fits', { type: 'numeric', declared: 'numeric(12,2)' }, null],
  ['a declared type with misfits', { declared: 'date', kinds: { date: 50, string: 1 }, misfits: 1 }, { left: 'text' }],
  ['a path', { path: ['address', 'street'] }, { 'address.street': 'text' }],
  ['an odd key', { path: ['a "key": {, }'] }, { 'a "key": {, }': 'text' }],
  ['a word of YAML', { path: ['null'] }, { null: 'text' }],
  ['a key that cannot be declared', { path: ['a', ''] }, null],
])('the line for %s can be pasted', (_what, change, columns) => {
  const line = catalogueLine(row(change), []);
  expect(line && parse(line)).toEqual(columns && { columns });
});
