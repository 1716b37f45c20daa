import { describe, expect, test } from 'vitest';
import { compareEverything } from '../../src/walks/comparison.js';
import { type Respond, records, walksOverAnswers } from './answering-service.js';
import { projectComparisons } from './comparisons.js';

// The spellings in which services write the values of an envelope: each has the walk proved that the usual one has, and a lie in it proves nothing.

const SKIP = { style: 'skip-take', size: 3 };
const NUMBERED = { style: 'page-number', size: 3 };
const TOKENS = { style: 'continuation', size: 3 };
const LINKS = { style: 'next-link', size: 3 };
const EMPTY = { status: 'succeeded', verified: true, received: 0 };
const WHOLE = { status: 'succeeded', verified: true, received: 7 };

const walk = walksOverAnswers();

/** Seven records by position, number or token, three a page, with what `around` says of each page; it may replace the records. */
const pages =
  (around: (page: number, start: number) => object, key = 'items'): Respond =>
  (query) => {
    const token = query.get('continuationToken') ?? query.get('c');
    const start = Number(query.get('skip') ?? token ?? 3 * (Number(query.get('page') ?? 1) - 1));
    return { body: { [key]: records(start, Math.min(7, start + 3)), ...around(Math.floor(start / 3) + 1, start) } };
  };
const failed = (code: string, words: RegExp) => ({ status: 'failed', error: { code, message: expect.stringMatching(words) } });

