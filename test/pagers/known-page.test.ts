import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Endpoint } from '../../src/catalogue/endpoint.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { bytesOf } from '../../src/core/text-slice.js';
import { type KnownContent, readPage } from '../../src/pagers/envelope.js';
import { KeyHashes, TextHashes } from '../../src/pagers/hashes.js';
import { readAgainst } from '../../src/pagers/known-page.js';
import { Reference } from '../../src/walks/reference.js';

const entry = { method: 'POST', path: '/{company_id}/list', pager: { style: 'skip-take', size: 5 } };
const [LIST] = validateCatalogue({ list: entry }, 'test').endpoints as [Endpoint];
const [TOKENS] = validateCatalogue({ list: { ...entry, pager: { style: 'continuation', size: 5 } } }, 'test').endpoints as [
  Endpoint,
];
const [WRAPPED] = validateCatalogue({ list: { ...entry, envelope: 'value.page' } }, 'test').endpoints as [Endpoint];
const [BARE] = validateCatalogue({ list: { ...entry, envelope: 'none' } }, 'test').endpoints as [Endpoint];

const totals = (records: readonly string[], total = 50) =>
  `{"totalRecords":${total},"totalDisplayRecords":${records.length},"data":[${records.join(',')}]}`;

/** What a walk keeps of a page. */
function knownOf(text: string, endpoint = LIST): { reference: Reference; content: KnownContent } {
  const { keys, texts } = readPage(Buffer.from(text), endpoint, 'id');
  const content = { id: 7n, keys: new KeyHashes(keys.length), texts: new TextHashes(texts.length) };
  content.texts.arriveRuns(texts.runs.slice());
  const firstKey = Buffer.from(keys.words.slice(0, 2).buffer);
  const reference = new Reference([{ content, firstKey }], async () => {
    content.keys.arrive(keys.words);
    content.texts.arrive(texts.words);
  });
  return { reference, content };
}

const A = '{"id":"a","n":1}';
const B = '{"id":"b","n":1}';
const C = '{"id":"c","name":"Zoë ]}, \\" [{","n":1}';

describe('a page that was received before', () => {
  it.each([
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
    const { reference, content } = knownOf(before, endpoint);
    const page = await readAgainst(reference, Buffer.from(now), endpoint, 'id');
    expect(page).toMatchObject({ content, records: [], rejected: [], ...around });
    expect(page.full!()).toMatchObject({ ...around, ids: readPage(Buffer.from(now), endpoint, 'id').ids });
  });

  it('is an error where its envelope is', async () => {
    const { reference } = knownOf(totals([A, B]));
    const wrong = totals([A, B]).replace('"totalDisplayRecords":2', '"totalDisplayRecords":3');
    await expect(readAgainst(reference, Buffer.from(wrong), LIST, 'id')).rejects.toThrow(
      expect.objectContaining({ code: 'contradicting_envelope' }),
    );
    const cut = totals([A, B]).slice(0, -1);
    await expect(readAgainst(reference, Buffer.from(cut), LIST, 'id')).rejects.toThrow(
      expect.objectContaining({ code: 'malformed_response' }),
    );
    const twice = totals([A, B]).replace(/}$/, ',"data":null}');
    await expect(readAgainst(reference, Buffer.from(twice), LIST, 'id')).rejects.toThrow(
      expect.objectContaining({ code: 'malformed_envelope' }),
    );
  });
});

