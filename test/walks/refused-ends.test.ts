import { describe, expect, test } from 'vitest';
import { type Answer, type Respond, records, walksOverAnswers } from './answering-service.js';

// Lists that tell neither a total nor whether more follow, and whose service refuses the page behind the last one.

const BARE = { data: 'none' };
const SKIP = { style: 'skip-take', size: 3 };
const NUMBERED = { style: 'page-number', size: 3 };

const walk = walksOverAnswers();

/** A list of so many records; `refuse` answers what stands at `from` on, behind the end unless said. */
const list =
  (length: number, refuse: (query: URLSearchParams) => Answer, from = length): Respond =>
  (query) => {
    const start = Number(query.get('skip') ?? 3 * (Number(query.get('page') ?? 1) - 1));
    const take = Number(query.get('take') ?? 3);
    return start >= from ? refuse(query) : { body: records(start, Math.min(length, start + take)) };
  };
const contradicted = { status: 'succeeded', verified: false, unverified_reason: 'end_contradicted' };

describe('a page after the last one', () => {
  const REFUSALS: [string, Answer][] = [
    ['404', { status: 404, body: { message: 'Invalid page.' } }],
    ['404 without a body', { status: 404 }],
    ['400', { status: 400, body: { error: 'There is no page 4.' } }],
    ['416', { status: 416, body: { detail: 'The range is not satisfiable' } }],
    ['404 that counts', { status: 404, body: { message: 'Page 4 exceeds the total number of pages (3).' } }],
    ['404 that names the end', { status: 404, body: { message: 'Cannot go beyond the last page' } }],
    ['a problem', { status: 404, headers: { 'content-type': 'application/problem+json' }, body: { title: 'Not Found' } }],
  ];

  test.each(REFUSALS)('is the end where it is refused by %s', async (_what, refusal) => {
    for (const length of [7, 6]) {
      const numbered = await walk(
        { pager: NUMBERED, fields: BARE },
        list(length, () => refusal),
        list(length, () => refusal),
      );
      expect(numbered).toMatchObject({ verified: true, proof: 'two-pass', received: length, passes: 2 });
      expect(numbered.again!.verify).toMatchObject({ missing: 0, compared: length });
      expect(numbered.again!.verify).not.toHaveProperty('contradiction');
      expect(
        await walk(
          { pager: SKIP, fields: BARE },
          list(length, () => refusal),
        ),
      ).toMatchObject({ verified: true, received: length });
    }
    expect(
      await walk(
        { pager: { ...SKIP, size: 1 }, fields: BARE },
        list(4, () => refusal),
      ),
    ).toMatchObject({
      verified: true,
      proof: 'two-pass',
      received: 4,
    });
  });

  test.each<object>([
    {},
    { message: 'Bad request' },
    { message: 'The requested page (4) exceeds the maximum page number (3).' },
    { message: 'only up to 3 pages' },
    { title: 'One or more validation errors occurred.', errors: { page: ['must be between 1 and 3.'] } },
  ])('is the end behind a short page whatever the refusal says: %j', async (body) => {
    for (const status of [400, 404])
      expect(
        await walk(
          { pager: NUMBERED, fields: BARE },
          list(7, () => ({ status, body })),
        ),
      ).toMatchObject({ verified: true, proof: 'two-pass', received: 7 });
  });

  test('is asked for twice, and must be refused alike', async () => {
    const entry = { pager: NUMBERED, fields: BARE };
    const found = await walk(
      entry,
      list(7, () => ({ status: 404 })),
    );
    expect(found.asked.slice(0, 5)).toEqual([1, 2, 3, 4, 5].map((page) => `?page=${page}&pageSize=3`));
    const other = list(7, (query) => ({ status: query.get('page') === '4' ? 404 : 400, body: {} }));
    expect(await walk(entry, other)).toMatchObject({ verified: false, status: 'failed' });
  });

  test.each<[string, string, Answer]>([
    ['page', '2', { status: 400, body: { message: 'Invalid record 17' } }],
    ['page', '3', { status: 404 }],
    ['page', '3', { status: 404, body: { message: 'not found' } }],
  ])('is none where the page behind it brings records: %s %s', async (name, value, refusal) => {
    const gap: Respond = (query, body) =>
      query.get(name) === value ? refusal : list(12, () => ({ status: 404 }))(query, body, {});
    const found = await walk({ pager: NUMBERED, fields: BARE }, gap);
    expect(found).toMatchObject({ ...contradicted, received: 9, unverified_detail: expect.stringContaining('refused a page') });
  });

  test('is none where the page behind it is given, and empty', async () => {
    const gap: Respond = (query) => (query.get('page') === '3' ? { status: 404 } : list(6, () => ({ body: [] }))(query, {}, {}));
    expect(await walk({ pager: NUMBERED, fields: BARE }, gap)).toMatchObject({ ...contradicted, received: 6 });
  });

  test('counts a record that comes twice for the one that did not come', async () => {
    // Two records of one value have changed places between the second position and the third.
    const tied: Respond = (query) => {
      const position = Number(query.get('skip'));
      return position < 3 ? { body: records([0, 1, 0][position]!, [1, 2, 1][position]!) } : { status: 404 };
    };
    expect(await walk({ pager: { ...SKIP, size: 1 }, fields: BARE }, tied)).toMatchObject({
      verified: false,
      unverified_reason: 'total_mismatch',
      received: 2,
    });
  });

  test('is none in a list by position where the next position has a record', async () => {
    const gap: Respond = (query, body) =>
      query.get('skip') === '4' ? { status: 404 } : list(9, () => ({ status: 404 }))(query, body, {});
    expect(await walk({ pager: { ...SKIP, size: 1 }, fields: BARE }, gap)).toMatchObject({ ...contradicted, received: 8 });
  });

  test.each<[string, Answer]>([
    ['403', { status: 403, body: { message: 'no such page' } }],
    ['422', { status: 422, body: { message: 'no such page' } }],
    ['410', { status: 410, body: { message: 'no such page' } }],
  ])('is no end where it is refused by %s', async (_what, refusal) => {
    for (const pager of [NUMBERED, SKIP]) {
      const refused = list(pager === SKIP ? 7 : 6, () => refusal, 6);
      expect(await walk({ pager, fields: BARE }, refused)).toMatchObject({ status: 'failed', verified: false });
    }
  });

  test.each<[string, Answer]>([
    ['HTML', { status: 404, headers: { 'content-type': 'text/html' }, body: '<h1>Not Found</h1>' }],
    ['plain text', { status: 400, headers: { 'content-type': 'text/plain' }, body: 'Bad Request' }],
  ])('is no end where a gateway refuses it in %s', async (_what, refusal) => {
    expect(
      await walk(
        { pager: NUMBERED, fields: BARE },
        list(6, () => refusal),
      ),
    ).toMatchObject({ verified: false });
  });

  test('is never the first one', async () => {
    for (const status of [404, 400, 416])
      for (const pager of [NUMBERED, SKIP])
        expect(await walk({ pager, fields: BARE }, () => ({ status, body: { message: 'no such page' } }))).toMatchObject({
          status: 'failed',
        });
  });

  test('is an error where a total, a flag or a sign says that it is there', async () => {
    const promises: [object, object][] = [
      [{ total: 'count' }, { count: 9 }],
      [{ total: 'count' }, { count: '9' }],
      [{ total: 'none' }, { meta: { hasMore: true } }],
      [{ total: 'none' }, { next: '/things?page=3' }],
      [{ total: 'none', hasNext: 'more' }, { more: 'true' }],
    ];
    for (const [fields, around] of promises) {
      const answers: Respond = (query) => {
        const page = Number(query.get('page'));
        return page > 2 ? { status: 404, body: {} } : { body: { items: records(3 * page - 3, 3 * page), ...around } };
      };
      expect(await walk({ pager: NUMBERED, fields: { data: 'items', ...fields } }, answers)).toMatchObject({
        verified: false,
        status: 'failed',
      });
    }
  });
});

