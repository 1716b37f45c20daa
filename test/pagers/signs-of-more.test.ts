import { describe, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { membersAround } from '../../src/pagers/around.js';
import { denialOfSuccess } from '../../src/pagers/denial.js';
import { pagerFor } from '../../src/pagers/registry.js';
import { describeSign, moreBehind, signsOfMore } from '../../src/pagers/signs-of-more.js';
import { pageOf, ReceivedNames } from './received.js';

type Headers = Record<string, string>;

const url = 'http://service/list?page=2&cursor=here';
const signs = (rest: unknown, headers: Headers = {}, envelope: string[] = []) =>
  signsOfMore({ headers, url }, membersAround(rest, envelope), () => false);
/** What page 2 of a list says of further pages. */
const more = (rest: unknown, headers: Headers = {}, envelope: string[] = []) =>
  moreBehind(signs(rest, headers, envelope), { page: 2, position: 20 })?.member;

describe('around the records, more is promised by', () => {
  test.each<[string, unknown, string, Headers?]>([
    ['a link of OData', { value: [], '@odata.nextLink': 'http://service/list?page=3' }, '@odata.nextLink'],
    ['a link of HAL', { _links: { next: { href: '/list?page=3' } } }, '_links.next.href'],
    [
      'a link among others',
      {
        links: [
          { rel: 'self', href: '/x' },
          { rel: 'next', href: '/list?page=3' },
        ],
      },
      'links.next',
    ],
    ['a token beside', { data: [], paging: { nextPageToken: 'abc' } }, 'paging.nextPageToken'],
    ['a token deep below', { meta: { pagination: { links: { next: '/x' } } } }, 'meta.pagination.links.next'],
    ['a cursor', { data: [], response_metadata: { next_cursor: 'dXNlcjp=' } }, 'response_metadata.next_cursor'],
    ['an object', { paging: { next: { after: 'NTI1Cg', link: '' } } }, 'paging.next.after'],
    ['a flag', { data: [], hasMore: true }, 'hasMore'],
    ['a flag as text', { data: [], has_more: 'true' }, 'has_more'],
    ['a flag as number', { data: [], 'has-next-page': 1 }, 'has-next-page'],
    ['a flag in the page', { page: { isTruncated: true } }, 'page.isTruncated'],
    ['a page that is not the last', { data: [], isLast: false }, 'isLast'],
    ['the number of the next page', { data: [], meta: { next_page: 3 } }, 'meta.next_page'],
    ['the position of the next record', { data: [], next: 30 }, 'next'],
    ['a page number below its total', { page: 2, pages: 4 }, 'page'],
    ['the same in Laravel', { meta: { current_page: 2, last_page: 4 } }, 'meta.current_page'],
    ['the same in Spring', { page: { number: 2, totalPages: 4 } }, 'page.number'],
    ['a Link header', [], 'header link', { link: '</list?page=3>; rel="next"' }],
    ['a Link header that nobody can read', [], 'header link', { link: '</list?page=3; rel="next"' }],
    ['a header with a token', [], 'header x-next-cursor', { 'x-next-cursor': 'abc' }],
    ['a header with a page', [], 'header x-next-page', { 'x-next-page': '3' }],
    ['headers with page and pages', [], 'header x-page', { 'x-page': '2', 'x-total-pages': '4' }],
  ])('%s', (_what, rest, member, headers) => {
    expect(more(rest, headers)).toBe(member);
  });

  test('in the envelope', () => {
    expect(more({ result: { list: { more: true } } })).toBeUndefined();
    expect(more({ result: { list: { more: true } } }, {}, ['result', 'list'])).toBe('result.list.more');
  });
});

describe('around the records, no more is promised by', () => {
  test.each<[string, unknown, Headers?]>([
    ['nothing', { value: [] }],
    ['names without a value', { nextLink: null, nextPageToken: '', paging: { next: undefined, nextPage: {} }, hasMore: false }],
    ['words for nothing', { next: 'null', nextCursor: 'none', more: 'false', next_page: 0, nextToken: '-1', hasNext: 0 }],
    ['what the next sync begins with', { nextSyncToken: 'abc', '@odata.deltaLink': 'http://service/list' }],
    ['dates', { next: '2026-12-01', paging: { next: '2026-12-01T02:00:00Z' }, meta: { next: 'Tue, 01 Dec 2026 02:00:00 GMT' } }],
    ['other words', { nextRun: '2', moreInfo: 'https://docs', meta: { nextPayday: true, has_more_rights: true } }],
    ['what is called so elsewhere', { holiday: { next: 'Easter' }, data: [] }],
    ['the last page of its pages', { page: 4, pages: 4, meta: { current_page: 2, last_page: 2 } }],
    ['the last page, counted from 0', { page: { number: 2, totalPages: 3 } }],
    ['the present page', { next: '/list?page=2&cursor=here', nextPage: 2, nextCursor: 'here' }],
    ['other links', { _links: { self: { href: '/list' }, prev: null } }, { link: '</list>; rel="first"' }],
    ['a header of the server', [], { 'x-nextjs-cache': 'HIT', link: '</app.css>; rel=preload; as=style; nopush' }],
  ])('%s', (_what, rest, headers) => {
    expect(more(rest, headers)).toBeUndefined();
  });
});

test('a member that is passed over is no sign', () => {
  const found = signsOfMore(
    { headers: {}, url },
    membersAround({ meta: { next: 'a', more: true } }, []),
    (member) => member === 'meta.next',
  );
  expect(found.map(({ member }) => member)).toEqual(['meta.more']);
});

test('the token that was asked for leads nowhere', () => {
  const found = signs({ continuationToken: 't7' });
  expect(moreBehind(found, { page: 3, position: 3, token: 't7' })).toBeUndefined();
  expect(moreBehind(found, { page: 3, position: 3, token: 't6' })?.member).toBe('continuationToken');
});

test('a page number counts from the first page, where that is known', () => {
  const found = signs({ page: 3, pages: 4 });
  expect(moreBehind(found, { page: 3, position: 3, first: 0 })).toBeUndefined();
  expect(moreBehind(found, { page: 3, position: 3, first: 1 })).toBeDefined();
});

test('a sign is told with its value, cut short', () => {
  expect(signs({ hasMore: true }).map(describeSign)).toEqual(['hasMore is true']);
  expect(signs({ page: 2, pages: 4 }).map(describeSign)).toEqual(['page is 2 of 4 pages']);
  expect(signs({ next: 'x'.repeat(500) }).map(describeSign)).toEqual([`next is "${'x'.repeat(80)}"`]);
});

describe('success is denied by', () => {
  const denial = (rest: unknown, envelope: string[] = []) => denialOfSuccess(membersAround(rest, envelope), () => false)?.member;

  test.each<[unknown, string]>([
    [{ isSuccess: false, httpStatusCode: 403, data: [] }, 'isSuccess'],
    [{ success: 'false' }, 'success'],
    [{ ok: false, error: 'ratelimited' }, 'ok'],
    [{ status: 'error' }, 'status'],
    [{ status: 'FAILED' }, 'status'],
    [{ status: 503 }, 'status'],
    [{ statusCode: '404' }, 'statusCode'],
    [{ meta: { status: 'fail' } }, 'meta.status'],
    [{ items: [], errors: [{ code: 'TIMEOUT' }] }, 'errors'],
    [{ error: { message: 'no such index' } }, 'error'],
    [{ error: 'timeout' }, 'error'],
    [{ error: true }, 'error'],
  ])('%j', (rest, member) => {
    expect(denial(rest)).toBe(member);
  });

  test.each<unknown>([
    { isSuccess: true, httpStatusCode: 200, error: null, errors: [] },
    { success: null, ok: 1, status: 'ok', statusCode: 200 },
    { error: '', errors: {}, meta: { error: { code: 0, message: '' } } },
    { error: false, errors: 0, error_count: 3 },
    { status: 'active', errorsUrl: 'https://docs' },
    [],
  ])('nothing in %j', (rest) => {
    expect(denial(rest)).toBeUndefined();
  });

  test('in the envelope, and by no text that may be about people', () => {
    expect(denial({ result: { success: false } }, ['result'])).toBe('result.success');
    const errors = ['Anna Berger is locked'];
    expect(denialOfSuccess(membersAround({ errors }, []), () => false)).toEqual({ member: 'errors', value: '…', kind: 'flag' });
  });
});

test.each([
  ['by position', { style: 'skip-take', size: 5 }, { total: 2 }],
  ['by page numbers', { style: 'page-number', size: 5 }, { total: 2 }],
  ['of tokens', { style: 'continuation', size: 5 }, { total: 2 }],
  ['of links whose own next says the end', { style: 'next-link', size: 5 }, { isEndTold: true }],
])('a list %s that ends by its own words names the sign that they overrule', (_, pager, told) => {
  const [endpoint] = validateCatalogue({ things: { method: 'GET', path: '/{company_id}', pager } }, 'test').endpoints;
  const read = pagerFor(endpoint!);
  const end = (around: object) => {
    const page = { ...pageOf('AB'), ...told, ...around };
    return read.next(read.first(), page, new ReceivedNames().before(page));
  };
  const sign = { member: 'hasMore', value: true, kind: 'flag' };
  expect(end({ signs: [sign] })).toEqual({ kind: 'done', overruled: sign });
  expect(end({})).toEqual({ kind: 'done' });
});
