import { expect, test } from 'vitest';
import { EnvelopeFields } from '../../src/pagers/envelope.js';

const fields = new EnvelopeFields({ resource: 'list', envelope: '' }, {});

const seems = (rest: unknown, headers: Record<string, string> = {}) =>
  fields.seemsToGoOn({ rest, headers, url: 'http://service/list', count: 1, lastRecord: () => undefined });

test.each<[string, unknown, Record<string, string>?]>([
  ['a link of OData', { value: [], '@odata.nextLink': 'http://service/list?page=2' }],
  ['a link of HAL', { _links: { next: { href: '/list?page=2' } } }],
  ['a token beside', { data: [], paging: { nextPageToken: 'abc' } }],
  ['a flag', { data: [], hasMore: true }],
  ['a Link header', [], { link: '</list?page=2>; rel="next"' }],
  ['a header with a token', [], { 'x-next-cursor': 'abc' }],
])('seems to go on: %s', (_what, rest, headers) => {
  expect(seems(rest, headers)).toBe(true);
});

test.each<[string, unknown, Record<string, string>?]>([
  ['nothing beside', { value: [] }],
  ['names without a value', { nextLink: null, nextPageToken: '', paging: { next: undefined }, hasMore: false }],
  ['what the next sync begins with', { nextSyncToken: 'abc', '@odata.deltaLink': 'http://service/list' }],
  ['other links', { _links: { self: { href: '/list' }, prev: null } }, { link: '</list>; rel="first"' }],
  ['a header of the server', [], { 'x-nextjs-cache': 'HIT' }],
])('does not seem to go on: %s', (_what, rest, headers) => {
  expect(seems(rest, headers)).toBe(false);
});