describe('no records', () => {
  const POSITIONS = [SKIP, NUMBERED].map((pager) => ({ pager, fields: { data: 'items', total: 'none' } }));
  const CHAIN = { pager: TOKENS, fields: { data: 'items', next: 'next' } };
  const LINKED = { pager: LINKS, fields: { data: 'value.items', next: 'next' } };
  const FLAGGED = { pager: NUMBERED, fields: { data: 'items', total: 'none', hasNext: 'hasMore' } };
  const TOLD = { pager: SKIP, fields: { data: 'items' } };

  test.each<[string, object, object | null]>([
    ['null', TOLD, { items: null, totalRecords: 0 }],
    ['null by position', POSITIONS[0]!, { items: null }],
    ['null by number', POSITIONS[1]!, { items: null }],
    ['null in a chain', CHAIN, { items: null }],
    ['null beside null', CHAIN, { items: null, next: null }],
    ['null as an answer', { pager: SKIP, fields: { data: 'none' } }, null],
    ['an empty object', TOLD, { items: {}, totalRecords: 0 }],
    ['an empty object in a chain', CHAIN, { items: {} }],
    ['an empty object by number', POSITIONS[1]!, { items: {} }],
    ['a missing member and a total of 0', TOLD, { totalRecords: 0 }],
    ['a missing member and a total of "0"', TOLD, { totalRecords: '0', errors: [] }],
    ['a missing member and no more', FLAGGED, { hasMore: false }],
    ['a missing member and a flag that the entry does not name', POSITIONS[1]!, { hasMore: false }],
    ['a missing member and no next page', CHAIN, { next: null }],
    ['a missing envelope and no next page', LINKED, { value: null, next: '' }],
  ])('are %s', async (_what, entry, body) => {
    const answers: Respond = () => ({ body: JSON.stringify(body) });
    const found = await walk(entry, answers, answers);
    expect(found).toMatchObject(EMPTY);
    expect(found.again).toMatchObject({ status: 'succeeded', verify: { missing: 0, compared: 0 } });
    expect(found.again!.verify).not.toHaveProperty('contradiction');
  });

  test.each<[string, object, object, RegExp]>([
    ['nothing at all', POSITIONS[0]!, {}, /items is missing/],
    ['nothing at all of a chain', CHAIN, {}, /items is missing/],
    ['nothing at all of a bare array', { pager: SKIP, fields: { data: 'none' } }, {}, /the answer itself/],
    ['a missing member that nothing makes up for', POSITIONS[1]!, { page: 1 }, /items is missing/],
    ['a total', TOLD, { items: null, totalRecords: 7 }, /totalRecords is 7/],
    ['a total in text', TOLD, { items: {}, totalRecords: '7' }, /totalRecords is 7/],
    ['a total without the member', TOLD, { totalRecords: 7 }, /totalRecords is 7/],
    ['more', FLAGGED, { items: null, hasMore: true }, /hasMore is true/],
    ['more in text', FLAGGED, { items: {}, hasMore: 'true' }, /hasMore is true/],
    ['a next page', CHAIN, { items: null, next: '3' }, /next names another page/],
    ['a sign of more', POSITIONS[1]!, { items: null, meta: { hasMore: true } }, /meta\.hasMore is true/],
    ['page 1 of 3', POSITIONS[1]!, { items: {}, page: 1, pages: 3 }, /page is 1 of 3/],
    ['an array elsewhere', CHAIN, { items: null, results: records(0, 3) }, /results is one/],
    ['an array within another member', POSITIONS[1]!, { hasMore: false, body: { rows: records(0, 3) } }, /body\.rows is one/],
    ['an empty array elsewhere', CHAIN, { results: [], next: null }, /results is one/],
    ['a map of records', CHAIN, { items: { a: { id: 1 } } }, /items is not an array/],
    ['an empty text', CHAIN, { items: '' }, /items is not an array/],
    ['false', TOLD, { items: false, totalRecords: 0 }, /items is not an array/],
  ])('are not proved by %s', async (_what, entry, body, words) => {
    expect(await walk(entry, () => ({ body }))).toMatchObject(failed('malformed_envelope', words));
  });

  const LATER = [{ items: null }, { items: {} }, { hasMore: false }, { meta: { hasNextPage: false } }];
  test.each(LATER)('end a list on a later page as %j', async (nothing) => {
    const ended: Respond = (query) => {
      const from = Number(query.get('c') ?? query.get('skip') ?? 3 * (Number(query.get('page') ?? 1) - 1));
      const next = from < 6 && query.get('skip') === null && query.get('page') === null ? { next: from + 3 } : {};
      return from >= 6 ? { body: nothing } : { body: { items: records(from, from + 3), ...next } };
    };
    const chain = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'next' } };
    expect(await walk(chain, ended, ended)).toMatchObject({ verified: true, received: 6 });
    expect(await walk(POSITIONS[1]!, ended, ended)).toMatchObject({ verified: true, received: 6 });
  });

  test.each<[object]>([
    [{}],
    [{ page: 3 }],
    [{ message: 'Rate limit exceeded' }],
    [{ requestId: '7f3a' }],
    [{ fault: { faultstring: 'Spike arrest violation' } }],
    [{ message: 'Internal server error' }],
  ])('are not told by %j in the place of a later page, which is asked for again', async (body) => {
    const described = { pager: { ...TOKENS, tokenName: 'c' } };
    const chain = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'next' } };
    const flagged = { ...chain, fields: { ...chain.fields, hasNext: 'more' } };
    /** `left`: how many times it comes. */
    const answering = (left: number, entry: object): Respond => {
      const isChain = !POSITIONS.some((each) => each === entry);
      return (query, sent) => {
        const page = Number(query.get('page') ?? Number(query.get('c') ?? query.get('skip') ?? 0) / 3 + 1);
        if (page > 2 && left-- > 0) return { body };
        const next = page < 3 ? 3 * page : null;
        const told = isChain ? { next, more: next !== null, hasNextPage: next !== null, nextPageToken: next } : {};
        return pages(() => told, 'fields' in entry ? 'items' : 'data')(query, sent, {});
      };
    };
    for (const entry of [chain, flagged, described, ...POSITIONS])
      expect(await walk(entry, answering(1, entry))).toMatchObject(WHOLE);
    for (const entry of [described, POSITIONS[1]!])
      expect(await walk(entry, answering(Infinity, entry))).toMatchObject({ status: 'failed', verified: false });
  });

  test.each([{ items: null }, {}])('on a later page contradict a total, a flag and a token: %j', async (nothing) => {
    const cut =
      (around: object): Respond =>
      (query) =>
        Number(query.get('page') ?? 1) > 1 ? { body: { ...nothing, ...around } } : pages(() => around)(query, {}, {});
    expect(await walk({ pager: NUMBERED, fields: { data: 'items', total: 'total' } }, cut({ total: 7 }))).toMatchObject({
      verified: false,
    });
    const total: Respond = (query) =>
      Number(query.get('page') ?? 1) > 1 ? { body: nothing } : { body: { items: records(0, 3), total: 7 } };
    expect(await walk({ pager: NUMBERED, fields: { data: 'items', total: 'total' } }, total)).toMatchObject({ verified: false });
    expect(
      await walk({ pager: NUMBERED, fields: { data: 'items', total: 'none', hasNext: 'more' } }, cut({ more: true })),
    ).toMatchObject({ verified: false });
  });
});

