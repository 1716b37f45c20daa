import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { COMPANY, type Columns, members, spare, tableLines, time } from '../../src/cli/table.js';
import { fittedLines, wholeLines } from '../../src/cli/table-layout.js';
import { columnsOf, cut, hasColour, pairLines, plain, widthOf, wrap } from '../../src/cli/terminal.js';

let before: NodeJS.ProcessEnv;
beforeEach(() => {
  before = process.env;
  process.env = { ...before, NO_COLOR: '1', FORCE_COLOR: '' };
});
afterEach(() => {
  process.env = before;
});

describe('a table', () => {
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

  test('has headings even without rows', () => {
    expect(tableLines([], { A: () => '', B: () => '' })).toEqual(['A  B']);
  });

  test('counts the columns that characters take, and lets no text move the cursor', () => {
    const names = ['日本商事', 'Ekdal', 'é́́', '👩‍👩‍👧 AS', '\u001b[2Jgone\nnext\u202ereversed'];
    const lines = tableLines(names, { NAME: (name) => name, N: () => 1 });
    expect(new Set(lines.map(columnsOf)).size).toBe(1);
    for (const character of '\u001b\n\u202e') expect(lines.join('')).not.toContain(character);
    expect(lines.at(-1)).toContain('gone nextreversed');
  });

  test('shows times to the second, and nothing for none', () => {
    expect([time('2026-01-02T03:04:05.678Z'), time(null), time(undefined)]).toEqual([
      '2026-01-02 03:04:05Z',
      undefined,
      undefined,
    ]);
  });
});

interface Item {
  readonly id: string;
  readonly environment: string;
  readonly company_id: string;
  readonly company_name?: string;
  readonly status: string;
  readonly count: number;
  readonly at: string;
  readonly why: string;
}

const ID = '0f9a7c52-1b7e-4a59-9d53-0d8a0a6f1e0';
const GUID = '5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a1';
const NAMES = ['Nordlia Helse og Omsorg', '日本商事株式会社 ホールディングス', 'Brattskjær Båtbyggeri AS og Sønner', 'Ås'];
const ITEMS: readonly Item[] = NAMES.map((company_name, n) => ({
  id: `${ID}${n}`,
  environment: n === 2 ? 'production' : 'test',
  company_id: `${GUID}${n}`,
  company_name,
  status: n === 1 ? 'reauthorization_required' : 'failed',
  count: 1_234_567 * n,
  at: '2026-01-02T03:04:05Z',
  why: 'The service refused the list, and said that the key of the application has no role for it.',
}));
const COLUMNS: Columns<Item> = {
  RUN: ({ id }) => id,
  ...COMPANY,
  ...members('status', 'count'),
  ...spare({ AT: ({ at }: Item) => time(at) }),
  ...members('why'),
};
const filled = (items: readonly Item[]) =>
  Object.entries(COLUMNS).map(([heading, column]) => ({
    heading,
    isSpare: typeof column !== 'function',
    cells: items.map((item) => (typeof column === 'function' ? column(item) : column.spare(item))),
  }));

