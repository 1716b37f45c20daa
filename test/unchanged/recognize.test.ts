import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Endpoint } from '../../src/catalogue/endpoint.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { bytesOf } from '../../src/core/text-slice.js';
import { atOnce, BYTES_A_TURN } from '../../src/core/turns.js';
import { KeyHashes } from '../../src/pagers/key-hashes.js';
import { readPage } from '../../src/pagers/read-page.js';
import { pagerFor } from '../../src/pagers/registry.js';
import { Baseline } from '../../src/unchanged/baseline.js';
import { hashRows, ROW_WORDS } from '../../src/unchanged/row-hashes.js';
import { SkipUnchanged } from '../../src/unchanged/skip-unchanged.js';
import { turnsDuring } from '../support/portions.js';

const entry = { method: 'POST', path: '/{company_id}/list', pager: { style: 'skip-take', size: 5 } };
const [LIST] = validateCatalogue({ list: entry }, 'test').endpoints as [Endpoint];
const [TOKENS] = validateCatalogue({ list: { ...entry, pager: { style: 'continuation', size: 5 } } }, 'test').endpoints as [
  Endpoint,
];
const [WRAPPED] = validateCatalogue({ list: { ...entry, envelope: 'value.page' } }, 'test').endpoints as [Endpoint];
const [BARE] = validateCatalogue({ list: { ...entry, envelope: 'none' } }, 'test').endpoints as [Endpoint];

const totals = (records: readonly string[], total = 50) =>
  `{"totalRecords":${total},"totalDisplayRecords":${records.length},"data":[${records.join(',')}]}`;

const formatOf = (endpoint: Endpoint) => ({ resource: 'list', id: endpoint.id, pager: pagerFor(endpoint), ignoreTotals: false });
const responseOf = (bytes: Buffer) => ({ bytes, headers: {}, url: 'http://service/list' });
const inFull = (text: string | Buffer, endpoint: Endpoint) =>
  atOnce(readPage(responseOf(Buffer.from(text)), formatOf(endpoint), 'id'));
const rowsOf = (text: string | Buffer, endpoint: Endpoint) => {
  const { bytes, array } = inFull(text, endpoint);
  return atOnce(hashRows(bytes, array.records));
};

/** A pass that goes by a walk whose only page this was. */
function after(text: string, endpoint = LIST) {
  const { keys } = inFull(text, endpoint);
  const rowHashes = rowsOf(text, endpoint);
  const page = { snapshotId: 7n, keysId: 8n, keys, chunks: rowHashes.slice(ROW_WORDS * keys.length) };
  const baseline = new Baseline([page], undefined, async function* () {
    yield rowHashes;
  });
  const comparison = new SkipUnchanged(baseline, endpoint, 'ask');
  return { read: (now: Buffer) => comparison.read('request', responseOf(now), formatOf(endpoint), 'id') };
}

const A = '{"id":"a","n":1}';
const B = '{"id":"b","n":1}';
const C = '{"id":"c","name":"Zoë ]}, \\" [{","n":1}';

describe('a page that was received before', () => {
  test.each([
    ['totals around it', LIST, totals([A, B, C]), totals([A, B, C], 60), { total: 60 }],
    ['its records first', LIST, `{"data":[${A}],"totalRecords":1}`, `{"data":[${A}],"totalRecords":2}`, { total: 2 }],
    [
      'another token behind it',
      TOKENS,
      `{"data":[${A},${B}],"hasNextPage":true,"nextPageToken":"t1"}`,
      `{"data":[${A},${B}],"hasNextPage":true,"nextPageToken":"t2 ëé"}`,
      { nextToken: 't2 ëé' },
    ],
    [
      'an envelope around it',
      WRAPPED,
      `{"other":[1,{"data":[2]}],"value":{"x":"]","page":{"totalRecords":1,"data":[${A}]}}}`,
      `{"other":[1,{"data":[2]}],"value":{"x":"]","page":{"totalRecords":9,"data":[${A}]}}}`,
      { total: 9 },
    ],
    ['nothing around it', BARE, `[${A}, ${B}]`, ` [${A}, ${B}]\n`, {}],
    ['a byte order mark before it', LIST, totals([A]), `\uFEFF${totals([A])}`, { total: 50 }],
    ['no record in it', LIST, totals([]), totals([], 0), { total: 0 }],
  ])('is known again: %s', async (_, endpoint, before, now, around) => {
    const known = after(before, endpoint);
    const page = await known.read(Buffer.from(now));
    expect(page).toMatchObject({ kind: 'unchanged', ledger: { kind: 'same', snapshotId: 7n }, ...around });
    expect(page.keys.words).toEqual(inFull(now, endpoint).keys.words);
  });

  test('is an error where its envelope is', async () => {
    const known = after(totals([A, B]));
    const wrong = totals([A, B]).replace('"totalDisplayRecords":2', '"totalDisplayRecords":3');
    await expect(known.read(Buffer.from(wrong))).rejects.toThrow(expect.objectContaining({ code: 'contradicting_envelope' }));
    const cut = totals([A, B]).slice(0, -1);
    await expect(known.read(Buffer.from(cut))).rejects.toThrow(expect.objectContaining({ code: 'malformed_response' }));
    const twice = totals([A, B]).replace(/}$/, ',"data":null}');
    await expect(known.read(Buffer.from(twice))).rejects.toThrow(expect.objectContaining({ code: 'malformed_envelope' }));
  });
});

