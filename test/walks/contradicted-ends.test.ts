import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { endpointsOf } from './company-fixture.js';
import { foreignHarness } from './sync-harness.js';

// Ordinary answers of services, in which what stands around the records says otherwise than the records do.

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}
type Respond = (asked: URLSearchParams, body: Record<string, unknown>) => Answer;

const PATH = '/api/companies/{company_id}/things';
const BARE = { data: 'none' };
const SKIP = { style: 'skip-take', size: 10 };
const NUMBERED = { style: 'page-number', size: 10 };

let database: TestDatabase;
let service: Server;
let url: URL;
let respond: Respond;
let asked: string[];

beforeAll(async () => {
  database = await testDatabase();
  const endpoints = endpointsOf({ things: { method: 'GET', path: PATH, pager: SKIP } });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  service = createServer((request, response) => {
    void (async () => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const { pathname, search, searchParams } = new URL(request.url!, url);
      const body = parts.length > 0 ? (JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>) : {};
      if (pathname.endsWith('/things')) asked.push(search);
      const answer = respond(searchParams, body);
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers });
      response.end(answer.body === undefined ? undefined : JSON.stringify(answer.body));
    })();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => service.once('listening', resolve));
  url = new URL(`http://127.0.0.1:${(service.address() as AddressInfo).port}`);
});
beforeEach(() => (asked = []));
afterAll(async () => {
  service.close();
  await database.close();
});

/** The walk of a new company's list that is declared so. */
async function walk(entry: object, answers: Respond) {
  respond = answers;
  const harness = foreignHarness(database.db, url, endpointsOf({ things: { method: 'GET', path: PATH, ...entry } }));
  try {
    const company = await harness.connect(randomUUID());
    const run = await harness.sync(company);
    return run.walks[0]!;
  } finally {
    await harness.close();
  }
}

/** Mirrors the list by one entry, and reads it again. */
async function readAgain(entry: object, answers: Respond, later = answers) {
  respond = answers;
  const harness = foreignHarness(database.db, url, endpointsOf({ things: { method: 'GET', path: PATH, ...entry } }));
  try {
    const company = await harness.connect(randomUUID());
    const [walked] = (await harness.sync(company)).walks;
    respond = later;
    return { walked, verify: (await harness.verify(company)).walks[0]!.verify };
  } finally {
    await harness.close();
  }
}

const records = (from: number, to: number) => Array.from({ length: Math.max(0, to - from) }, (_, n) => ({ id: from + n }));
const number = (text: unknown, otherwise: number) => (text === null || text === undefined ? otherwise : Number(text));
/** A list by position, from which some records are hidden behind the cut. */
const seen = (all: number, hidden: readonly [from: number, to: number], skip: number, take: number) =>
  records(skip, Math.min(all, skip + take)).filter(({ id }) => id < hidden[0] || id >= hidden[1]);

