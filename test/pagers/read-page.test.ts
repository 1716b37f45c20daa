import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Endpoint } from '../../src/catalogue/endpoint.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { isMusterError } from '../../src/core/errors.js';
import { bytesOf, type TextSlice } from '../../src/core/text-slice.js';
import { atOnce, ITEMS_A_TURN } from '../../src/core/turns.js';
import { valueAt } from '../../src/pagers/fields.js';
import { idValues, type PageFormat, readPage as readResponse } from '../../src/pagers/read-page.js';
import { pagerFor } from '../../src/pagers/registry.js';
import { idIn } from '../../src/verify/read-answer.js';

const formatOf = (of: Endpoint): PageFormat => ({ resource: of.resource, id: of.id, pager: pagerFor(of), ignoreTotals: false });
const readBytes = (bytes: Buffer, of: Endpoint, idField?: string, headers: Record<string, string> = {}) =>
  atOnce(readResponse({ bytes, headers, url: 'https://api.example.com/v1/lists/absences?page=1' }, formatOf(of), idField));
const readPage = (text: string, of: Endpoint, idField?: string) => readBytes(Buffer.from(text), of, idField);

function endpoint(change: object = {}): Endpoint {
  const entry = { method: 'POST', path: '/{company_id}/list', pager: { style: 'skip-take', size: 5 }, ...change };
  return validateCatalogue({ absences: entry }, 'test').endpoints[0] as Endpoint;
}

const RESULT = endpoint();
const BARE = endpoint({ envelope: 'none' });
const TOKENS = endpoint({ pager: { style: 'continuation', size: 5 } });
const REJECTED_KEY = /^#[0-9a-f]{32}$/;
const textOf = (record: TextSlice) => bytesOf(record).toString();
const CANARY = 'c4n4ry';

function result(data: string, count: number, total = count): string {
  return `{"totalRecords":${total},"totalDisplayRecords":${count},"data":${data}}`;
}

/** Reads a list's first page, which must tell more than others. */
function readFirst(text: string, of: Endpoint, headers?: Record<string, string>) {
  const page = readBytes(Buffer.from(text), of, undefined, headers);
  const pager = pagerFor(of);
  pager.next(pager.first(), page, { repeats: 0, isFirstPage: false, endsAsBefore: false, hasToken: () => false });
  return page;
}

function codeOf(text: string, of: Endpoint): string {
  try {
    readFirst(text, of);
  } catch (error) {
    if (!isMusterError(error)) throw error;
    expect(`${error.message}${JSON.stringify(error.details)}${String(error.cause)}`).not.toContain(CANARY);
    return error.code;
  }
  return 'no error';
}

describe('the records of a page', () => {
  test('are the very text that was received', () => {
    const records = [
      '{ "uid" : "a", "salary": 1.10, "big":12345678901234567890123, "tiny": 1E-7 }',
      '{"uid":"b","text":"]}\\",{[\\\\","é":"\\u00e9","nested":[{"uid":"no"},[[]],{}]}',
      '{\n\t"nested": {"uid": 1, "data": []},\r\n "uid": "c"}',
    ];
    const page = readPage(`\uFEFF \n${result(` [ ${records.join(' ,\n')} ] `, 3, 10)} `, RESULT);
    expect(page.records.map(textOf)).toEqual(records);
    expect(page).toMatchObject({ ids: ['a', 'b', 'c'], total: 10, idField: 'uid', rejected: [] });
    expect(page.records.map(({ position }) => position)).toEqual([0, 1, 2]);
    expect(page.nextToken).toBeUndefined();
  });

  test('are split rightly, whatever JSON they are', () => {
    const space = fc.constantFrom('', ' ', '\n', '\t', '\r\n ');
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.json(), space, space), { maxLength: 8 }), fc.json(), (parts, other) => {
        const texts = parts.map(([json]) => json.trim());
        const data = `[${parts.map(([json, before, after]) => `${before}${json}${after}`).join(',')}]`;
        const text = `{"other":${other},"data":{"data":null},"d\\u0061ta":${data},"totalRecords":${texts.length},"data2":[1]}`;
        const page = readPage(text, RESULT);
        const received = [...page.records, ...page.rejected].toSorted((a, b) => a.position - b.position);
        expect(received.map(textOf)).toEqual(texts);
        const keys = received.map((record) => ('id' in record ? record.id : expect.stringMatching(REJECTED_KEY)));
        expect(page.ids).toEqual(keys);
      }),
      { numRuns: 500, seed: 1 },
    );
  });

  test('stand where the envelope stands', () => {
    const nested = endpoint({ envelope: 'answer.value' });
    const text = `{"value":{"data":[{"id":9}]},"data":[],"answer":{"data":[],"value":${result('[{"id":1}]', 1)}}}`;
    expect(readPage(text, nested).ids).toEqual(['1']);
    expect(readPage('[{"id":1},{"id":2}]', BARE).ids).toEqual(['1', '2']);
    expect(readPage('[]', BARE)).toMatchObject({ records: [], rejected: [], ids: [] });
  });
});

