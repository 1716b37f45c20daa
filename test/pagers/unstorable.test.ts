import { expect, test } from 'vitest';
import { unstorableReason } from '../../src/pagers/unstorable.js';

test('a number out of range is told from the same digits in a text, however many escapes stand around it', () => {
  const escapes = '\\n'.repeat(8 * 1024 * 1024);
  expect(unstorableReason(`{"id":"1","a":"5e12345","b":"${escapes}"}`)).toBeUndefined();
  expect(unstorableReason(`{"id":"1","a":5e12345,"b":"${escapes}"}`)).toBe('number_out_of_range');
});