describe('a Link header', () => {
  test('is read whole, whatever other links it has', async () => {
    const answers: Respond = (query) => {
      const cursor = number(query.get('cursor'), 0);
      const next = cursor + 10 < 13 ? `, </api/things?cursor=${cursor + 10}>; rel="next"` : '';
      return {
        headers: { link: `</app.css>; rel=preload; as=style; nopush${next}` },
        body: records(cursor, Math.min(13, cursor + 10)),
      };
    };
    expect(await walk({ pager: { style: 'next-link', size: 10 }, fields: BARE }, answers)).toMatchObject({
      verified: true,
      received: 13,
    });
  });

  test('that cannot be read fails the page', async () => {
    const answers: Respond = () => ({ headers: { link: '</api/things?cursor=10; rel="next"' }, body: records(0, 3) });
    expect(await walk({ pager: { style: 'next-link', size: 10 }, fields: BARE }, answers)).toMatchObject({
      status: 'failed',
      error: { code: 'malformed_envelope', message: expect.stringContaining('Link header') },
    });
  });

  test('that a gateway strips leaves a full first page unproved, and the message says both ways out', async () => {
    const answers: Respond = () => ({ body: records(0, 10) });
    expect(await walk({ pager: { style: 'next-link', size: 10 }, fields: BARE }, answers)).toMatchObject({
      verified: false,
      unverified_reason: 'end_unproved',
      unverified_detail: expect.stringMatching(/raise size.*fields: \{ total/),
    });
    // A header that names the first page shows that the service speaks of its pages.
    const spoken: Respond = () => ({ headers: { link: '</api/things>; rel="first"' }, body: records(0, 10) });
    expect(await walk({ pager: { style: 'next-link', size: 10 }, fields: BARE }, spoken)).toMatchObject({ verified: true });
    const short: Respond = () => ({ body: records(0, 9) });
    expect(await walk({ pager: { style: 'next-link', size: 10 }, fields: BARE }, short)).toMatchObject({ verified: true });
  });

  const LINKED = { pager: { style: 'next-link', sizeName: 'per_page', size: 10 }, fields: BARE };

  test('that is left out on the last page ends the list, be that page full or not', async () => {
    const linked =
      (all: number): Respond =>
      (query) => {
        const page = number(query.get('page'), 1);
        const headers = 10 * page < all ? { link: `</api/things?page=${page + 1}>; rel="next"` } : {};
        return { headers, body: records(10 * (page - 1), Math.min(all, 10 * page)) };
      };
    for (const all of [33, 40]) expect(await walk(LINKED, linked(all))).toMatchObject({ verified: true, received: all });
    const capped = { ...LINKED, pager: { ...LINKED.pager, size: 500 } };
    for (const all of [10, 33, 40]) expect(await walk(capped, linked(all))).toMatchObject({ verified: true, received: all });
  });

  test.each(['limit', 'per_page', 'pageSize'])('is missed on a page of as many records as %s says', async (name) => {
    const entry = { pager: { style: 'next-link', size: 500 }, fields: { data: 'items' } };
    const answers =
      (count: number): Respond =>
      () => ({ body: { items: records(0, count), meta: { [name]: 10 } } });
    expect(await walk(entry, answers(10))).toMatchObject({ verified: false, unverified_reason: 'end_unproved' });
    expect(await walk(entry, answers(9))).toMatchObject({ verified: true, received: 9 });
  });

  test('whose next page is that of another address fails the page', async () => {
    const link = '</api/things?page=2>; rel="next"; anchor="/api/others"';
    expect(await walk(LINKED, () => ({ headers: { link }, body: records(0, 3) }))).toMatchObject({
      status: 'failed',
      error: { code: 'malformed_envelope', message: expect.stringContaining('anchor') },
    });
  });

  test('stands where an entry reads another place', async () => {
    const answers: Respond = () => ({ headers: { link: '</api/things?p=2>; rel=next' }, body: { items: records(0, 4) } });
    const entry = { pager: { style: 'next-link', size: 10 }, fields: { data: 'items', next: 'next' } };
    expect(await walk(entry, answers)).toMatchObject({
      verified: false,
      unverified_reason: 'end_contradicted',
      unverified_detail: expect.stringContaining('header link is "/api/things?p=2"'),
    });
  });
});

describe('a full first page of a chain', () => {
  const entry = { pager: { style: 'continuation', sizeName: 'limit', size: 10 }, fields: { data: 'items', next: 'cursor' } };
  /** `isLost`: whether the page from a position on names no other, though more records follow. */
  const chain =
    (all: number, isLost: (from: number) => boolean, takes = (limit: number) => limit): Respond =>
    (query) => {
      const from = number(query.get('continuationToken'), 0);
      const end = Math.min(all, from + takes(number(query.get('limit'), 10)));
      return { body: { items: records(from, end), ...(end < all && !isLost(from) && { cursor: String(end) }) } };
    };
  const never = () => false;

  test('that names no other is asked for with one record fewer, and then must', async () => {
    expect(await walk(entry, chain(10, never))).toMatchObject({ verified: true, received: 10 });
    expect(asked.map((search) => new URLSearchParams(search).get('limit'))).toEqual(['10', '9', '10']);
    expect(await walk(entry, chain(40, never))).toMatchObject({ verified: true, received: 40 });
    expect(await walk(entry, chain(7, never))).toMatchObject({ verified: true, received: 7 });
  });

  test('is unproved where it still names none', async () => {
    const lost = chain(40, () => true);
    expect(await walk(entry, lost)).toMatchObject({ verified: false, unverified_reason: 'end_unproved' });
  });

  test('is unproved where the service refuses to give fewer', async () => {
    const answers: Respond = (query, body) =>
      query.get('limit') === '9' ? { status: 400, body: { message: 'limit differs' } } : chain(10, never)(query, body);
    expect(await walk(entry, answers)).toMatchObject({ verified: false, unverified_reason: 'end_unproved', received: 10 });
  });

  test('is the last one where it says so, though it is the first', async () => {
    const fields = { data: 'items', next: 'cursor', hasNext: 'has_more' };
    const answers: Respond = () => ({ body: { items: records(0, 10), cursor: null, has_more: false } });
    for (const named of [fields, { ...fields, hasNext: undefined }, { ...fields, next: 'last id' }])
      expect(await walk({ ...entry, fields: named }, answers)).toMatchObject({ verified: true, received: 10 });
    expect(asked).toHaveLength(3);
    const contradicted: Respond = () => ({ body: { items: records(0, 10), previous: null, next: '/api/things?p=2' } });
    expect(await walk({ ...entry, fields: { data: 'items', next: 'previous' } }, contradicted)).toMatchObject({
      verified: false,
    });
  });
});

describe('a list by position that tells no total', () => {
  const RESULTS = { data: 'results', total: 'none' };

  test('is read on after hidden records where a link says that more follow', async () => {
    const answers: Respond = (query) => {
      const skip = number(query.get('skip'), 0);
      const results = seen(40, [10, 22], skip, number(query.get('take'), 10));
      const next = skip + 10 < 40 ? { _links: { next: `/api/things?start=${skip + 10}` } } : {};
      return { body: { results, start: skip, size: results.length, ...next } };
    };
    expect(await walk({ pager: SKIP, fields: RESULTS }, answers)).toMatchObject({
      verified: true,
      proof: 'two-pass',
      received: 28,
      passes: 2,
    });
  });

  test.each<[string, number, readonly [number, number]]>([
    ['the second page', 30, [10, 20]],
    ['the first page', 30, [0, 10]],
    ['part of two pages', 30, [8, 20]],
    ['one page near the end', 33, [20, 30]],
  ])('is read on behind %s that is hidden, though nothing says so', async (_what, all, hidden) => {
    const answers: Respond = (query) => ({
      body: seen(all, hidden, number(query.get('skip'), 0), number(query.get('take'), 10)),
    });
    expect(await walk({ pager: SKIP, fields: BARE }, answers)).toMatchObject({
      verified: true,
      received: all - (hidden[1] - hidden[0]),
    });
    const pages: Respond = (query) => {
      const page = number(query.get('page'), 1);
      return { body: seen(all, hidden, 10 * (page - 1), 10) };
    };
    expect(await walk({ pager: NUMBERED, fields: BARE }, pages)).toMatchObject({
      verified: true,
      received: all - (hidden[1] - hidden[0]),
    });
  });

  test('ends where nothing follows it, after one further page', async () => {
    const answers: Respond = (query) => ({ body: seen(13, [0, 0], number(query.get('skip'), 0), number(query.get('take'), 10)) });
    expect(await walk({ pager: SKIP, fields: BARE }, answers)).toMatchObject({ verified: true, proof: 'join', received: 13 });
    expect(asked).toEqual(['?skip=0&take=10', '?skip=9&take=10', '?skip=12&take=10', '?skip=22&take=10']);
  });

  test.each([400, 404, 416])('ends where the page behind it is refused with %i', async (status) => {
    const answers: Respond = (query) => {
      const skip = number(query.get('skip'), 0);
      return skip >= 13 ? { status, body: { message: 'no such page' } } : { body: records(skip, Math.min(13, skip + 10)) };
    };
    expect(await walk({ pager: SKIP, fields: BARE }, answers)).toMatchObject({ verified: true, proof: 'join', received: 13 });
    const pages: Respond = (query) => {
      const from = 10 * (number(query.get('page'), 1) - 1);
      return from > 20 ? { status, body: {} } : { body: records(from, Math.min(13, from + 10)) };
    };
    expect(await walk({ pager: NUMBERED, fields: BARE }, pages)).toMatchObject({ verified: true, received: 13 });
  });

  test('takes the newest word on what follows where a later page is refused', async () => {
    const answers: Respond = (query) => {
      const page = number(query.get('page'), 1);
      if (page > 3) return { status: 404, body: {} };
      return { body: { items: page < 3 ? records(10 * (page - 1), 10 * page) : [], hasMore: page < 3 } };
    };
    expect(await walk({ pager: NUMBERED, fields: { data: 'items', total: 'none' } }, answers)).toMatchObject({
      verified: true,
      received: 20,
    });
  });

  test('never ends at a first page that is refused', async () => {
    const answers: Respond = () => ({ status: 404, body: {} });
    expect(await walk({ pager: SKIP, fields: BARE }, answers)).toMatchObject({ status: 'failed' });
  });

  test('is asked for three pages that are empty and say that more follow', async () => {
    const answers: Respond = (query) => {
      const page = number(query.get('page'), 1);
      const items = page === 2 || page === 3 ? [] : records(10 * (page - 1), Math.min(40, 10 * page));
      return { body: { items, hasMore: page < 4, page, pages: 4 } };
    };
    expect(await walk({ pager: NUMBERED, fields: { data: 'items', total: 'none' } }, answers)).toMatchObject({
      verified: true,
      received: 20,
    });
  });

  test('is unproved where they go on saying so, and the message says what to write', async () => {
    const answers: Respond = (query) => {
      const page = number(query.get('page'), 1);
      return { body: { items: page === 1 ? records(0, 7) : [], meta: { hasMore: true } } };
    };
    const fields = { data: 'items', total: 'none' };
    expect(await walk({ pager: NUMBERED, fields }, answers)).toMatchObject({
      verified: false,
      unverified_reason: 'end_contradicted',
      unverified_detail: expect.stringMatching(/meta\.hasMore is true.*hasNext: meta\.hasMore.*ignore: \[meta\.hasMore\]/),
    });
    expect(asked).toHaveLength(4);
    const ignoring = { ...fields, ignore: ['meta.hasMore'] };
    expect(await walk({ pager: NUMBERED, fields: ignoring }, answers)).toMatchObject({ verified: true, received: 7 });
  });
});

describe('a sloppy sign', () => {
  test('is overruled by a total that agrees, in every style', async () => {
    const whole = { totalRecords: 7, totalDisplayRecords: 7, data: records(0, 7), next: '/api/things?page=2', hasMore: true };
    const answers: Respond = () => ({ body: whole });
    for (const pager of [SKIP, NUMBERED, { style: 'next-link', size: 10 }])
      expect(await walk({ pager, ...(pager.style === 'next-link' && { fields: { next: 'nextPage' } }) }, answers)).toMatchObject({
        verified: true,
        received: 7,
      });
  });

  test('is overruled by the place at which the entry looks, where that says the end', async () => {
    const answers: Respond = () => ({ body: { data: records(0, 4), cursor: null, next: '/api/things?page=2' } });
    const entry = { pager: { style: 'continuation', size: 10 }, fields: { next: 'cursor' } };
    expect(await walk(entry, answers)).toMatchObject({ verified: true, received: 4 });
  });

  test('is none after the end of a chain that only lacks a name, where it repeats what was asked', async () => {
    const answers: Respond = (query) => {
      const token = query.get('continuationToken') ?? '';
      return { body: { data: records(token ? 5 : 0, token ? 9 : 5), ...(token ? { nextToken: token } : { cursor: 't1' }) } };
    };
    const entry = { pager: { style: 'continuation', size: 10 }, fields: { next: 'cursor' } };
    expect(await walk(entry, answers)).toMatchObject({ verified: true, received: 9 });
  });

  test('leaves a chain unproved on whichever page it stands', async () => {
    const pages: Record<string, object> = {
      '': { data: records(0, 5), cursor: 'a' },
      a: { data: records(5, 10), cursor: 'b' },
      b: { data: records(10, 15), next_page: 4 },
    };
    const answers: Respond = (query) => ({ body: pages[query.get('continuationToken') ?? ''] });
    const entry = { pager: { style: 'continuation', size: 10 }, fields: { next: 'cursor' } };
    expect(await walk(entry, answers)).toMatchObject({
      verified: false,
      unverified_reason: 'end_contradicted',
      unverified_detail: expect.stringContaining('next_page is 4'),
    });
  });
});

describe('a sign of more whose text is also that of a constant', () => {
  test.each<[object, string]>([
    [{ hasMore: 'true' }, 'true'],
    [{ meta: { has_more: 'yes' } }, 'yes'],
    [{ isLast: 'false' }, 'false'],
    [{ next: 'true' }, 'true'],
    [{ more: '1' }, '1'],
  ])('contradicts the end: %j', async (sign, active) => {
    const pages: Record<string, object> = {
      '': { items: records(0, 10), cursor: 'a' },
      a: { items: records(10, 15), ...sign },
    };
    const answers: Respond = (query) => ({ body: pages[query.get('continuationToken') ?? ''] });
    const pager = { style: 'continuation', size: 10 };
    const entry = { query: { active }, pager, fields: { data: 'items', next: 'cursor' } };
    expect(await walk(entry, answers)).toMatchObject({ verified: false, unverified_reason: 'end_contradicted', received: 15 });
  });
});

describe('what a page promises of further ones', () => {
  const ITEMS = { data: 'items', total: 'none' };
  const OWN = { ...ITEMS, hasNext: 'more' };
  /** A list of 20 records in pages of 10; `on` is said around the second page, `behind` is what stands behind it. */
  const promising =
    (on: Partial<Answer>, ...behind: Answer[]): Respond =>
    (query) => {
      const page = number(query.get('page'), 1);
      if (page > 2) return behind[page - 3] ?? behind.at(-1)!;
      const said = page === 2 ? on : {};
      return { ...said, body: Object.assign({ items: records(10 * page - 10, 10 * page) }, said.body) };
    };
  const RANGE = { status: 206, headers: { 'content-range': 'items 10-19/40' } };
  const EMPTY: Answer = { body: { items: [] } };
  const OWN_MORE: Respond = (query) => {
    const page = number(query.get('page'), 1);
    return page > 2 ? { status: 204, body: undefined } : { body: { items: records(10 * page - 10, 10 * page), more: true } };
  };

  test.each<[string, object, Respond]>([
    ['a Content-Range', ITEMS, promising(RANGE, EMPTY)],
    ['page numbers and a flag', ITEMS, promising({ body: { page: 2, pages: 4, hasMore: true } }, EMPTY)],
    ['the own flag, before 204', OWN, OWN_MORE],
    ['an empty page', ITEMS, promising({}, { body: { items: [], hasMore: true, page: 3, pages: 4 } }, EMPTY)],
  ])('is not forgotten on an empty page that says nothing: %s', async (_what, fields, answers) => {
    expect(await walk({ pager: NUMBERED, fields }, answers)).toMatchObject({
      verified: false,
      unverified_reason: 'end_contradicted',
      received: 20,
    });
    const { verify } = await readAgain({ pager: NUMBERED, fields }, answers);
    expect(verify).toHaveProperty('contradiction');
  });

  test.each<[string, object, object]>([
    ['hasMore', { style: 'skip-take', size: 10 }, { hasMore: true }],
    ['@odata.nextLink', { style: 'odata', size: 10 }, { '@odata.nextLink': '/api/things?$skip=20' }],
  ])('is not forgotten in a list by position: %s', async (_what, pager, around) => {
    for (const items of [[], null]) {
      const answers: Respond = (query) => {
        const skip = number(query.get('skip') ?? query.get('$skip'), 0);
        return { body: skip > 19 ? { items } : { items: records(skip, Math.min(20, skip + 10)), ...around } };
      };
      const found = await walk({ pager, fields: ITEMS }, answers);
      expect(found).toMatchObject({ verified: false, unverified_reason: 'end_contradicted', received: 20 });
    }
  });

  test.each<[string, Respond]>([
    ['by a flag', promising({ body: { hasMore: true } }, { body: { items: [], hasMore: false } })],
    ['by a null', promising({ body: { next: '?page=3' } }, { body: { items: [], next: null } })],
    ['by page numbers', promising({ body: { page: 2, pages: 3 } }, { body: { items: [], page: 3, pages: 3 } })],
    [
      'by a Link header',
      promising({ headers: { link: '<?page=3>; rel=next' } }, { headers: { link: '<?page=1>; rel=first' }, ...EMPTY }),
    ],
    ['by records that say nothing', promising({}, EMPTY)],
  ])('ends where it is taken back: %s', async (_what, answers) => {
    const { walked, verify } = await readAgain({ pager: NUMBERED, fields: ITEMS }, answers);
    expect(walked).toMatchObject({ verified: true, received: 20 });
    expect(verify).not.toHaveProperty('contradiction');
  });

  test.each<[string, object, object]>([
    ['by the own flag', { total: 'count', hasNext: 'hasMore' }, { hasMore: true }],
    ['by another flag', { total: 'count' }, { hasMore: true }],
    ['by a link', { total: 'count' }, { next: '/api/things?page=2' }],
  ])('goes before a total that only counts the page: %s', async (_what, fields, around) => {
    // The service gives ten records at once, whatever it is asked for.
    const answers: Respond = (query) => {
      const skip = number(query.get('skip'), 10 * (number(query.get('page'), 1) - 1));
      const items = records(skip, Math.min(40, skip + 10));
      return { body: { items, count: items.length, ...around } };
    };
    for (const style of ['skip-take', 'page-number'])
      expect(await walk({ pager: { style, size: 500 }, fields: { data: 'items', ...fields } }, answers)).toMatchObject({
        verified: false,
      });
  });

  test('leaves a total that is one of the list as it is', async () => {
    const answers: Respond = (query) => {
      const skip = number(query.get('skip'), 500 * (number(query.get('page'), 1) - 1));
      return { body: { items: records(skip, 10), count: 10, hasMore: skip === 0 } };
    };
    for (const style of ['skip-take', 'page-number'])
      for (const fields of [{ total: 'count' }, { total: 'count', hasNext: 'hasMore' }]) {
        const found = await walk({ pager: { style, size: 500 }, fields: { data: 'items', ...fields } }, answers);
        expect(found).toMatchObject({ verified: true, received: 10 });
      }
  });

  test('ends on a page of records that lacks what the pages before it told', async () => {
    for (const pager of [NUMBERED, SKIP]) {
      const answers: Respond = (query) => {
        const skip = number(query.get('skip'), 10 * (number(query.get('page'), 1) - 1));
        const items = records(skip, Math.min(25, skip + 10));
        return { body: { items, ...(skip + 10 < 25 && { hasMore: true }) } };
      };
      const { walked, verify } = await readAgain({ pager, fields: ITEMS }, answers);
      expect(walked).toMatchObject({ verified: true, received: 25 });
      expect(verify).not.toHaveProperty('contradiction');
    }
  });
});

describe('success that is denied', () => {
  const DENIED = { isSuccess: false, httpStatusCode: 403, message: 'No access to Anna Berger.' };

  test.each<[string, object, object]>([
    ['an empty list with a total', { pager: SKIP }, { ...DENIED, totalRecords: 0, totalDisplayRecords: 0, data: [] }],
    ['no list at all', { pager: SKIP }, DENIED],
    ['an empty page', { pager: NUMBERED, fields: { data: 'items', total: 'none' } }, { items: [], status: 'error' }],
    [
      'an empty chain',
      { pager: { style: 'continuation', size: 9 }, fields: { next: 'c' } },
      { data: [], errors: [{ code: 'X' }] },
    ],
  ])('is a failure of the service and no empty list: %s', async (_what, entry, body) => {
    const found = await walk(entry, () => ({ body }));
    expect(found).toMatchObject({ verified: false, error: { code: 'success_denied' } });
    expect(found.error?.message).toMatch(/isSuccess is false|status is "error"|errors is/);
    expect(found.error?.message).not.toContain('Anna');
    expect(asked.length).toBeGreaterThan(1);
  });

  const NONE = { totalRecords: 0, totalDisplayRecords: 0, data: [] };
  const DENIALS: [object][] = [
    [{ code: 403, message: 'Forbidden' }],
    [{ code: '500', msg: 'busy' }],
    [{ resultCode: 503 }],
    [{ errorCode: 'E17' }],
    [{ errorCode: 1001, errorMessage: 'Access token is of another company' }],
    [{ error_description: 'The token is expired' }],
    [{ exception: 'System.TimeoutException' }],
    [{ fault: { faultstring: 'Spike arrest' } }],
    [{ validationErrors: ['companyId'] }],
    [{ errorList: [{ id: 1 }] }],
    [{ status: { code: 500, text: 'busy' } }],
    [{ responseStatus: { errorCode: 'X' } }],
    [{ meta: { code: 403 } }],
    [{ result: 'error' }],
    [{ status: 'timeout' }],
    [{ status: 'unauthorized' }],
    [{ status: 'SERVICE_UNAVAILABLE' }],
    [{ failed: true }],
  ];

  test.each(DENIALS)('is a failure of the service in other words: %j', async (denial) => {
    const found = await walk({ pager: SKIP }, () => ({ body: { ...NONE, data: null, ...denial } }));
    expect(found).toMatchObject({ verified: false, error: { code: 'success_denied' } });
    let failures = 1;
    const answers: Respond = (query) => {
      const token = number(query.get('continuationToken'), 0);
      if (token === 2 && failures-- > 0) return { body: { items: [], ...denial } };
      return { body: { items: records(10 * token, 10 * token + 10), cursor: token < 3 ? token + 1 : null } };
    };
    const entry = { pager: { style: 'continuation', size: 10 }, fields: { data: 'items', next: 'cursor' } };
    expect(await walk(entry, answers)).toMatchObject({ verified: true, received: 40 });
  });

  test.each([
    [{ code: 200, msg: 'success' }],
    [{ code: 0, message: 'ok' }],
    [{ code: 1000 }],
    [{ errorCode: 0, errorMessage: null }],
    [{ errorCode: '00000', errorMessage: 'No error' }],
    [{ errors: [], exception: null, failed: false, fault: {} }],
    [{ status: { code: 200, text: 'OK' } }],
    [{ status: 'success', result: 'ok' }],
    [{ status: 'No errors' }],
    [{ failed: 0 }],
  ])('is not said by %j', async (words) => {
    for (const data of [[], null])
      expect(await walk({ pager: SKIP }, () => ({ body: { ...NONE, data, ...words } }))).toMatchObject({
        verified: true,
        received: 0,
      });
    const untold = { pager: NUMBERED, fields: { data: 'items', total: 'none' } };
    expect(await walk(untold, () => ({ body: { items: null, ...words } }))).toMatchObject({ verified: true, received: 0 });
  });

  const PARTIAL: [object][] = [
    [{ incomplete_results: true }],
    [{ incomplete: 'true' }],
    [{ partial: true }],
    [{ meta: { isPartial: 1 } }],
    [{ timed_out: true }],
  ];

  test.each(PARTIAL)('of a part proves nothing, whatever the total is: %j', async (sign) => {
    const whole = { totalRecords: 4, totalDisplayRecords: 4, data: records(0, 4) };
    const found = await walk({ pager: SKIP }, () => ({ body: { ...whole, ...sign } }));
    expect(found).toMatchObject({ verified: false, unverified_reason: 'end_contradicted', received: 4 });
    const none = { totalRecords: 0, totalDisplayRecords: 0, data: [], ...sign };
    expect(await walk({ pager: SKIP }, () => ({ body: none }))).toMatchObject({ error: { code: 'success_denied' } });
    const chained = { pager: { style: 'continuation', size: 10 }, fields: { data: 'items', next: 'cursor' } };
    const answers: Respond = (query) => {
      const token = number(query.get('continuationToken'), 0);
      return {
        body: { items: records(5 * token, 5 * token + 5), cursor: token < 2 ? token + 1 : null, ...(token === 1 && sign) },
      };
    };
    expect(await walk(chained, answers)).toMatchObject({ verified: false, received: 15 });
  });

  test.each([
    [{ incomplete_results: false, partial: 0, timed_out: 'false', incomplete: null }],
    [{ error: { code: 0, message: 'The operation completed.' } }],
    [{ error: { code: '0', message: 'none' } }],
  ])('and of the whole is said by %j', async (words) => {
    const whole = { totalRecords: 4, totalDisplayRecords: 4, data: records(0, 4), ...words };
    expect(await walk({ pager: SKIP }, () => ({ body: whole }))).toMatchObject({ verified: true, received: 4 });
  });

  test('may be meant by a sentence beside no array, where nothing says that there are no records', async () => {
    const sentence = { message: 'No employees found' };
    const total = { totalRecords: 0, totalDisplayRecords: 0, data: null };
    expect(await walk({ pager: SKIP }, () => ({ body: { ...total, ...sentence } }))).toMatchObject({ verified: true });
    const untold = { pager: NUMBERED, fields: { data: 'items', total: 'none' } };
    const found = await walk(untold, () => ({ body: { items: null, msg: 'Ask Anna Berger.' } }));
    expect(found).toMatchObject({
      verified: false,
      error: { code: 'malformed_envelope', message: expect.stringMatching(/msg says.*ignore: \[msg\]/) },
    });
    expect(JSON.stringify(found)).not.toContain('Anna');
    const flagged = { body: { items: null, ...sentence, hasMore: false } };
    expect(await walk(untold, () => flagged)).toMatchObject({ verified: true });
    const ignoring = { ...untold, fields: { ...untold.fields, ignore: ['msg'] } };
    expect(await walk(ignoring, () => ({ body: { items: null, msg: 'Ask Anna.' } }))).toMatchObject({ verified: true });
  });

  test('in the middle of a chain is asked again, and the list is whole', async () => {
    let failures = 2;
    const answers: Respond = (query) => {
      const token = number(query.get('continuationToken'), 0);
      if (token === 2 && failures-- > 0) return { body: { items: [], errors: [{ code: 'TIMEOUT' }] } };
      return { body: { items: records(10 * token, 10 * token + 10), cursor: token < 3 ? token + 1 : null } };
    };
    const entry = { pager: { style: 'continuation', size: 10 }, fields: { data: 'items', next: 'cursor' } };
    expect(await walk(entry, answers)).toMatchObject({ verified: true, received: 40 });
  });

  test('on a page with records mirrors them, and proves nothing', async () => {
    const answers: Respond = () => ({
      body: { totalRecords: 4, totalDisplayRecords: 4, data: records(0, 4), errors: [{ code: 'PARTIAL' }] },
    });
    expect(await walk({ pager: SKIP }, answers)).toMatchObject({
      status: 'succeeded',
      verified: false,
      unverified_reason: 'end_contradicted',
      unverified_detail: expect.stringContaining('errors'),
      received: 4,
    });
    expect(await walk({ pager: SKIP, fields: { ignore: ['errors'] } }, answers)).toMatchObject({ verified: true });
  });
});

describe('a second reading', () => {
  const list =
    (length: number, total = length): Respond =>
    (query) => {
      const skip = number(query.get('skip'), 0);
      return { body: { totalRecords: total, data: records(skip, Math.min(length, skip + number(query.get('take'), 10))) } };
    };

  test('looks past the end that a total tells, and contradicts it where records follow', async () => {
    const { walked, verify } = await readAgain({ pager: SKIP }, list(25, 19));
    expect(walked).toMatchObject({ verified: true, received: 19 });
    expect(verify).toMatchObject({ contradiction: expect.stringContaining('follow the end') });
    expect((await readAgain({ pager: SKIP }, list(25))).verify).not.toHaveProperty('contradiction');
  });

  test('knows signs that walks do not know', async () => {
    const answers: Respond = () => ({ body: { items: records(0, 4), nextBatchSet: 'b2' } });
    const entry = { pager: { style: 'continuation', size: 10 }, fields: { data: 'items', next: 'cursor' } };
    const { walked, verify } = await readAgain(entry, answers);
    expect(walked).toMatchObject({ verified: true });
    expect(verify).toMatchObject({ contradiction: expect.stringContaining('nextBatchSet') });
    const ignoring = { ...entry, fields: { ...entry.fields, ignore: ['nextBatchSet'] } };
    expect((await readAgain(ignoring, answers)).verify).not.toHaveProperty('contradiction');
  });
});

describe('constants of the entry that a link lacks', () => {
  const entry = {
    query: { includeInactive: 'true' },
    pager: { style: 'next-link', size: 10 },
    fields: { data: 'items', next: 'next' },
  };
  /** Only with the constant are all of 40 records shown; links carry the cursor alone. */
  const forgetful =
    (refuses: boolean): Respond =>
    (query) => {
      const cursor = number(query.get('cursor'), 0);
      const isWhole = query.get('includeInactive') === 'true';
      if (refuses && cursor > 0 && isWhole) return { status: 400, body: { message: 'unknown parameter' } };
      const items = records(cursor, cursor + 10).filter(({ id }) => isWhole || id % 3 > 0);
      return { body: { items, next: cursor < 30 ? `/api/things?cursor=${cursor + 10}` : null } };
    };

  test('are added to it', async () => {
    expect(await walk(entry, forgetful(false))).toMatchObject({ verified: true, received: 40 });
    expect(asked.every((search) => search.includes('includeInactive=true'))).toBe(true);
  });

  test('that the service refuses there leave the walk unproved, until the entry says that the cursor keeps them', async () => {
    expect(await walk(entry, forgetful(true))).toMatchObject({
      status: 'succeeded',
      verified: false,
      unverified_reason: 'constants_lost',
      unverified_detail: expect.stringMatching(/includeInactive.*constants: keep/),
    });
    expect(asked).toHaveLength(5);
    const keeping = { ...entry, pager: { ...entry.pager, constants: 'keep' } };
    expect(await walk(keeping, forgetful(true))).toMatchObject({ verified: true });
  });

  test('are not added to a link that has them, in whatever case', async () => {
    const answers: Respond = (query) => {
      const isFirst = query.get('cursor') === null;
      return {
        body: { items: records(isFirst ? 0 : 5, isFirst ? 5 : 7), next: isFirst ? '?cursor=5&includeinactive=true' : null },
      };
    };
    expect(await walk(entry, answers)).toMatchObject({ verified: true, received: 7 });
    expect(asked[1]).toBe('?cursor=5&includeinactive=true');
  });
});