describe('a page that holds the same records', () => {
  const three = after(totals([A, B, C]));

  test('brings those with another text', async () => {
    const changed = '{"id":"b","n":2,"more":"ë"}';
    const page = await three.read(Buffer.from(totals([A, changed, C])));
    const rowHashes = rowsOf(totals([A, changed, C]), LIST);
    expect(page).toMatchObject({
      kind: 'partial',
      records: [{ id: 'b', position: 1 }],
      total: 50,
      ledger: { keysId: 8n, rowHashes },
    });
    expect(page.records.map((each) => bytesOf(each).toString())).toEqual([changed]);
  });

  test.each([[0], [15], [16], [39], [3, 17, 36]])('brings those of a long page at %j', async (...positions) => {
    const texts = Array.from({ length: 40 }, (_, n) => `{"id":"r${n}","n":1}`);
    const long = after(totals(texts));
    const now = Buffer.from(totals(texts.map((text, n) => (positions.includes(n) ? text.replace('"n":1', '"n":22') : text))));
    const page = await long.read(now);
    expect(page.ledger).toEqual({ kind: 'same-keys', keysId: 8n, rowHashes: rowsOf(now, LIST) });
    expect(page.records.map(({ position }) => position)).toEqual(positions);
  });

  test('is an error where something else than a comma stands between its runs', async () => {
    const texts = Array.from({ length: 40 }, (_, n) => `{"id":"r${n}","n":1}`);
    const wrong = totals(texts).replace(',{"id":"r16"', ';{"id":"r16"');
    await expect(after(totals(texts)).read(Buffer.from(wrong))).rejects.toThrow(
      expect.objectContaining({ code: 'malformed_response' }),
    );
  });

  test.each([
    ['none', BARE, (texts: readonly string[]) => `[${texts.join(',')}]`],
    ['totals', LIST, totals],
    ['one around another', WRAPPED, (texts: readonly string[]) => `{"value":{"page":${totals(texts)}}}`],
  ])('is refused for the depth for which reading all of it is (envelope: %s)', async (_, endpoint, pageOf) => {
    const before = after(pageOf([A, B]), endpoint);
    const isRefused = (read: Promise<unknown>) =>
      read.then(
        () => false,
        () => true,
      );
    const refused = new Set<boolean>();
    for (let depth = 994; depth <= 1_000; depth += 1) {
      const now = Buffer.from(pageOf([A, `{"id":"b","n":${'['.repeat(depth)}${']'.repeat(depth)}}`]));
      const known = await isRefused(before.read(now));
      expect(known).toBe(await isRefused((async () => inFull(now, endpoint))()));
      refused.add(known);
    }
    expect(refused.size).toBe(2);
  });

  test.each([
    ['one more', [A, B, C, '{"id":"d","n":1}']],
    ['one twice', [A, B, C, C]],
    ['one less', [A, B]],
    ['none of them', []],
  ])('is read whole where it holds %s', async (_, texts) => {
    // Nothing around it says how many there are.
    const bare = after(`[${[A, B, C].join(',')}]`, BARE);
    const response = Buffer.from(`[${texts.join(',')}]`);
    const page = await bare.read(response);
    expect(page.ledger).toMatchObject({ kind: 'new', ids: inFull(response, BARE).ids });
    expect(page.count).toBe(texts.length);
  });

  test('is read whole where a page without records has got some', async () => {
    const empty = after(totals([]));
    expect((await empty.read(Buffer.from(totals([A])))).records).toMatchObject([{ id: 'a' }]);
  });

  test('is read whole where another record is in the place of one', async () => {
    const other = B.replace('"b"', '"d"');
    const page = await three.read(Buffer.from(totals([A, other, C])));
    expect(page).toMatchObject({ kind: 'partial', ledger: { ids: ['a', 'd', 'c'] }, records: [{ id: 'd', position: 1 }] });
    expect(page.keys.words).toEqual(KeyHashes.of(['a', 'd', 'c']).words);
  });

  test.each([
    ['is no object', 'null', 'not_an_object'],
    ['has a NUL in it', '{"id":"b","n":"\\u0000"}', 'nul'],
    ['has lost its id', '{"n":2}', 'no_id'],
  ])('is read whole where one of them %s', async (_, text, reason) => {
    const page = await three.read(Buffer.from(totals([A, text, C])));
    expect(page).toMatchObject({ records: [], rejected: [{ reason, position: 1 }] });
    expect(page.rejected.map((each) => bytesOf(each).toString())).toEqual([text]);
    expect(page.count).toBe(3);
  });

  test.each([
    ['a record has become no JSON', totals([A, '{"id":"b","n":tru}', C])],
    ['a comma is missing', totals([A, B, C]).replace('},{', '} {')],
    ['something else stands in the place of a comma', totals([A, B.replace('1', '2'), C]).replace('},{', '};{')],
    ['a record is followed by something else', totals([A, B, C]).replace('"n":1},{"id":"c"', '"n":1}x,{"id":"c"')],
    ['it ends early', totals([A, B, C]).slice(0, -12)],
  ])('is an error where %s', async (_, text) => {
    await expect(three.read(Buffer.from(text))).rejects.toThrow(expect.objectContaining({ code: 'malformed_response' }));
  });

  test.each([
    ['a record', totals([A, '{"id":"b","n":"?"}', C])],
    ['what stands around them', totals([A, B, C]).replace(/}$/, ',"more":"?"}')],
  ])('is an error where %s is not UTF-8', async (_, text) => {
    const bytes = Buffer.from(text);
    bytes[bytes.indexOf('?')] = 0xff;
    await expect(three.read(bytes)).rejects.toThrow(expect.objectContaining({ code: 'malformed_response' }));
  });
});

