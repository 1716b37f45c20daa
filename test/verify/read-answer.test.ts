import { describe, expect, test } from 'vitest';
import { atOnce } from '../../src/core/turns.js';
import { idIn, readAnswer } from '../../src/verify/read-answer.js';

const read = (text: string, ...dataPath: string[]) => atOnce(readAnswer(Buffer.from(text), { resource: 'things', dataPath }));

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
    ['{"items":[]}', ['data'], 'malformed_envelope'],
    ['"[]"', [], 'malformed_envelope'],
  ])('refuses %s', (text, path, code) => {
    expect(() => read(text, ...path)).toThrow(expect.objectContaining({ code }));
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
