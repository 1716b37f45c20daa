import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { atOnce } from '../../src/core/turns.js';
import { idIn, readAnswer } from '../../src/verify/read-answer.js';

const read = (text: string, ...dataPath: string[]) => atOnce(readAnswer(Buffer.from(text), { resource: 'things', dataPath }));

/** What JSON.parse makes of a text; undefined for what is no JSON. */
function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Which spelling of "no records" a parsed answer has. */
function noRecordsIn(parsed: unknown): string | undefined {
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined;
  const { data } = parsed as { data?: unknown };
  if (!Object.hasOwn(parsed, 'data')) return 'missing';
  if (data === null) return 'null';
  return JSON.stringify(data) === '{}' ? 'empty' : undefined;
}

describe('the second reader', () => {
  test.each([
    ['{"data":[{"a":1.00},{"a":12345678901234567890}],"totalRecords":2}', ['data'], ['{"a":1.00}', '{"a":12345678901234567890}']],
    ['[1e400, -0.0 , "x]\\"," ,{"a":[{}]},[],null]', [], ['1e400', '-0.0', '"x]\\","', '{"a":[{}]}', '[]', 'null']],
    [' { "data" : [ ] , "value":{"items":[ {"a": "}"} ]}} ', ['value', 'items'], ['{"a": "}"}']],
    ['{"data":[1],"d\\u0061ta":[2]}', ['data'], ['2']],
    ['{"data":[{"a":"\\\\"},{"b":"\\\\\\""}]}', ['data'], ['{"a":"\\\\"}', '{"b":"\\\\\\""}']],
    ['\u{feff}{"data":[{"é":"\u{1f600}"}]}', ['data'], ['{"é":"\u{1f600}"}']],
    ['[]', [], []],
  ])('cuts the records out of %s', (text, path, texts) => {
    expect(read(text, ...path).texts).toEqual(texts);
  });

  test('gives what stands around them, without them', () => {
    expect(read('{"totalRecords":2,"value":{"items":[{"a":1}],"next":"x"}}', 'value', 'items').rest).toEqual({
      totalRecords: 2,
      value: { items: [], next: 'x' },
    });
    expect(read('[{"a":1}]').rest).toEqual([]);
  });

  test.each([
    ['<html>', ['data'], 'malformed_response'],
    ['{"data":[1]', ['data'], 'malformed_response'],
    ['', [], 'malformed_response'],
    ['{"data":{"a":1}}', ['data'], 'malformed_envelope'],
    ['{"data":""}', ['data'], 'malformed_envelope'],
    ['{"value":[]}', ['value', 'items'], 'malformed_envelope'],
    ['null', ['data'], 'malformed_envelope'],
    ['{}', [], 'malformed_envelope'],
    ['"[]"', [], 'malformed_envelope'],
  ])('refuses %s', (text, path, code) => {
    expect(() => read(text, ...path)).toThrow(expect.objectContaining({ code }));
  });

  test.each([
    ['{"data":null}', ['data'], 'null'],
    ['{"data": { \n} }', ['data'], 'empty'],
    ['{"data":[1],"data":null}', ['data'], 'null'],
    ['{}', ['data'], 'missing'],
    ['{"value":null}', ['value', 'items'], 'missing'],
    ['{"value":{"items":null}}', ['value', 'items'], 'null'],
    [' null ', [], 'null'],
  ])('takes %s for no records', (text, path, noRecords) => {
    expect(read(text, ...path)).toMatchObject({ texts: [], noRecords });
  });

  test('takes for JSON what JSON.parse does, and finds in it what JSON.parse finds', () => {
    const answer = fc.oneof(
      fc.record({ total: fc.nat(), data: fc.array(fc.jsonValue()), next: fc.jsonValue() }),
      fc.record({ data: fc.jsonValue() }),
    );
    const spoilt = fc.constantFrom('', ',', '"', '[', ']', '{', '}', ':', '\\', ' ', '\u00a0', '1', 'null', '"data":[1],');
    fc.assert(
      fc.property(answer, fc.nat(2), fc.nat(200), fc.nat(2), spoilt, (value, indent, at, length, inserted) => {
        const whole = JSON.stringify(value, null, indent);
        const text = whole.slice(0, at) + inserted + whole.slice(at + length);
        const parsed = parsedOf(text) as { data?: unknown } | undefined;
        if (parsed === undefined)
          expect(() => read(text, 'data')).toThrow(expect.objectContaining({ code: 'malformed_response' }));
        else if (noRecordsIn(parsed))
          expect(read(text, 'data')).toEqual({ rest: parsed, texts: [], noRecords: noRecordsIn(parsed) });
        else if (!Array.isArray(parsed?.data) || Array.isArray(parsed))
          expect(() => read(text, 'data')).toThrow(expect.objectContaining({ code: 'malformed_envelope' }));
        else {
          const { rest, texts } = read(text, 'data');
          expect(texts.map((each) => JSON.parse(each) as unknown)).toEqual(parsed.data);
          expect(rest).toEqual({ ...parsed, data: [] });
        }
      }),
      { numRuns: 5_000 },
    );
  });

  test('refuses more around the records than it parses at once', () => {
    const around = 'x'.repeat(4 * 1024 * 1024);
    for (const text of [`{"data":[1],"x":"${around}"}`, `{"x":"${around}"}`])
      expect(() => read(text, 'data')).toThrow(expect.objectContaining({ code: 'response_too_large' }));
    expect(read(`{"data":["${around}"]}`, 'data').texts).toHaveLength(1);
  });

  test('refuses what is no UTF-8', () => {
    const bytes = Buffer.from('["\u{e9}"]', 'latin1');
    expect(() => atOnce(readAnswer(bytes, { resource: 'things', dataPath: [] }))).toThrow(
      expect.objectContaining({ code: 'malformed_response' }),
    );
  });

  test.each([
    ['{"id":12345678901234567890}', '12345678901234567890'],
    ['{"id":"caf\\u00e9 \\"1\\""}', 'café "1"'],
    ['{"uid":null,"id":1.50}', '1.50'],
    ['{"id":true}', undefined],
    ['{"id":""}', undefined],
    ['{"sub":{"id":1}}', undefined],
    ['[1]', undefined],
  ])('reads the id of %s as it was written', (text, id) => {
    expect(idIn(text, ['uid', 'id'])).toBe(id);
  });
});