describe('an answer without an array', () => {
  test.each<[string, object | undefined]>([
    ['null', { items: null, next: null }],
    ['an empty object', { items: {}, next: null }],
    ['a missing member', { next: null }],
    ['no body', undefined],
  ])('is the same to privacy rules, and where its ETag confirms it: %s', async (_what, body) => {
    const asked: (string | undefined)[] = [];
    const entry = { pager: TOKENS, fields: { data: 'items', next: 'next' }, privacy: { name: 'drop' } };
    const answers: Respond = (query, _body, headers) => {
      // The company's own record is asked for, too.
      if (query.has('pageSize')) asked.push(headers['if-none-match']);
      if (headers['if-none-match'] === '"e1"') return { status: 304, headers: { etag: '"e1"' } };
      return { status: body ? 200 : 204, headers: { etag: '"e1"' }, body };
    };
    expect(await walk(entry, answers, undefined, { nights: 2 })).toMatchObject(EMPTY);
    expect(asked).toEqual([undefined, projectComparisons() === compareEverything ? undefined : '"e1"']);
  });
});

describe('a total', () => {
  const BY_HEADER = { pager: SKIP, fields: { data: 'none', total: 'header X-Total' } };
  const inHeader =
    (name: string, value: (start: number, end: number) => string | string[]): Respond =>
    (query) => {
      const start = Number(query.get('skip') ?? 0);
      const end = Math.min(7, start + 3);
      return { headers: { [name]: value(start, end) }, body: records(start, end) };
    };

  test.each<[string, (page: number, start: number) => unknown]>([
    ['digits', () => '7'],
    ['digits with spaces', () => ' 7 '],
    ['-1 on later pages', (_, start) => (start === 0 ? 7 : -1)],
    ['null on later pages', (_, start) => (start === 0 ? '7' : null)],
    ['missing on later pages', (_, start) => (start === 0 ? 7 : undefined)],
  ])('is read as %s', async (_what, total) => {
    for (const pager of [SKIP, NUMBERED, { ...TOKENS, tokenName: 'c' }]) {
      const isChain = pager.style === 'continuation';
      const answers = pages((page, start) => ({
        count: total(page, start),
        ...(isChain && { next: start + 3 < 7 ? String(start + 3) : null }),
      }));
      const entry = { pager, fields: { data: 'items', total: 'count', ...(isChain && { next: 'next' }) } };
      const found = await walk(entry, answers, answers);
      expect(found).toMatchObject({ ...WHOLE, total_records: 7 });
      // Two passes by number; by position, one full page is followed by its overlap. No page is asked for behind the end that the total tells.
      expect(found.asked).toHaveLength({ 'page-number': 6, 'skip-take': 4 }[pager.style] ?? 3);
      expect(found.again!.verify).toMatchObject({ missing: 0, compared: 7 });
    }
  });

  test.each<[string, (start: number, end: number) => string | string[]]>([
    ['a Content-Range', (start, end) => `items ${start}-${end - 1}/7`],
    ['a Content-Range without a unit', (start, end) => `${start}-${end - 1}/7`],
    ['a Content-Range that tells it first alone', (start, end) => `items ${start}-${end - 1}/${start === 0 ? 7 : '*'}`],
    ['a header that is sent twice', () => ['7', '7']],
    ['a header that is sent twice, merged', () => '7, 7'],
    ['a Content-Range that is sent twice', (start, end) => [`items ${start}-${end - 1}/7`, `items ${start}-${end - 1}/7`]],
  ])('is read of %s', async (_what, value) => {
    for (const name of ['X-Total', 'Content-Range']) {
      const entry = { pager: SKIP, fields: { data: 'none', total: `header ${name}` } };
      expect(await walk(entry, inHeader(name, value))).toMatchObject({ ...WHOLE, total_records: 7 });
    }
  });

  test.each<[string, (start: number, end: number) => string | string[]]>([
    ['two values', () => ['7', '8']],
    ['no length', (start, end) => `items ${start}-${end - 1}`],
    ['a length that is not told on the first page', (start, end) => `items ${start}-${end - 1}/*`],
    ['-1 on the first page', () => '-1'],
    ['words', () => 'about 7'],
  ])('is not read of %s', async (_what, value) => {
    expect(await walk(BY_HEADER, inHeader('X-Total', value))).toMatchObject(failed('malformed_envelope', /header x-total/));
  });

  test.each([
    ['more than there are, in digits', () => '9'],
    ['fewer than there are, in digits', () => '5'],
    ['more, on the first page alone', (_: number, start: number) => (start === 0 ? '9' : null)],
    ['another one on each page', (_: number, start: number) => String(7 + (start === 0 ? 1 : 0))],
  ] as const)('that tells %s proves nothing', async (_what, total) => {
    for (const pager of [SKIP, NUMBERED, { ...TOKENS, tokenName: 'c' }]) {
      const isChain = pager.style === 'continuation';
      const answers = pages((page, start) => ({
        count: total(page, start),
        ...(isChain && { next: start + 3 < 7 ? start + 3 : null }),
      }));
      const entry = { pager, fields: { data: 'items', total: 'count', ...(isChain && { next: 'next' }) } };
      expect(await walk(entry, answers)).toMatchObject({ verified: false });
    }
  });

  test('that the first page alone tells overrules a sloppy sign on the last one of a chain', async () => {
    const entry = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'next', total: 'count' } };
    const answers = pages((page, start) =>
      page === 1 ? { count: '7', next: 3 } : { hasMore: true, ...(start < 4 && { next: 6 }) },
    );
    expect(await walk(entry, answers)).toMatchObject(WHOLE);
  });

  test('is told of by its kind, not by its value, where it is not understood', async () => {
    const found = await walk({ pager: SKIP, fields: { data: 'items' } }, () => ({
      body: { items: records(0, 2), totalRecords: 'Anna Berger' },
    }));
    expect(found).toMatchObject(failed('malformed_envelope', /totalRecords is a text/));
    expect(JSON.stringify(found)).not.toContain('Anna');
  });
});