test.each([
  ['short', { ids: 12, maxLength: 6, size: 'small', changes: 2, numRuns: 2_000 }],
  ['long', { ids: 60, maxLength: 36, size: 'max', changes: 3, numRuns: 150 }],
] as const)('says of every %s page what reading all of it says', async (_, { ids, maxLength, size, changes, numRuns }) => {
  const record = fc.record({ id: fc.nat(ids).map(String), n: fc.nat(2), text: fc.constantFrom('', 'é', ']', '},{', '\\"') });
  const textOf = ({ id, n, text }: { id: string; n: number; text: string }, pad: string) =>
    `{"id":"${id}",${pad}"n":${n},"text":"${text}"}`;
  const page = fc.tuple(fc.array(record, { maxLength, size }), fc.constantFrom('', ' ', '\n'), fc.constantFrom('', ' '));
  let spared = 0;
  await fc.assert(
    fc.asyncProperty(
      page,
      page,
      fc.array(fc.nat(maxLength - 1), { maxLength: changes }),
      fc.boolean(),
      async ([before, pad], [other, gap], touched, isOther) => {
        const known = after(totals(before.map((each) => textOf(each, pad))));
        const now = isOther ? other : before.map((each, n) => (touched.includes(n) ? { ...each, n: each.n + 1 } : each));
        const response = Buffer.from(totals(now.map((each) => `${gap}${textOf(each, pad)}${gap}`)));
        const whole = inFull(response, LIST);
        const read = await known.read(response);
        expect(read.keys.words).toEqual(whole.keys.words);
        if (read.ledger.kind !== 'same') expect(read.ledger.rowHashes).toEqual(rowsOf(response, LIST));
        expect(read.total).toBe(whole.total);
        // What is left out was there before, with this very text.
        const left = whole.records.filter(({ position }) => !read.records.some((each) => each.position === position));
        for (const each of left) expect(before.map((one) => textOf(one, pad))).toContain(bytesOf(each).toString());
        spared += left.length;
      },
    ),
    { numRuns, seed: 4 },
  );
  expect(spared).toBeGreaterThan(1_000);
});

test('a page that is larger than others is recognized in portions', async () => {
  const records = Array.from({ length: 128 }, (_, n) => `{"id":"${n}","name":"${'x'.repeat(BYTES_A_TURN / 16)}"}`);
  const before = totals(records, 128);
  const read = async (now: string) => {
    const reading = after(before).read(Buffer.from(now));
    return [await turnsDuring(reading), (await reading).kind] as const;
  };
  const [turns, kind] = await read(before);
  expect([turns >= 7, kind]).toEqual([true, 'unchanged']);
  const [turnsOfChanges, kindOfChanges] = await read(before.replaceAll('"name":"x', '"name":"y'));
  expect([turnsOfChanges >= 7, kindOfChanges]).toEqual([true, 'partial']);
});
