import { expect, test } from 'vitest';
import type { ColumnRow, TwinAnswer } from '../../src/db/tables/schema-columns.js';
import { kindToAsk } from '../../src/warehouse/column-types.js';

const column = (twinAnswers: Readonly<Record<string, TwinAnswer>>) =>
  ({
    type: 'text',
    declared: null,
    twins: [],
    twinDue: null,
    twinAnswers,
    kinds: { date: 40, number: 30 },
  }) as unknown as ColumnRow;

test('a kind whose values wait for proofs is asked for again although another kind was answered since', () => {
  const waiting = { date: { count: 40, waits: true }, number: { count: 30 } } as const;
  expect(kindToAsk(column(waiting), undefined)).toBe('date');
});

test('an answered kind is asked for again once twice as many values were counted, or one was just now', () => {
  expect(kindToAsk(column({ date: { count: 40 }, number: { count: 30 } }), undefined)).toBeNull();
  expect(kindToAsk(column({ date: { count: 20 }, number: { count: 30 } }), undefined)).toBe('date');
  expect(kindToAsk(column({ date: { count: 40 }, number: { count: 30 } }), new Set(['number']))).toBe('number');
});