describe('a first page that is not full', () => {
  const bySkip =
    (around: object, all: number): Respond =>
    (query) => {
      const start = Number(query.get('skip') ?? 3 * (Number(query.get('page') ?? 1) - 1));
      return { body: { items: records(start, Math.min(all, start + 3)), ...around } };
    };

  test.each<[object]>([[{}], [{ count: null }], [{ count: '' }], [{ count: -1 }]])(
    'may tell no total, and is read on until nothing comes: %j',
    async (around) => {
      for (const pager of [SKIP, NUMBERED])
        for (const all of [0, 1, 2]) {
          const answers = bySkip(around, all);
          const found = await walk({ pager, fields: { data: 'items', total: 'count' } }, answers, answers);
          expect(found).toMatchObject({ status: 'succeeded', verified: true, received: all });
          expect(found.again!.verify).toMatchObject({ missing: 0, compared: all });
        }
    },
  );

  test('may say nothing of more', async () => {
    const fields = { data: 'items', total: 'none', hasNext: 'has_more' };
    for (const pager of [SKIP, NUMBERED])
      expect(await walk({ pager, fields }, bySkip({}, 2))).toMatchObject({ verified: true, received: 2 });
    const nothing: Respond = () => ({ body: { items: null, total: null } });
    const counted = { data: 'items', total: 'total' };
    expect(await walk({ pager: SKIP, fields: counted }, nothing)).toMatchObject(EMPTY);
    expect(await walk({ pager: SKIP, fields: counted }, () => ({ body: {} }))).toMatchObject({ status: 'failed' });
  });

  test('is not the whole list where its records are only cut', async () => {
    const cut: Respond = (query) => {
      const start = Number(query.get('skip') ?? 3 * (Number(query.get('page') ?? 1) - 1));
      return { body: { items: records(start, Math.min(7, start + 3)).filter(({ id }) => id !== 1) } };
    };
    for (const pager of [SKIP, NUMBERED])
      expect(await walk({ pager, fields: { data: 'items', total: 'count' } }, cut)).toMatchObject({ received: 6 });
  });
});

