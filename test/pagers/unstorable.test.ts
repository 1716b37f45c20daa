import { expect, test } from 'vitest';
import { unstorableReason } from '../../src/pagers/unstorable.js';

test('a number out of range is told from the same digits in a text, however many escapes stand around it', () => {
  const escapes = '\\n'.repeat(8 * 1024 * 1024);
  expect(unstorableReason(`{"id":"1","a":"5e12345","b":"${escapes}"}`)).toBeUndefined();
  expect(unstorableReason(`{"id":"1","a":5e12345,"b":"${escapes}"}`)).toBe('number_out_of_range');
});

test('numbers that PostgreSQL would write with more than a million digits are out of range together', () => {
  const numbers = (count: number, number: string) => `{"id":"1","a":[${Array.from({ length: count }, () => number).join(',')}]}`;
  expect(unstorableReason(numbers(900, '1e999'))).toBeUndefined();
  expect(unstorableReason(numbers(1_100, '1e999'))).toBe('number_out_of_range');
  expect(unstorableReason(numbers(1_100, '"1e999"'))).toBeUndefined();
  expect(unstorableReason(numbers(11_000, '-2.5E-0099'))).toBe('number_out_of_range');
});
