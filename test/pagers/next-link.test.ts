import { describe, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { atOnce } from '../../src/core/turns.js';
import type { JsonObject } from '../../src/pagers/pager.js';
import { readPage } from '../../src/pagers/read-page.js';
import { pagerFor } from '../../src/pagers/registry.js';
import { pageOf, ReceivedNames } from './received.js';

const ASKED = 'https://api.example.com/v1/companies/7/shifts?$top=2';

function listOf(more: object = {}) {
  const entry = { method: 'GET', path: '/{company_id}/shifts', pager: { style: 'next-link', size: 2 }, ...more };
  const [endpoint] = validateCatalogue({ shifts: entry }, 'test').endpoints;
  return { pager: pagerFor(endpoint!), id: endpoint!.id, resource: 'shifts', ignoreTotals: false };
}

/** Where the next page stands of an answer that names it so. */
function linkIn(body: string, headers: Record<string, string> = {}, more: object = { fields: { data: 'value', next: 'next' } }) {
  return atOnce(readPage({ bytes: Buffer.from(body), headers, url: ASKED }, listOf(more))).nextToken;
}

describe('a link to the next page', () => {
  test.each([
    ['https://api.example.com/v1/companies/7/shifts?$skiptoken=a%2Fb', '/v1/companies/7/shifts?$skiptoken=a%2Fb'],
    ['HTTPS://API.example.com:443/x?y=1#part', '/x?y=1'],
    ['//api.example.com/x', '/x'],
    ['/x?y=1', '/x?y=1'],
    ['?page=2', '/v1/companies/7/shifts?page=2'],
    ['shifts?page=2', '/v1/companies/7/shifts?page=2'],
    ['../other', '/v1/companies/other'],
    ['https://user:secret@api.example.com/x', '/x'],
    ['http://api.example.com/x?y=1', '/x?y=1'],
    ['http://api.example.com:80/x', '/x'],
    ['https://api.example.com:8443/x', '/x'],
    ['http://API.Example.com.:8080/x', '/x'],
    ['https:\\\\api.example.com\\x', '/x'],
    ['https://api.example.com//evil.example.com/x', '//evil.example.com/x'],
  ])('written as %s is followed on the same origin: %s', (link, path) => {
    expect(linkIn(`{"value":[],"next":${JSON.stringify(link)}}`)).toBe(path);
  });

  test.each([
    'https://evil.example.com/x',
    '//evil.example.com/x',
    'https://api.example.com.evil.com/x',
    'https://evil-api.example.com/x',
    'https://api.example.com@evil.example.com/x',
    'https://api.example.com:443@evil.example.com/x',
    'https://evil.example.com\\@api.example.com/x',
    'https://evil.example.com#@api.example.com/x',
    'https:/\\evil.example.com/x',
    '/\\evil.example.com/x',
    '\t//evil.example.com/x',
    'https://example.com/x',
    'https://\u0430pi.example.com/x',
    'https://api.example.com\u3002evil.com/x',
    'ftp://api.example.com/x',
    'file://api.example.com/x',
    'ws://api.example.com/x',
    'blob:https://api.example.com/x',
    '\\\\evil.example.com/x',
    'javascript:alert(1)',
    'data:text/plain,x',
    'https://[',
  ])('to another host or to none is refused: %s', (link) => {
    const read = () => linkIn(`{"value":[],"next":${JSON.stringify(link)}}`);
    expect(read).toThrow(expect.objectContaining({ code: 'malformed_envelope' }));
  });

  test('is relative to the context of an OData answer', () => {
    const context = (text: string) => linkIn(`{"@odata.context":${text},"value":[],"next":"Companies(7)/shifts?$skiptoken=2"}`);
    expect(context('"../$metadata#Shifts"')).toBe('/v1/companies/Companies(7)/shifts?$skiptoken=2');
    expect(context('"https://api.example.com/odata/v4/$metadata#Shifts"')).toBe('/odata/v4/Companies(7)/shifts?$skiptoken=2');
    const query = linkIn('{"@odata.context":"../$metadata#Shifts","value":[],"next":"?$skiptoken=2"}');
    expect(query).toBe('/v1/companies/7/shifts?$skiptoken=2');
    expect(context('7')).toBe('/v1/companies/7/Companies(7)/shifts?$skiptoken=2');
    expect(context('"http://api.example.com:8080/odata/v4/$metadata#Shifts"')).toBe('/odata/v4/Companies(7)/shifts?$skiptoken=2');
    for (const other of ['https://inner.example.com/odata/$metadata', '//inner.example.com/odata/', 'urn:context', 'https://['])
      expect(context(JSON.stringify(other))).toBe('/v1/companies/7/Companies(7)/shifts?$skiptoken=2');
  });

  test('of another host is refused whatever the context says', () => {
    const body = '{"@odata.context":"https://evil.example.com/$metadata","value":[],"next":"//evil.example.com/x"}';
    expect(() => linkIn(body)).toThrow(expect.objectContaining({ code: 'malformed_envelope' }));
  });

  test('of another host is refused with what to write into the entry, and without a password', () => {
    const read = () => linkIn('{"value":[],"next":"https://user:secret@api-7.example.com:8443/x"}');
    expect(read).toThrow(/api-7\.example\.com:8443.*pager: \{ hosts: \[api-7\.example\.com:8443\] \}/);
    expect(read).not.toThrow(/secret/);
  });

  const inner = (hosts: readonly string[]) => ({
    pager: { style: 'next-link', size: 2, hosts },
    fields: { data: 'value', next: 'next' },
  });
  test.each([
    ['https://api-7.example.com/x?y=1', ['api-7.example.com']],
    ['http://api-7.example.com:8080/x?y=1', ['api-7.example.com']],
    ['http://API-7.example.com./x?y=1', ['API-7.Example.com.']],
    ['http://api-7.example.com:8080/x?y=1', ['other', 'api-7.example.com:8080']],
    ['https://api-7.example.com/x?y=1', ['api-7.example.com:443']],
    ['http://10.0.0.5/x?y=1', ['10.0.0.5:80']],
    ['http://[fd00::1]:8080/x?y=1', ['[FD00:0::1]']],
    ['http://xn--mller-kva.example/x?y=1', ['müller.example']],
    ['https://api.example.com/x?y=1', ['api-7.example.com']],
  ])('to %s is followed on the own origin where the entry names %j', (link, hosts) => {
    expect(linkIn(`{"value":[],"next":${JSON.stringify(link)}}`, {}, inner(hosts))).toBe('/x?y=1');
  });

  test.each([
    ['https://api-8.example.com/x', ['api-7.example.com']],
    ['https://sub.api-7.example.com/x', ['api-7.example.com']],
    ['http://api-7.example.com/x', ['api-7.example.com:443']],
    ['https://api-7.example.com:8443/x', ['api-7.example.com:8080']],
  ])('to %s is refused where the entry names %j', (link, hosts) => {
    const read = () => linkIn(`{"value":[],"next":${JSON.stringify(link)}}`, {}, inner(hosts));
    expect(read).toThrow(expect.objectContaining({ code: 'malformed_envelope' }));
  });

  test.each([
    ['<https://api.example.com/a?p=2>; rel="next"', '/a?p=2'],
    ['</a?p=1>; rel="prev", </a?p=3>; rel="next"', '/a?p=3'],
    ['</a>; title="x, y; rel=next"; rel=next', '/a'],
    ['</a?x=1,2>; rel="last next"', '/a?x=1,2'],
    ['</a>; rel="first"', undefined],
    ['', undefined],
    ['</app.css>; rel=preload; as=style; nopush, </a?p=2>; rel="next"', '/a?p=2'],
    ['<http://api.example.com:8080/a?p=2>; rel="next"', '/a?p=2'],
    ['</b>; rel=next; anchor="http://api.example.com/v1/companies/7/shifts?$top=2"', '/b'],
  ])('stands in the Link header where no member is named: %s', (link, path) => {
    expect(linkIn('[]', { link }, { fields: { data: 'none' } })).toBe(path);
  });

  test.each(['/other', 'http://evil.example.com/v1/companies/7/shifts?$top=2'])(
    'is not that of another address: %s',
    (anchor) => {
      const link = `</b>; rel=next; anchor="${anchor}"`;
      expect(() => linkIn('[]', { link }, { fields: { data: 'none' } })).toThrow(/anchor/);
      expect(linkIn('[]', { link: `${link}, </c>; rel=next` }, { fields: { data: 'none' } })).toBe('/c');
    },
  );

  test.each([
    'nonsense',
    '<https://evil.example.com/a>; rel=next',
    '<//evil.example.com/a>; rel=next',
    '</a?p=2; rel="next"',
    '</a>; rel=next, </b>; rel=next',
  ])('that cannot be told from the Link header fails the page: %s', (link) => {
    const read = () => linkIn('[]', { link }, { fields: { data: 'none' } });
    expect(read).toThrow(expect.objectContaining({ code: 'malformed_envelope' }));
  });

  test.each([
    ['null', undefined],
    ['""', undefined],
  ])('that is %s ends the list', (link, end) => {
    expect(linkIn(`{"value":[],"next":${link}}`)).toBe(end);
  });

  test('that is missing ends the list, and where an entry says whether a page follows, both must agree', () => {
    expect(linkIn('{"value":[]}')).toBeUndefined();
    const both = { fields: { data: 'value', next: 'next', hasNext: 'more' } };
    expect(linkIn('{"value":[],"next":"/x","more":false}', {}, both)).toBeUndefined();
    expect(() => linkIn('{"value":[],"more":true}', {}, both)).toThrow(
      expect.objectContaining({ code: 'contradicting_envelope' }),
    );
  });
});

describe('a next-link pager', () => {
  test('asks for a size once, and then for what it is told', () => {
    const { pager } = listOf();
    expect(pager.request(pager.first())).toEqual({ query: { $top: '2' } });
    const page = pageOf('AB', { nextToken: '/x?y=1' });
    const advance = pager.next(pager.first(), page, new ReceivedNames().before(page));
    expect(advance).toMatchObject({ kind: 'next' });
    expect(pager.request((advance as { state: JsonObject }).state)).toEqual({ link: '/x?y=1' });
    const sizeless = listOf({ pager: { style: 'next-link', sizeName: 'none', size: 2 } }).pager;
    expect(sizeless.request(sizeless.first())).toEqual({ query: {} });
  });

  test('doubts the end of a full first page that names no other, as a misspelt name would have it', () => {
    const { pager } = listOf({ fields: { data: 'value', next: 'nxet' } });
    const end = (names: string, total?: number) => {
      const page = pageOf(names, total === undefined ? {} : { total });
      return pager.next(pager.first(), page, new ReceivedNames().before(page));
    };
    expect(end('AB')).toMatchObject({ kind: 'done', doubted: { doubt: 'end_unproved' } });
    expect(end('A')).toEqual({ kind: 'done' });
    expect(end('AB', 2)).toEqual({ kind: 'done' });
  });

  test('refuses a first page without the total that the entry names', () => {
    const list = listOf({ fields: { data: 'value', total: '@odata.count' } });
    const page = atOnce(readPage({ bytes: Buffer.from('{"value":[]}'), headers: {}, url: ASKED }, list));
    const first = () => list.pager.next(list.pager.first(), page, new ReceivedNames().before(pageOf('')));
    expect(first).toThrow(
      expect.objectContaining({ code: 'malformed_envelope', message: expect.stringContaining('@odata.count') }),
    );
  });
});