describe('more', () => {
  const flagged = { pager: NUMBERED, fields: { data: 'items', total: 'none', hasNext: 'hasMore' } };
  const chained = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'last id', hasNext: 'hasMore' } };
  /** The cursor is the last id. */
  const behind =
    (flag: (more: boolean) => unknown): Respond =>
    (query) => {
      const from = query.get('c') === null ? 0 : Number(query.get('c')) + 1;
      return { body: { items: records(from, Math.min(7, from + 3)), hasMore: flag(from + 3 < 7) } };
    };

  test.each<[string, (more: boolean) => unknown]>([
    ['texts', String],
    ['capital texts', (more) => String(more).toUpperCase()],
    ['numbers', Number],
    ['digits', (more) => String(Number(more))],
    ['true, and missing on the last page', (more) => (more ? true : undefined)],
    ['1, and null on the last page', (more) => (more ? 1 : null)],
  ])('is told by %s', async (_what, flag) => {
    const numbered = pages((page) => ({ hasMore: flag(page < 3) }));
    expect(await walk(flagged, numbered, numbered)).toMatchObject(WHOLE);
    expect(
      await walk(
        { ...flagged, pager: SKIP },
        pages((_, start) => ({ hasMore: flag(start + 3 < 7) })),
      ),
    ).toMatchObject(WHOLE);
    const answers = behind(flag);
    const found = await walk(chained, answers, answers);
    expect(found).toMatchObject(WHOLE);
    expect(found.again!.verify).not.toHaveProperty('contradiction');
  });

  test('is not told by a first page that lacks it, or by another value', async () => {
    for (const flag of [undefined, null, '', 2, 'maybe', [], {}]) {
      const answers: Respond = () => ({ body: { items: records(0, 3), hasMore: flag } });
      expect(await walk(flagged, answers)).toMatchObject(failed('malformed_envelope', /hasMore/));
      expect(await walk(chained, answers)).toMatchObject(failed('malformed_envelope', /hasMore/));
    }
  });

  test('is asked on where a page in the middle lacks it', async () => {
    for (const pager of [NUMBERED, SKIP]) {
      const answers = pages((page, start) => (page === 2 ? {} : { hasMore: start + 3 < 7 }));
      expect(await walk({ ...flagged, pager }, answers)).toMatchObject(WHOLE);
    }
  });

  test('leaves a chain unproved whose full page in the middle lacks it and a next page', async () => {
    const entry = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'next', hasNext: 'hasMore' } };
    const answers = pages((page, start) => (page === 2 ? {} : { hasMore: 'true', next: start + 3 }));
    expect(await walk(entry, answers)).toMatchObject({ verified: false, unverified_reason: 'end_unproved', received: 6 });
  });

  test('that is promised on the page before makes a refusal an error', async () => {
    for (const status of [404, 400, 416])
      for (const more of [true, 'true', 1]) {
        const answers: Respond = (query) =>
          Number(query.get('page')) > 2
            ? { status, body: { message: 'no such page' } }
            : pages(() => ({ hasMore: more }))(query, {}, {});
        expect(await walk(flagged, answers)).toMatchObject({ verified: false, status: 'failed' });
      }
  });

  test.each([true, 'true', 1, '1'])('that is %j for ever proves nothing', async (more) => {
    expect(
      await walk(
        flagged,
        pages(() => ({ hasMore: more })),
      ),
    ).toMatchObject({ verified: false });
  });
});