describe('a refusal for another reason than the end', () => {
  test.each<[number, object]>([
    [400, { message: 'Result window is too large, from + size must be less than or equal to: [6]' }],
    [416, { error: { code: 'X', reason: 'The offset limit is 6.' } }],
    [404, { errors: [{ detail: 'PAGE_TOO_DEEP' }] }],
  ])('is no end: %i %j', async (status, body) => {
    for (const pager of [NUMBERED, SKIP]) {
      const limited = list(9, () => ({ status, body }), 6);
      const found = await walk({ pager, fields: BARE }, limited, limited);
      expect(found).toMatchObject({ ...contradicted, unverified_detail: expect.stringContaining(String(status)) });
      expect(found.again!.verify).toHaveProperty('contradiction');
    }
  });

  test.each<[number, object]>([
    [400, { title: 'One or more validation errors occurred.', errors: { page: ['must be between 1 and 2.'] } }],
    [400, { message: 'Bad request', errors: [{ message: 'must be <= 2' }] }],
    [400, { code: 'MAX_PAGE_EXCEEDED' }],
    [404, { error: { code: 'LIMIT_EXCEEDED' } }],
    [400, { message: 'Es können nur die ersten 6 Datensätze abgerufen werden' }],
    [404, { title: 'Not Found', detail: 'Seules les six lignes du début sont lisibles' }],
    [400, { message: 'Pagination is available for the first 6 results' }],
    [400, { message: 'Use the export endpoint to retrieve more records' }],
    [404, { error: 'page_not_in_plan' }],
  ])('is no end behind a full page, where it says something else: %i %j', async (status, body) => {
    const limited = list(9, () => ({ status, body }), 6);
    const found = await walk({ pager: NUMBERED, fields: BARE }, limited, limited);
    expect(found).toMatchObject({ ...contradicted, received: 6 });
    expect(found.again!.verify).toHaveProperty('contradiction');
  });

  test.each<[number, object]>([
    [400, { code: 'WINDOW' }],
    [400, { message: 'Es können nur die ersten 6 Datensätze abgerufen werden' }],
  ])('is no end in a list by position that cuts its pages short at the limit: %i %j', async (status, body) => {
    const clamped: Respond = (query) => {
      const skip = Number(query.get('skip'));
      return skip >= 6 ? { status, body } : { body: records(skip, Math.min(6, skip + Number(query.get('take')))) };
    };
    for (const size of [3, 1])
      expect(await walk({ pager: { ...SKIP, size }, fields: BARE }, clamped)).toMatchObject({ ...contradicted, received: 6 });
  });

  test('is no end in a list by position whatever it says, where there is a record', async () => {
    for (const body of [{}, undefined]) {
      const limited: Respond = (query) =>
        Number(query.get('skip')) + Number(query.get('take')) > 7 ? { status: 400, body } : list(9, () => ({}))(query, {}, {});
      expect(await walk({ pager: SKIP, fields: BARE }, limited)).toMatchObject({ status: 'failed', verified: false });
      const unaligned: Respond = (query) =>
        Number(query.get('skip')) % 3 > 0 ? { status: 400, body } : list(9, () => ({}))(query, {}, {});
      expect(await walk({ pager: SKIP, fields: BARE }, unaligned)).toMatchObject({ status: 'failed', verified: false });
    }
  });

  test('is no end after a full first page, where no other page was ever had', async () => {
    const entry = { pager: NUMBERED, fields: BARE };
    const refused = list(9, () => ({ status: 400, body: { message: 'bad request' } }), 3);
    expect(await walk(entry, refused)).toMatchObject({ verified: false, unverified_reason: 'end_unproved', received: 3 });
    const short = list(2, () => ({ status: 400, body: { message: 'bad request' } }));
    expect(await walk(entry, short)).toMatchObject({ verified: true, received: 2 });
  });

  test('ends a list by position that became shorter during the walk where it ends', async () => {
    let length = 7;
    const shrinking: Respond = (query, body) => {
      const answer = list(length, () => ({ status: 404, body: {} }))(query, body, {});
      if (query.get('skip') === '2') length = 4;
      return answer;
    };
    expect(await walk({ pager: SKIP, fields: BARE }, shrinking)).toMatchObject({ status: 'succeeded' });
  });
});
