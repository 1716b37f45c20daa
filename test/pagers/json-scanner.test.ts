import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { atOnce, BYTES_A_TURN, ITEMS_A_TURN } from '../../src/core/turns.js';
import { arrayStart, MOST_RECORDS, recordScanner, scanJson } from '../../src/pagers/json-scanner.js';

const isJson = (text: string) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
const accepts = (text: string) => atOnce(scanJson(Buffer.from(text), [], [])) !== undefined;

const SCALARS = [
  '',
  ' ',
  '1',
  '-0',
  '-',
  '+1',
  '01',
  '-01',
  '1.',
  '.5',
  '1.5e',
  '1e+',
  '1E-07',
  '1e5.',
  '0e0',
  '0x1',
  'NaN',
  '1 2',
  '- 1',
  'true',
  'tru',
  'truex',
  'nul',
  'null ',
  'False',
  '\u00a0null',
  '\u000b1',
  'null\0',
];
const STRINGS = [
  '"',
  '"a',
  '"\\',
  '"\\x"',
  '"\\u12"',
  '"\\u12g4"',
  '"\\u 123"',
  '"\\ud800"',
  '"\t"',
  '"\u007f"',
  '"é😀"',
  '"\\/\\b\\f\\n\\r\\t\\""',
];
const NESTED = [
  '[',
  ']',
  '[]',
  '[1,]',
  '[,1]',
  '[1 2]',
  '[1,2',
  '[[],[[]]]',
  '[1}',
  '{',
  '{}',
  '{]',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{,"a":1}',
  '{"a":1 "b":2}',
  "{'a':1}",
  '{a:1}',
  '{"a":1}}',
  '{"a" : [ {"b":{}} ] } ',
  '{1:2}',
  '{"":""}',
  '{"a":1,"a":2}',
  '{null:1}',
];

describe('what is JSON', () => {
  test.each([...SCALARS, ...STRINGS, ...NESTED])('%j is told as JSON.parse tells it', (text) => {
    expect(accepts(text)).toBe(isJson(text));
  });

  test('is told as JSON.parse tells it, whatever is done to a text', () => {
    const piece = fc.constantFrom(...'{}[]:,"\\ \n\t0123456789.eE+-utrufalsn/\u0001é'.split(''), '\\u00', '"a"', 'null');
    const edit = fc.tuple(fc.nat(), fc.nat(3), fc.array(piece, { maxLength: 3 }));
    let broken = 0;
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.array(edit, { maxLength: 3 }), (json, edits) => {
        const text = edits.reduce((whole, [at, cut, put]) => {
          const index = at % (whole.length + 1);
          return whole.slice(0, index) + put.join('') + whole.slice(index + cut);
        }, json);
        const whole = isJson(text);
        if (!whole) broken += 1;
        expect(accepts(text)).toBe(whole);
        const inside = atOnce(scanJson(Buffer.from(`{"x":${text}}`), ['y'], []));
        expect(inside !== undefined).toBe(isJson(`{"x":${text}}`));
      }),
      { numRuns: 20_000, seed: 3 },
    );
    expect(broken).toBeGreaterThan(5_000);
  });

  test('is nested no deeper than 1,000', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect([accepts(nested(1_000)), accepts(nested(1_002)), accepts(nested(1_000_000))]).toEqual([true, false, false]);
    expect(accepts('{"a":'.repeat(1_000_000))).toBe(false);
  });
});