describe('no next page', () => {
  const chained = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'next' } };
  const linked = { pager: { ...LINKS, sizeName: 'none' }, fields: { data: 'items', next: 'next' } };
  const NONE: [unknown][] = [[false], [0], [-1], ['null'], ['None'], [[]], [{}], [''], [null], ['0']];

  test.each(NONE)('is %j', async (none) => {
    const tokens = pages((_, start) => ({ next: start + 3 < 7 ? String(start + 3) : none }));
    const found = await walk(chained, tokens, tokens);
    expect(found).toMatchObject({ ...WHOLE, pages: 3 });
    expect(found.again).toMatchObject({ status: 'succeeded', verify: { missing: 0, compared: 7 } });
    const links = pages((_, start) => ({ next: start + 3 < 7 ? `?c=${start + 3}` : none }));
    expect(await walk(linked, links)).toMatchObject({ ...WHOLE, pages: 3 });
  });

  test.each([[false], [0], [-1], ['null'], [[]], [{}]])(
    'is no proof as %j where something says that more follow',
    async (none) => {
      for (const more of [{ hasMore: 'true' }, { meta: { nextCursor: 'c9' } }]) {
        const answers = pages((page) => ({ next: page < 2 ? '3' : none, ...(page < 2 ? {} : more) }));
        expect(await walk(chained, answers)).toMatchObject({
          verified: false,
          unverified_reason: 'end_contradicted',
          received: 6,
        });
      }
      const flagged = { ...chained, fields: { ...chained.fields, hasNext: 'more' } };
      const answers = pages(() => ({ next: none, more: 1 }));
      expect(await walk(flagged, answers)).toMatchObject(
        failed('contradicting_envelope', /more is true, but next names no page/),
      );
      const counted = { ...chained, fields: { ...chained.fields, total: 'count' } };
      const cut = pages((page) => ({ next: page < 2 ? '3' : none, count: 7 }));
      expect(await walk(counted, cut)).toMatchObject({ verified: false, unverified_reason: 'total_mismatch' });
    },
  );

  test('is not told by a full first page in a place that the entry names', async () => {
    for (const none of [0, 'null', {}])
      expect(
        await walk(
          chained,
          pages(() => ({ next: none })),
        ),
      ).toMatchObject({ verified: false, unverified_reason: 'end_unproved' });
  });

  test('is 0 or "null" in the envelope of the description, too', async () => {
    const described: Respond = (query) => {
      const start = Number(query.get('continuationToken') ?? 0);
      const more = start + 3 < 7;
      return {
        body: {
          data: records(start, Math.min(7, start + 3)),
          hasNextPage: Number(more),
          nextPageToken: more ? start + 3 : 'null',
        },
      };
    };
    expect(await walk({ pager: TOKENS }, described)).toMatchObject(WHOLE);
  });

  test.each([[true], [1.5], [['/x']], [{ page: 2 }], [{ href: true }], [{ href: '/x', url: '/y' }]])(
    'is neither told nor denied by %j, whose page fails',
    async (next) => {
      const found = await walk(
        chained,
        pages(() => ({ next })),
      );
      expect(found).toMatchObject(failed('malformed_envelope', /next is (true|an? )/));
    },
  );

  test.each([[null], [''], [undefined]])('is not told by %j in the last record of a page', async (none) => {
    const answers =
      (more: (end: number) => object, without: number): Respond =>
      (query) => {
        const from = Number(query.get('c') ?? 0);
        const end = Math.min(7, from + 3);
        const items = records(from, end).map(({ id }) => ({ id, key: { no: id === without ? none : String(id + 1) } }));
        return { body: { items, ...more(end) } };
      };
    const entry = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'last key.no' } };
    expect(
      await walk(
        entry,
        answers(() => ({}), 5),
      ),
    ).toMatchObject(failed('malformed_envelope', /key\.no of the last record tells nothing/));
    const flagged = { ...entry, fields: { ...entry.fields, hasNext: 'more' } };
    const told = (end: number) => ({ more: end < 7 });
    expect(await walk(flagged, answers(told, 5))).toMatchObject({ status: 'failed' });
    expect(await walk(flagged, answers(told, 6))).toMatchObject(WHOLE);
  });

  test('is no id of 0 of a last record', async () => {
    const ids = [5, 4, 3, 2, 1, 0, -1];
    const answers: Respond = (query) => {
      const from = query.get('c') === null ? 0 : ids.indexOf(Number(query.get('c'))) + 1;
      return { body: { items: ids.slice(from, from + 2).map((id) => ({ id })) } };
    };
    const entry = { pager: { style: 'continuation', tokenName: 'c', size: 2 }, fields: { data: 'items', next: 'last id' } };
    expect(await walk(entry, answers)).toMatchObject(WHOLE);
  });
});