describe('a page that holds the same records', () => {
  const { reference, content } = knownOf(totals([A, B, C]));

  it('brings those with another text', async () => {
    const changed = '{"id":"b","n":2,"more":"ë"}';
    const page = await readAgainst(reference, Buffer.from(totals([A, changed, C])), LIST, 'id');
    expect(page).toMatchObject({ ids: content, records: [{ id: 'b', position: 1 }], total: 50 });
    expect(page.records.map((each) => bytesOf(each).toString())).toEqual([changed]);
    expect(page).not.toHaveProperty('content');
    expect(page.texts.words).toEqual(readPage(Buffer.from(totals([A, changed, C])), LIST, 'id').texts.words);
  });

  it.each([[0], [15], [16], [39], [3, 17, 36]])('brings those of a long page at %j', async (...positions) => {
    const texts = Array.from({ length: 40 }, (_, n) => `{"id":"r${n}","n":1}`);
    const long = knownOf(totals(texts));
    const now = Buffer.from(totals(texts.map((text, n) => (positions.includes(n) ? text.replace('"n":1', '"n":22') : text))));
    const page = await readAgainst(long.reference, now, LIST, 'id');
    expect(page.ids).toBe(long.content);
    expect(page.records.map(({ position }) => position)).toEqual(positions);
    expect(page.texts.words).toEqual(readPage(now, LIST, 'id').texts.words);
    const kept = new TextHashes(40);
    kept.arrive(long.content.texts.words.slice(), page.changes);
    expect(kept.words).toEqual(page.texts.words);
    // Each, and each run that one of them is in.
    expect(kept.changeCount).toBe(positions.length + new Set(positions.map((n) => Math.floor(n / 16))).size);
  });

  it('names what differs from it only as long as that is little, with what the ledger keeps of it in this way already', async () => {
    const texts = Array.from({ length: 40 }, (_, n) => `{"id":"r${n}","n":1}`);
    const now = (from: number, to: number) =>
      Buffer.from(totals(texts.map((text, n) => (n >= from && n < to ? text.replace('"n":1', '"n":22') : text))));
    const page = knownOf(totals(texts));
    const few = await readAgainst(page.reference, now(0, 9), LIST, 'id');
    expect(few.changes).toHaveLength(10 * 4);
    expect((await readAgainst(page.reference, now(0, 10), LIST, 'id')).changes).toBeUndefined();
    page.content.texts.arrive(page.content.texts.words, few.changes);
    expect((await readAgainst(page.reference, now(0, 9), LIST, 'id')).content).toBe(page.content);
    expect((await readAgainst(page.reference, now(0, 10), LIST, 'id')).changes).toBeUndefined();
  });

  it('is an error where something else than a comma stands between its runs', async () => {
    const texts = Array.from({ length: 40 }, (_, n) => `{"id":"r${n}","n":1}`);
    const wrong = totals(texts).replace(',{"id":"r16"', ';{"id":"r16"');
    await expect(readAgainst(knownOf(totals(texts)).reference, Buffer.from(wrong), LIST, 'id')).rejects.toThrow(
      expect.objectContaining({ code: 'malformed_response' }),
    );
  });

  it.each([
    ['none', BARE, (texts: readonly string[]) => `[${texts.join(',')}]`],
    ['totals', LIST, totals],
    ['one around another', WRAPPED, (texts: readonly string[]) => `{"value":{"page":${totals(texts)}}}`],
  ])('is refused for the depth for which reading all of it is (envelope: %s)', async (_, endpoint, pageOf) => {
    const { reference: before } = knownOf(pageOf([A, B]), endpoint);
    const isRefused = (read: Promise<unknown>) =>
      read.then(
        () => false,
        () => true,
      );
    const refused = new Set<boolean>();
    for (let depth = 994; depth <= 1_000; depth += 1) {
      const now = Buffer.from(pageOf([A, `{"id":"b","n":${'['.repeat(depth)}${']'.repeat(depth)}}`]));
      const known = await isRefused(readAgainst(before, now, endpoint, 'id'));
      expect(known).toBe(await isRefused((async () => readPage(now, endpoint, 'id'))()));
      refused.add(known);
    }
    expect(refused.size).toBe(2);
  });

  it.each([
    ['one more', [A, B, C, '{"id":"d","n":1}']],
    ['one twice', [A, B, C, C]],
    ['one less', [A, B]],
    ['none of them', []],
  ])('is read whole where it holds %s', async (_, texts) => {
    // Nothing around it says how many there are.
    const { reference: bare } = knownOf(`[${[A, B, C].join(',')}]`, BARE);
    const response = Buffer.from(`[${texts.join(',')}]`);
    const page = await readAgainst(bare, response, BARE, 'id');
    expect(page.ids).toEqual(readPage(response, BARE, 'id').ids);
    expect(page.ids).toHaveLength(texts.length);
  });

  it('is read whole where a page without records has got some', async () => {
    const { reference: empty } = knownOf(totals([]));
    expect((await readAgainst(empty, Buffer.from(totals([A])), LIST, 'id')).records).toMatchObject([{ id: 'a' }]);
  });

  it('is read whole where another record stands in the place of one', async () => {
    const other = B.replace('"b"', '"d"');
    const page = await readAgainst(reference, Buffer.from(totals([A, other, C])), LIST, 'id');
    expect(page).toMatchObject({ ids: ['a', 'd', 'c'], records: [{ id: 'd', position: 1 }] });
    expect(page.keys.words).toEqual(KeyHashes.of(['a', 'd', 'c']).words);
  });

  it.each([
    ['is no object', 'null', 'not_an_object'],
    ['has a NUL in it', '{"id":"b","n":"\\u0000"}', 'nul'],
    ['has lost its id', '{"n":2}', 'no_id'],
  ])('is read whole where one of them %s', async (_, text, reason) => {
    const page = await readAgainst(reference, Buffer.from(totals([A, text, C])), LIST, 'id');
    expect(page).toMatchObject({ records: [], rejected: [{ reason, position: 1 }] });
    expect(page.rejected.map((each) => bytesOf(each).toString())).toEqual([text]);
    expect(page.ids).toHaveLength(3);
  });

  it.each([
    ['a record has become no JSON', totals([A, '{"id":"b","n":tru}', C])],
    ['a comma is missing', totals([A, B, C]).replace('},{', '} {')],
    ['something else stands in the place of a comma', totals([A, B.replace('1', '2'), C]).replace('},{', '};{')],
    ['a record is followed by something else', totals([A, B, C]).replace('"n":1},{"id":"c"', '"n":1}x,{"id":"c"')],
    ['it ends early', totals([A, B, C]).slice(0, -12)],
  ])('is an error where %s', async (_, text) => {
    await expect(readAgainst(reference, Buffer.from(text), LIST, 'id')).rejects.toThrow(
      expect.objectContaining({ code: 'malformed_response' }),
    );
  });

  it.each([
    ['a record', totals([A, '{"id":"b","n":"?"}', C])],
    ['what stands around them', totals([A, B, C]).replace(/}$/, ',"more":"?"}')],
  ])('is an error where %s is not UTF-8', async (_, text) => {
    const bytes = Buffer.from(text);
    bytes[bytes.indexOf('?')] = 0xff;
    await expect(readAgainst(reference, bytes, LIST, 'id')).rejects.toThrow(
      expect.objectContaining({ code: 'malformed_response' }),
    );
  });
});

it.each([
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
        const { reference } = knownOf(totals(before.map((each) => textOf(each, pad))));
        const now = isOther ? other : before.map((each, n) => (touched.includes(n) ? { ...each, n: each.n + 1 } : each));
        const response = Buffer.from(totals(now.map((each) => `${gap}${textOf(each, pad)}${gap}`)));
        const whole = readPage(response, LIST, 'id');
        const read = await readAgainst(reference, response, LIST, 'id');
        await reference.readHashes();
        expect(read.keys.words).toEqual(whole.keys.words);
        expect(read.texts.words).toEqual(whole.texts.words);
        expect(read.total).toBe(whole.total);
        expect(read.full!().records).toEqual(whole.records);
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