describe('the array of records', () => {
  const arrayOf = (text: string, path: readonly string[], members: readonly string[] = []) => {
    const bytes = Buffer.from(text);
    const array = atOnce(scanJson(bytes, path, members))?.array;
    const textOf = (span: { start: number; end: number } | undefined) => span && bytes.toString('utf8', span.start, span.end);
    return array?.records.map((record) => [textOf(record), ...record.members.map(textOf)]);
  };

  test.each([
    ['[1, {"é":2} ]', [], [['1'], ['{"é":2}']]],
    ['{"data":[]}', ['data'], []],
    ['{"data":[1],"data":[2]}', ['data'], [['2']]],
    ['{"data":[1],"d\\u0061ta":[2]}', ['data'], [['2']]],
    ['{"data":[1],"data":null}', ['data'], undefined],
    ['{"a":{"data":[1]},"a":{}}', ['a', 'data'], undefined],
    ['{"a":{"data":[1]},"b":{"data":[2]}}', ['a', 'data'], [['1']]],
    ['{"a":[{"data":[1]}]}', ['a', 'data'], undefined],
    ['{"data":{"data":[1]}}', ['data'], undefined],
    ['7', [], undefined],
  ])('of %s at %j', (text, path, records) => {
    expect(arrayOf(text, path)).toEqual(records);
  });

  test('comes with the members asked for, of each record by itself', () => {
    const text = '[{"id":1,"x":{"id":2}},{"uid":"a","id":"b"},{"i\\u0064":3,"id ":4},{"id":5,"id":[6]},7,["id"],{}]';
    expect(arrayOf(text, [], ['uid', 'id'])!.map(([, ...members]) => members)).toEqual([
      [undefined, '1'],
      ['"a"', '"b"'],
      [undefined, '3'],
      [undefined, '[6]'],
      [undefined, undefined],
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });
});

test.each([
  ['{"a":"x]","data":[1', ['data'], 17],
  [' {"a":{"data":0},"b":{"c":1,"data":[', ['b', 'data'], 35],
  ['{"data":{"a":[', ['data'], undefined],
  ['{"data":', ['data'], undefined],
  ['{"a":"never ends', ['data'], undefined],
  ['', [], undefined],
])('the array of a text that is cut off: %s', (text, path, start) => {
  expect(arrayStart(Buffer.from(text), path)).toBe(start);
});

test.each([
  ['[1,2],3', 0, { end: 5, id: undefined }],
  ['[1,2],3', 6, { end: 7, id: undefined }],
  ['[{"id":1,"a":{"id":2}},{"id":"b"}]', 1, { end: 22, id: '1' }],
  ['[{"id":1,"a":{"id":2}},{"id":"b"}]', 23, { end: 33, id: '"b"' }],
  ['[1,2', 0, undefined],
  ['{"id":1', 0, undefined],
  ['1', 1, undefined],
])('the record of %s at %i', (text, index, expected) => {
  const bytes = Buffer.from(text);
  const record = recordScanner(bytes, [], ['id'])(index);
  const id = record?.members[0];
  expect(record && { end: record.end, id: id && bytes.toString('utf8', id.start, id.end) }).toEqual(expected);
});

test('a record is suspicious by itself', () => {
  const text = Buffer.from('[{"a":"\\u0000"},{"a":1}]');
  expect(recordScanner(text, [], [])(1)).toMatchObject({ end: 15, isSuspicious: true });
  expect(recordScanner(text, [], [])(16)).toMatchObject({ end: 23, isSuspicious: false });
});

describe('a page that is larger than others', () => {
  /** Of each portion the records that were read in it, as far as the scanner tells. */
  const portions = (text: string) => {
    let count = 0;
    for (const _ of scanJson(Buffer.from(text), ['data'], [])) count += 1;
    return count;
  };
  const page = (records: readonly string[]) => `{"data":[${records.join(',')}]}`;

  test('is read in portions, by records and by bytes', () => {
    expect(portions(page(Array.from({ length: ITEMS_A_TURN - 1 }, () => '1')))).toBe(0);
    expect(portions(page(Array.from({ length: 10 * ITEMS_A_TURN }, () => '1')))).toBe(10);
    const tenth = `"${'x'.repeat(BYTES_A_TURN / 10)}"`;
    expect(portions(page(Array.from({ length: 50 }, () => tenth)))).toBeGreaterThanOrEqual(5);
    expect(portions(`{"a":{"data":[${Array.from({ length: 3 * ITEMS_A_TURN }, () => '1').join(',')}]},"data":[]}`)).toBe(0);
  });

  test('is refused while it is read, at its first record too many', () => {
    const most = Array.from({ length: MOST_RECORDS }, () => '1');
    expect(atOnce(scanJson(Buffer.from(page(most)), ['data'], []))!.array!.records).toHaveLength(MOST_RECORDS);
    // What follows is no JSON, and is not looked at any more.
    const more = Buffer.from(`{"data":[${most.join(',')},${'1,'.repeat(300)}?`);
    expect(() => atOnce(scanJson(more, ['data'], []))).toThrow(expect.objectContaining({ code: 'response_too_large' }));
  });

  test('says what its records take as it goes, and ends where that is too much', () => {
    const told: number[] = [];
    const text = Buffer.from(page(Array.from({ length: 2_000 }, () => '{}')));
    const scan = scanJson(text, ['data'], [], {
      fitMade: (heap) => {
        told.push(heap);
        if (heap > 1_000_000) throw new Error('enough');
      },
    });
    expect(() => atOnce(scan)).toThrow('enough');
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(told.length).toBeGreaterThan(1);
    expect(told.at(-1)! / told[0]!).toBeLessThan(8);
  });
});