describe('a next page', () => {
  test.each(['href', 'Href', 'url', 'uri', 'link'])('is named by the %s of an object', async (name) => {
    const entry = { pager: { ...LINKS, sizeName: 'none' }, fields: { data: 'items', next: '_links.next' } };
    const answers = pages((_, start) => ({
      _links: { next: { title: 'Next', [name]: start + 3 < 7 ? `?c=${start + 3}` : null } },
    }));
    const found = await walk(entry, answers, answers);
    expect(found).toMatchObject({ ...WHOLE, pages: 3 });
    expect(found.again!.verify).not.toHaveProperty('contradiction');
  });

  test.each(['token', 'cursor'])('is named by the %s of an object', async (name) => {
    const entry = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'next' } };
    const answers = pages((_, start) => (start + 3 < 7 ? { next: { [name]: start + 3 } } : {}));
    expect(await walk(entry, answers)).toMatchObject({ ...WHOLE, pages: 3 });
  });

  test('in an object leads to no other host', async () => {
    const entry = { pager: LINKS, fields: { data: 'items', next: 'next' } };
    const answers = pages(() => ({ next: { href: 'https://evil.example.com/things' } }));
    expect(await walk(entry, answers)).toMatchObject(failed('malformed_envelope', /host/));
  });

  test('is named by a header that is sent twice with one value', async () => {
    const entry = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'header X-Next' } };
    const answers: Respond = (query) => {
      const start = Number(query.get('c') ?? 0);
      const next = start + 3 < 7 ? String(start + 3) : 'null';
      return { headers: { 'X-Next': [next, next] }, body: { items: records(start, Math.min(7, start + 3)) } };
    };
    expect(await walk(entry, answers)).toMatchObject({ ...WHOLE, pages: 3 });
  });
});