const byIds = (id: readonly (string | readonly string[])[]) => endpoint({ envelope: 'none', id });
const like = (text: string | RegExp) => (typeof text === 'string' ? text : expect.stringMatching(text));

describe('the id of a record', () => {
  test.each([
    ['{"id":12345678901234567890}', '12345678901234567890'],
    ['{"id":1.0}', '1.0'],
    ['{"id": -7 }', '-7'],
    ['{"i\\u0064":7}', '7'],
    ['{"id":1,"id":2}', '2'],
    ['{"x":{"id":3},"id":"\\u00e9\\n\\"\\ud83d\\ude00"}', 'é\n"😀'],
    ['{"id":"#abc"}', '#abc'],
  ])('of %s is %j', (text, id) => {
    const source = Buffer.from(`[${text}]`);
    expect(readBytes(source, BARE).records).toEqual([{ id, source, start: 1, end: source.length - 1, position: 0 }]);
  });

  test.each([
    ['{"attributes":{"id":{"value":12345678901234567890}}}', '12345678901234567890'],
    ['{"attributes":{"id":{"value":1,"value":"\\u00e9"}}}', 'é'],
    ['{"attributes":{"id.value":7},"id":1}', '7'],
    ['{"attributes.id":{"value":7}}', '7'],
    ['{"attributes":{"id":{"value":7}},"attributes.id.value":"whole"}', 'whole'],
    ['{"attributes":{"id":{"value":7}},"attributes":{"id":{"value":8}}}', '8'],
    ['{"attributes":{"id":{"value":7},"id.value":null}}', undefined],
    ['{"attributes":{"id":{"value":""}}}', undefined],
    ['{"attributes":{"id":[{"value":7}]}}', undefined],
    ['{"attributes":{"id":{"value":{}}}}', undefined],
    ['{"attributes":[{"id":{"value":7}}]}', undefined],
    ['{"attributes":"id"}', undefined],
    ['{"value":7}', undefined],
  ])('at a dot path of %s is %j', (text, id) => {
    const source = Buffer.from(`[${text}]`);
    const { records, rejected } = readBytes(source, byIds(['attributes.id.value']));
    expect(records.map((record) => record.id)).toEqual(id === undefined ? [] : [id]);
    expect(rejected).toHaveLength(id === undefined ? 1 : 0);
    expect(idIn(text, ['attributes.id.value'])).toBe(id);
  });

  test.each([
    ['{"userId":7,"start":{"date":"2026-01-31"}}', '7/2026-01-31'],
    ['{"start.date":1.50,"userId":"u"}', 'u/1.50'],
    ['{"userId":"a/b","start":{"date":"c"}}', 'a\\/b/c'],
    ['{"userId":"a","start":{"date":"b/c"}}', 'a/b\\/c'],
    ['{"userId":"a\\\\","start":{"date":"/b"}}', 'a\\\\/\\/b'],
    ['{"userId":"\\u002f","start":{"date":"é"}}', '\\//é'],
    ['{"userId":7,"start":{"date":null}}', undefined],
    ['{"userId":7,"start":{}}', undefined],
    ['{"userId":7}', undefined],
    ['{"userId":"","start":{"date":1}}', undefined],
    ['{"userId":true,"start":{"date":1}}', undefined],
    ['{"userId":[7],"start":{"date":1}}', undefined],
  ])('of several members of %s is %j', (text, id) => {
    const several = byIds([['userId', 'start.date']]);
    const { records, rejected } = readBytes(Buffer.from(`[${text}]`), several);
    expect(records.map((record) => record.id)).toEqual(id === undefined ? [] : [id]);
    expect(rejected.map(({ reason }) => reason)).toEqual(id === undefined ? ['no_id'] : []);
    expect(idIn(text, several.id)).toBe(id);
  });

  test('of several members is a candidate like any other', () => {
    const page = (text: string) => readBytes(Buffer.from(text), byIds([['a', 'b'], 'c.d', 'e']));
    expect(page('[{"a":1,"c":{"d":4},"e":5},{"a":1,"b":2}]')).toMatchObject({
      idField: '["a","b"]',
      ids: [/^#/, '1/2'].map(like),
    });
    expect(page('[{"a":1,"c":{"d":4},"e":5},{"a":1}]')).toMatchObject({ idField: 'c.d', ids: ['4', /^#/].map(like) });
    expect(page('[{"a":1,"c":{"d":null},"e":5},{"a":1}]')).toMatchObject({ idField: 'e', ids: ['5', /^#/].map(like) });
  });

  test('at a dot path is found by walks and second readings alike, wherever names hold dots themselves', () => {
    const names = ['a', 'b', 'c', 'a.b', 'b.c', 'a.b.c', 'x'];
    const { record } = fc.letrec<{ value: unknown; record: unknown }>((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, fc.constantFrom('t', 'é/\\"', '', 7, null, true, [{ b: 1 }]), tie('record')),
      record: fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 5, noNullPrototype: true }),
    }));
    const candidates = [['a.b.c', 'a'], 'a.b.c', 'b.c'] as const;
    fc.assert(
      fc.property(record, fc.nat(2), fc.constantFrom(0, 1, 2), (value, indent, n) => {
        const isId = (each: unknown) => typeof each === 'number' || (typeof each === 'string' && each !== '');
        const parts = [candidates[n]].flat().map((path) => valueAt(value, path));
        const escaped = parts.map((part) => (n === 0 ? String(part).replaceAll(/[\\/]/g, '\\$&') : String(part)));
        const expected = parts.every(isId) ? [escaped.join('/')] : [];
        const text = JSON.stringify(value, null, indent);
        const page = readBytes(Buffer.from(`[${text}]`), byIds([candidates[n]]));
        expect(page.records.map(({ id }) => id)).toEqual(expected);
        expect(idIn(text, byIds([candidates[n]]).id)).toBe(expected[0]);
        const values = idValues(
          { source: Buffer.from(text), start: 0, end: Buffer.byteLength(text) },
          page.idField ? [page.idField] : [],
        );
        expect([...values.values()].filter(Boolean)).toEqual(expected);
      }),
    );
  });

  test('at a dot path that no record has is looked for in portions', () => {
    const bytes = Buffer.from(JSON.stringify(Array.from({ length: 8 * ITEMS_A_TURN }, () => ({ attributes: { name: 'x' } }))));
    const portions = (id: readonly string[]) => {
      const reading = readResponse({ bytes, headers: {}, url: 'https://api.example.com/x' }, formatOf(byIds(id)));
      let count = 0;
      while (reading.next().done !== true) count += 1;
      return count;
    };
    expect(portions(['attributes.id', 'attributes.key', 'uid']) - portions(['uid'])).toBe(16);
  });

  test('is the first candidate that any record carries', () => {
    expect(readPage('[{"id":1},{"id":2,"uid":"b"}]', BARE)).toMatchObject({
      idField: 'uid',
      ids: [expect.stringMatching(/^#/), 'b'],
    });
    expect(readPage('[{"uid":null,"id":1}]', BARE)).toMatchObject({ idField: 'id', ids: ['1'] });
    expect(readPage('[{"name":"x"}]', BARE)).not.toHaveProperty('idField');
  });

  test('is the fixed one where one is fixed', () => {
    expect(readPage('[{"uid":"a","id":1}]', BARE, 'id')).toMatchObject({ idField: 'id', ids: ['1'] });
    expect(readPage('[{"uid":"a"}]', BARE, 'id').rejected).toMatchObject([{ reason: 'no_id' }]);
  });
});

describe('a record that cannot be kept', () => {
  test.each([
    ['7', 'not_an_object'],
    ['null', 'not_an_object'],
    ['[{"id":1}]', 'not_an_object'],
    ['{"name":"x"}', 'no_id'],
    ['{"id":null}', 'no_id'],
    ['{"id":""}', 'no_id'],
    ['{"id":true}', 'no_id'],
    ['{"id":{}}', 'no_id'],
    [`{"id":"${'é'.repeat(1_001)}"}`, 'unusable_id'],
    [`{"id":"#${'0'.repeat(32)}"}`, 'unusable_id'],
    ['{"id":1,"x":"a\\u0000b"}', 'nul'],
    ['{"id":1,"x\\u0000":1}', 'nul'],
    ['{"id":"a\\u0000b"}', 'nul'],
    ['{"id":1,"x":"\\\\\\u0000"}', 'nul'],
    ['{"id":1,"x":"\\ud800"}', 'lone_surrogate'],
    ['{"id":1,"x":"\\uDC00\\uD800"}', 'lone_surrogate'],
    ['{"id":1,"x":"\\ud83d\\ud83d\\ude00"}', 'lone_surrogate'],
    ['{"id":1,"x":1e999999}', 'number_out_of_range'],
    ['{"id":1,"x":[1.5E-20000]}', 'number_out_of_range'],
    ['{"id":1,"y":"\\"1E99999\\\\","x":1E99999}', 'number_out_of_range'],
    [`{"id":1,"x":1${'0'.repeat(140_000)}}`, 'number_out_of_range'],
    [`{"id":1,"x":-0.${'3'.repeat(20_000)}}`, 'number_out_of_range'],
  ])('%# is rejected: %s (%s)', (text, reason) => {
    const page = readPage(`[{"id":"good"},${text},{"id":"too"}]`, BARE);
    expect(page.rejected).toMatchObject([{ position: 1, reason }]);
    expect(page.rejected.map(textOf)).toEqual([text]);
    expect(page.ids).toEqual(['good', expect.stringMatching(REJECTED_KEY), 'too']);
    expect(page.records.map(({ position }) => position)).toEqual([0, 2]);
  });

  test.each([
    '{"id":1,"x":"\\\\u0000"}',
    '{"id":1,"x":"\\\\\\\\u0000"}',
    '{"id":1,"x":"\\\\ud800"}',
    '{"id":1,"x":"\\ud83d\\ude00 😀"}',
    '{"id":1,"x":"1e999999","y":"5e12345-8"}',
    '{"id":1,"x":1e300}',
    `{"id":1,"x":"${'7'.repeat(7_000)}","y":1.${'5'.repeat(5_900)}e-9999}`,
  ])('is not mistaken for %s', (text) => {
    const page = readPage(`[${text}]`, BARE);
    expect(page.rejected).toEqual([]);
    expect(page.records.map(textOf)).toEqual([text]);
  });

  test('is known again by its text', () => {
    const [a, b, c] = readPage('[{"name":"x"},{"name":"x"},{"name":"y"}]', BARE).ids;
    expect(a).toBe(b);
    expect(a).not.toBe(c);
  });
});

describe('an envelope', () => {
  test.each([
    [0, '<html>'],
    [0, ''],
    [0, 'temporarily unavailable'],
    [8, '{"data":'],
    [10, '{"data":[ bad ]}'],
    [12, '{"data":[{} {}]}'],
    [14, '{"data":["ü",]}'],
    [14, '{"data":[{"a" 1}]}'],
    [16, '{"data":[{"a":1}'],
    [17, '{"data":[{}],"a":"no end'],
  ])('that is no JSON names the byte, here %i: %s', (byte, text) => {
    expect(() => readPage(text, RESULT)).toThrow(
      expect.objectContaining({ message: expect.stringContaining(`from byte ${byte} on`) }),
    );
  });

  test('that is not UTF-8 is malformed_response', () => {
    const latin1 = Buffer.from(result('[{"id":"M\xfcller"}]', 1), 'latin1');
    expect(() => readBytes(latin1, RESULT)).toThrow(expect.objectContaining({ code: 'malformed_response' }));
  });

  test.each<[string, string, Endpoint]>([
    ['malformed_response', `<html>${CANARY}</html>`, RESULT],
    ['malformed_response', '', RESULT],
    ['malformed_response', result(`[{"id":"${CANARY}"}`, 1).slice(0, -3), RESULT],
    ['malformed_envelope', 'null', RESULT],
    ['malformed_envelope', `"${CANARY}"`, RESULT],
    ['malformed_envelope', '[]', RESULT],
    ['malformed_envelope', '{"data":[1,2,3,4,5]}', RESULT],
    ['malformed_envelope', '{"totalRecords":null,"data":[1,2,3,4,5]}', RESULT],
    ['malformed_envelope', '{"totalRecords":-1,"data":[1,2,3,4,5]}', RESULT],
    ['malformed_envelope', '{"totalRecords":1.5,"data":[]}', RESULT],
    ['malformed_envelope', '{"data":[],"totalRecords":0}', endpoint({ envelope: 'value' })],
    ['malformed_envelope', '{"value":[]}', endpoint({ envelope: 'value' })],
    ['malformed_envelope', '{"data":[]}', BARE],
    ['contradicting_envelope', result('[{"id":1}]', 2), RESULT],
    ['contradicting_envelope', result('[]', 1, 5), RESULT],
    ['contradicting_envelope', result('[{"id":1},{"id":2}]', 2, 1), RESULT],
    ['malformed_envelope', '{"nextPageToken":null,"data":[]}', TOKENS],
    ['contradicting_envelope', '{"hasNextPage":true,"data":[]}', TOKENS],
    ['malformed_envelope', '{"hasNextPage":false,"data":[]}', TOKENS],
    ['malformed_envelope', '{}', RESULT],
    ['malformed_envelope', '{"totalRecords":"-1","data":[1,2,3,4,5]}', RESULT],
    ['malformed_envelope', '{"totalRecords":"7 of 9","data":[]}', RESULT],
    ['malformed_envelope', '{"totalRecords":[7],"data":[]}', RESULT],
    ['malformed_envelope', '{"totalRecords":true,"data":[]}', RESULT],
    ['malformed_envelope', '{"totalRecords":0,"totalDisplayRecords":{},"data":[]}', RESULT],
    ['malformed_envelope', '{"totalRecords":3,"data":null}', RESULT],
    ['malformed_envelope', '{"totalRecords":0,"data":{"7":{"id":7}}}', RESULT],
    ['malformed_envelope', '{"totalRecords":0,"data":""}', RESULT],
    ['malformed_envelope', '{"totalRecords":0,"data":null,"items":[{"id":1}]}', RESULT],
    ['malformed_envelope', '{"totalRecords":0,"data":false}', RESULT],
    ['malformed_envelope', '{}', BARE],
    ['malformed_envelope', '{"hasNextPage":2,"nextPageToken":null,"data":[]}', TOKENS],
    ['malformed_envelope', '{"hasNextPage":{},"nextPageToken":null,"data":[]}', TOKENS],
    ['malformed_envelope', '{"hasNextPage":true,"nextPageToken":true,"data":[]}', TOKENS],
    ['malformed_envelope', `{"hasNextPage":true,"nextPageToken":["${CANARY}"],"data":[]}`, TOKENS],
    ['malformed_envelope', `{"hasNextPage":true,"nextPageToken":{"page":"${CANARY}"},"data":[]}`, TOKENS],
    ['malformed_envelope', `{"hasNextPage":true,"nextPageToken":{"token":"${CANARY}","cursor":"b"},"data":[]}`, TOKENS],
    ['malformed_envelope', '{"hasNextPage":true,"nextPageToken":"t","data":null}', TOKENS],
    ['malformed_envelope', `{"hasNextPage":true,"nextPageToken":"${CANARY}\\u0000","data":[]}`, TOKENS],
    ['contradicting_envelope', '{"hasNextPage":true,"nextPageToken":"","data":[]}', TOKENS],
  ])('that is wrong is an error, never the end: %s %s', (code, text, of) => {
    expect(codeOf(text, of)).toBe(code);
  });

  test.each([
    [true, '"t1"', 't1'],
    [true, 'null', undefined],
    [false, '"t1"', undefined],
    [false, 'null', undefined],
  ])('with hasNextPage %s and nextPageToken %s goes on with %s', (hasNextPage, token, next) => {
    expect(readPage(`{"data":[],"hasNextPage":${hasNextPage},"nextPageToken":${token}}`, TOKENS).nextToken).toBe(next);
  });

  test('without the flag of its first page is no first page', () => {
    const list = endpoint({ pager: { style: 'continuation', size: 5 }, fields: { next: 'next', hasNext: 'more' } });
    expect(codeOf('{"data":[],"next":"t"}', list)).toBe('malformed_envelope');
    expect(codeOf('{"data":[],"next":"t","more":null}', list)).toBe('malformed_envelope');
  });

  test('may leave out totalDisplayRecords', () => {
    expect(readPage('{"totalRecords":4,"data":[{"id":1}]}', RESULT)).toMatchObject({ total: 4, ids: ['1'] });
  });
});

describe('the places that an entry names', () => {
  const cursor = (fields: object, body: string, headers: Record<string, string> = {}) => {
    const list = endpoint({ pager: { style: 'continuation', size: 5 }, fields });
    return readBytes(Buffer.from(body), list, undefined, headers);
  };

  test.each([
    [{ data: 'value.items', next: 'paging.next' }, '{"value":{"items":[]},"paging":{"next":"t"}}', 't'],
    [{ data: 'value', next: '@odata.next' }, '{"value":[],"@odata.next":"t"}', 't'],
    [{ data: 'value', next: 'a.b.c' }, '{"value":[],"a":{"b.c":"t"}}', 't'],
    [{ next: 'next' }, '{"data":[]}', undefined],
    [{ next: 'next' }, '{"data":[],"next":null}', undefined],
    [{ next: 'next' }, '{"data":[],"next":""}', undefined],
    [{ next: 'next' }, '{"data":[],"next":42}', 42],
    [{ next: 'next', hasNext: 'more' }, '{"data":[],"next":"t","more":false}', undefined],
    [{ next: 'last id' }, '{"data":[{"id":"a"},{"id":"b"}]}', 'b'],
    [{ next: 'last id' }, '{"data":[{"id":7}]}', 7],
    [{ next: 'last key.part' }, '{"data":[{"id":"a","key":{"part":"k"}}]}', 'k'],
    [{ next: 'last id' }, '{"data":[]}', undefined],
    [{ next: 'last id', hasNext: 'more' }, '{"data":[{"id":"a"}],"more":false}', undefined],
  ])('%j of %s give the token %s', (fields, body, token) => {
    expect(cursor(fields, body).nextToken).toBe(token);
  });

  test('may be response headers', () => {
    const list = endpoint({ pager: { style: 'skip-take', size: 1 }, fields: { data: 'none', total: 'header X-Total-Count' } });
    const read = (count: string) => readFirst('[{"id":1}]', list, { 'x-total-count': count });
    expect(read('12')).toMatchObject({ total: 12, ids: ['1'] });
    for (const wrong of ['', '-1', '1.5', 'many', '12, 13', '100,100', 'items 0-2/*', 'items 0-2'])
      expect(() => read(wrong)).toThrow(/the header x-total-count/);
    expect(cursor({ next: 'header X-Next-Cursor' }, '{"data":[]}', { 'x-next-cursor': 't' }).nextToken).toBe('t');
    expect(cursor({ next: 'header X-Next-Cursor' }, '{"data":[]}').nextToken).toBeUndefined();
    const more = (text: string) =>
      cursor({ next: 'last id', hasNext: 'header X-More' }, '{"data":[{"id":"a"}]}', { 'x-more': text }).nextToken;
    expect([more('true'), more('False')]).toEqual(['a', undefined]);
  });

  test.each([
    ['malformed_envelope', { next: 'next' }, '{"data":[],"next":true}'],
    ['malformed_envelope', { next: 'next' }, '{"data":[],"next":12345678901234567890}'],
    ['malformed_envelope', { next: 'next' }, '{"data":[],"next":{"page":2}}'],
    ['malformed_envelope', { next: 'next', hasNext: 'more' }, '{"data":[],"next":"t","more":"maybe"}'],
    ['malformed_envelope', { next: 'last id' }, '{"data":[{"id":false}]}'],
    ['malformed_envelope', { next: 'last id' }, '{"data":[{"id":"a\\u0000"}]}'],
    ['contradicting_envelope', { next: 'next', hasNext: 'more' }, '{"data":[],"more":true}'],
  ])('that hold no such value are %s: %j of %s', (code, fields, body) => {
    expect(() => cursor(fields, body)).toThrow(expect.objectContaining({ code }));
  });

  test('may say that there is no total', () => {
    const list = endpoint({ fields: { total: 'none' } });
    expect(readPage('{"data":[{"id":1}]}', list)).toEqual(expect.not.objectContaining({ total: expect.anything() }));
  });
});