describe('in a terminal a table', () => {
  test.each([300, 200, 160, 120, 100, 80, 60, 40])(
    'takes no more than %s columns, and shortens nothing that is copied',
    (width) => {
      const { lines, left, inEveryRow } = fittedLines(filled(ITEMS), width, false);
      const shown = lines.join('\n');
      for (const line of lines) expect(columnsOf(line)).toBeLessThanOrEqual(Math.max(width, 51));
      for (const { id, status, count } of ITEMS) {
        expect(shown).toContain(id);
        expect(shown).toContain(status);
        expect(shown).toContain(String(count));
      }
      expect(left.every((heading) => ['ENVIRONMENT', 'AT'].includes(heading))).toBe(true);
      if (width === 300) expect([left, inEveryRow]).toEqual([[], []]);
    },
  );

  test('has names where a wider one has ids', () => {
    const [, first] = fittedLines(filled(ITEMS), 300, false).lines;
    expect(first).toContain(NAMES[0]);
    expect(first).not.toContain(GUID);
    const [headings, whole] = wholeLines(filled(ITEMS), false);
    expect(headings).toMatch(/^RUN +ENVIRONMENT +COMPANY +NAME +STATUS/);
    expect(whole).toContain(`${GUID}0  ${NAMES[0]}`);
  });

  test('keeps the id of a company that has no name, and tells two of one name apart', () => {
    const { company_name: _, ...unnamed } = ITEMS[0]!;
    const twins = [ITEMS[0]!, { ...ITEMS[1]!, company_id: `9${GUID.slice(1)}9`, company_name: NAMES[0]! }, unnamed];
    const { lines } = fittedLines(filled(twins), 300, false);
    expect(lines[1]).toContain('5f0c1d3a…');
    expect(lines[2]).toContain('9f0c1d3a…');
    expect(lines[3]).toContain(`${GUID}0`);
  });

  test('says once what is the same in every row, before it leaves anything out', () => {
    const { lines, left, inEveryRow } = fittedLines(filled([ITEMS[0]!, ITEMS[3]!]), 130, false);
    expect(inEveryRow[0]).toBe('ENVIRONMENT test');
    expect(lines[0]).toMatch(/^RUN +COMPANY +STATUS/);
    expect(left).toEqual([]);
  });

  test('is a block for a row where it cannot be a table', () => {
    const { lines } = fittedLines(filled(ITEMS), 50, false);
    expect(lines.slice(0, 3)).toEqual([`RUN          ${ID}0`, 'ENVIRONMENT  test', 'COMPANY      Nordlia Helse og Omsorg']);
    expect(lines.filter((line) => line === '')).toHaveLength(ITEMS.length - 1);
  });

  test('has its headings bold and its states in colours, in the same columns', () => {
    const inColour = fittedLines(filled(ITEMS), 300, true).lines;
    expect(inColour[0]).toContain('\u001b[1mRUN\u001b[22m');
    expect(inColour[1]).toContain('\u001b[31mfailed\u001b[39m');
    expect(inColour.map(columnsOf)).toEqual(fittedLines(filled(ITEMS), 300, false).lines.map(columnsOf));
  });
});

test('a text is cut between characters, and broken between words', () => {
  expect(cut('Nordlia Helse', 13)).toBe('Nordlia Helse');
  expect(cut('Nordlia Helse', 9)).toBe('Nordlia…');
  expect(cut('日本商事', 6)).toBe('日本…');
  expect(cut('👩‍👩‍👧👩‍👩‍👧', 3)).toBe('👩‍👩‍👧…');
  expect(wrap('a bb https://example.com/long c', 6)).toEqual(['a bb', 'https://example.com/long', 'c']);
  expect(
    pairLines(
      [
        ['ready', 'yes'],
        ['lists of it', 'one two three four five six'],
      ],
      34,
    ),
  ).toEqual(['ready        yes', 'lists of it  one two three four', '             five six']);
  expect(plain('a\r\nb\u0007c')).toBe('a b c');
});

test('the width is that of COLUMNS, else of the terminal, and a pipe has none', () => {
  const terminal = { isTTY: true, columns: 100 };
  expect(widthOf(terminal, {})).toBe(100);
  expect(widthOf(terminal, { COLUMNS: '72' })).toBe(72);
  expect(widthOf({ isTTY: false }, { COLUMNS: '72' })).toBe(72);
  expect(widthOf(terminal, { COLUMNS: 'wide' })).toBe(100);
  expect(widthOf({ isTTY: true, columns: 0 }, {})).toBe(80);
  expect(widthOf({ isTTY: false }, {})).toBeUndefined();
});

test('colours are for terminals, unless NO_COLOR or FORCE_COLOR says otherwise', () => {
  const [terminal, pipe] = [{ isTTY: true }, { isTTY: false }];
  expect([hasColour(terminal, {}), hasColour(pipe, {})]).toEqual([true, false]);
  expect([hasColour(terminal, { NO_COLOR: '1' }), hasColour(terminal, { NO_COLOR: '' })]).toEqual([false, true]);
  expect(hasColour(terminal, { TERM: 'dumb' })).toBe(false);
  expect([hasColour(pipe, { FORCE_COLOR: '1' }), hasColour(terminal, { FORCE_COLOR: '0' })]).toEqual([true, false]);
});