describe('a page', () => {
  const BARE = { pager: NUMBERED, fields: { data: 'none' } };
  const chained = { pager: { ...TOKENS, tokenName: 'c' }, fields: { data: 'items', next: 'next' } };
  const linked = { pager: LINKS, fields: { data: 'none' } };

  test.each([203, 206])('is an answer of status %i', async (status) => {
    const entry = { pager: SKIP, fields: { data: 'items', total: 'count' } };
    const answers: Respond = (query, body) => ({ ...pages(() => ({ count: 7 }))(query, body, {}), status });
    const found = await walk(entry, answers, answers);
    expect(found).toMatchObject(WHOLE);
    expect(found.again!.verify).toMatchObject({ compared: 7 });
  });

  test.each([201, 202, 205, 207])('is no answer of status %i', async (status) => {
    const found = await walk(BARE, () => ({ status, ...(status !== 205 && { body: [] }) }));
    expect(found).toMatchObject({ status: 'failed', error: { code: 'malformed_response' } });
  });

  test('of status 204 is an empty list, in each style and each envelope', async () => {
    for (const entry of [
      BARE,
      { pager: SKIP },
      { pager: NUMBERED, fields: { data: 'items', total: 'none' } },
      { pager: TOKENS },
      chained,
      linked,
    ]) {
      const nothing: Respond = () => ({ status: 204 });
      const found = await walk(entry, nothing, nothing);
      expect(found).toMatchObject(EMPTY);
      expect(found.again).toMatchObject({ status: 'succeeded', verify: { missing: 0, compared: 0 } });
    }
  });

  test('of status 204 has no body, whatever its headers say', async () => {
    for (const headers of [{ 'content-length': '7' }, { 'content-encoding': 'gzip' }, { 'content-type': 'text/html' }])
      expect(await walk({ pager: SKIP }, () => ({ status: 204, headers }))).toMatchObject(EMPTY);
  });

  test('of status 204 ends a chain and a list by number, with what came before it', async () => {
    const ended: Respond = (query) => {
      const start = Number(query.get('c') ?? 3 * (Number(query.get('page') ?? 1) - 1));
      if (start >= 6) return { status: 204 };
      return { body: query.get('page') ? records(start, start + 3) : { items: records(start, start + 3), next: start + 3 } };
    };
    expect(await walk(chained, ended, ended)).toMatchObject({ verified: true, received: 6 });
    expect(await walk(BARE, ended, ended)).toMatchObject({ verified: true, received: 6 });
  });

  test('of status 204 that another one has named is asked for again', async () => {
    let left = 1;
    const answers: Respond = (query, body) => {
      const from = Number(query.get('c') ?? 0);
      if (from === 3 && left-- > 0) return { status: 204 };
      return pages((_, start) => ({ next: start + 3 < 7 ? start + 3 : null }))(query, body, {});
    };
    expect(await walk(chained, answers)).toMatchObject(WHOLE);
  });

  test('of status 204 proves nothing against a total, a promise or a next page', async () => {
    const cut =
      (around: object): Respond =>
      (query, body) =>
        Number(query.get('page')) > 1 ? { status: 204 } : pages(() => around)(query, body, {});
    const fields = { data: 'items', total: 'none' };
    expect(await walk({ pager: NUMBERED, fields: { ...fields, total: 'count' } }, cut({ count: 7 }))).toMatchObject({
      verified: false,
    });
    const header = { pager: SKIP, fields: { data: 'none', total: 'header X-Total' } };
    expect(await walk(header, () => ({ status: 204, headers: { 'X-Total': '7' } }))).toMatchObject({ verified: false });
    const sign: Respond = () => ({ status: 204, headers: { 'X-Has-More': 'true' } });
    expect(await walk(BARE, sign)).toMatchObject({ verified: false, unverified_reason: 'end_contradicted' });
    expect(await walk(chained, sign)).toMatchObject({ verified: false, unverified_reason: 'end_contradicted' });
  });

  test('after an empty first one of status 204 is read', async () => {
    const late: Respond = (query, body) =>
      Number(query.get('page')) === 1 ? { status: 204 } : pages(() => ({}))(query, body, {});
    expect(await walk({ pager: NUMBERED, fields: { data: 'items', total: 'none' } }, late)).toMatchObject({
      verified: true,
      received: 4,
    });
  });

  test('of part of a list, as its Content-Range says, is not the whole of it', async () => {
    const part: Respond = () => ({ status: 206, headers: { 'content-range': 'items 0-2/7' }, body: records(0, 3) });
    expect(await walk({ ...linked, pager: { ...LINKS, size: 100 } }, part)).toMatchObject({
      verified: false,
      unverified_reason: 'end_contradicted',
      unverified_detail: expect.stringContaining('header content-range'),
    });
    const whole: Respond = () => ({ status: 206, headers: { 'content-range': 'items 0-2/3' }, body: records(0, 3) });
    expect(await walk({ ...linked, pager: { ...LINKS, size: 100 } }, whole)).toMatchObject({ verified: true, received: 3 });
  });
});
