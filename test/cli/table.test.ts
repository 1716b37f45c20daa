import { describe, expect, test } from 'vitest';
import { tableLines, time } from '../../src/cli/table.js';

describe('tableLines', () => {
  test('aligns text to the left and numbers to the right, and leaves no blanks at the end', () => {
    const items = [
      { name: 'Ø', count: 9 as number | null, note: 'x' },
      { name: 'long name', count: 1234, note: null },
      { name: 'none', count: null, note: undefined },
    ];
    expect(tableLines(items, { NAME: ({ name }) => name, N: ({ count }) => count, NOTE: ({ note }) => note })).toEqual([
      'NAME          N  NOTE',
      'Ø             9  x',
      'long name  1234  -',
      'none          -  -',
    ]);
  });

  test('prints the headings of an empty list', () => {
    expect(tableLines([], { A: () => '', B: () => '' })).toEqual(['A  B']);
  });

  test('shows times to the second, and nothing for none', () => {
    expect([time('2026-01-02T03:04:05.678Z'), time(null), time(undefined)]).toEqual([
      '2026-01-02 03:04:05Z',
      undefined,
      undefined,
    ]);
  });
});
