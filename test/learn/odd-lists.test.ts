import type { ServerResponse } from 'node:http';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { ApiClient } from '../../src/http/api-client.js';
import { HttpClient } from '../../src/http/http-client.js';
import { MOST_REQUESTS, Probing, RequestsSpent } from '../../src/learn/probing.js';
import { fakeService, type Received } from '../http/fake-service.js';
import { endpointsOf } from '../walks/company-fixture.js';
import { ANY_TOKEN, type Lesson, learn } from './learning.js';

// A look at a list copes with services that answer otherwise than one hopes.

const companyId = '1f3c9d84-6a2b-4c57-8e19-7d5b3f0a4c02';
const path = '/api/{company_id}/rows';
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

type Answer = (asked: URL, request: Received, n: number) => { status?: number; headers?: Record<string, string>; body?: unknown };

/** A look at a service that answers so. `body`: JSON, or a text as it is. */
async function lookAt(answer: Answer, more: Partial<Lesson> = {}) {
  let n = 0;
  const service = await fakeService((request: Received, response: ServerResponse) => {
    const { status = 200, headers = {}, body } = answer(new URL(request.url, 'http://service'), request, ++n);
    const text = typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  });
  closers.push(() => service.close());
  const learned = await learn({ url: service.url, companyId, path, name: 'odd', ...more });
  expect(service.received.length).toBeLessThanOrEqual(MOST_REQUESTS);
  expect(learned.requests.length).toBeLessThanOrEqual(service.received.length);
  return { ...learned, received: service.received };
}

const rows = (count: number, make: (n: number) => object = (n) => ({ id: n + 1, text: `secret text ${n}` })) =>
  Array.from({ length: count }, (_, n) => make(n));
const number = (asked: URL, name: string, otherwise: number) => Number(asked.searchParams.get(name) ?? otherwise);
const cut = (all: readonly object[], asked: URL) => {
  const offset = number(asked, 'offset', 0);
  return all.slice(offset, offset + number(asked, 'limit', 25));
};

test('a service that always fails is asked thirty times at most', async () => {
  const { outcome, findings, received } = await lookAt(() => ({ status: 503, body: { message: 'Down for maintenance.' } }));
  expect([outcome, findings[0]!.says]).toEqual(['nothing', 'The service answered 503. It says: "Down for maintenance."']);
  expect(received.length).toBe(5);
});

test('a service that fails in the middle of all is given up', async () => {
  const all = rows(100);
  const { outcome, received } = await lookAt((asked, _, n) => (n < 6 ? { body: cut(all, asked) } : { status: 503 }));
  expect(outcome).not.toBe('confirmed');
  expect(received.length).toBeGreaterThan(6);
});

test('repetitions after a failure count, and the thirty-first request does not leave', async () => {
  const service = await fakeService((_, response) => void response.writeHead(503).end());
  closers.push(() => service.close());
  const http = new HttpClient();
  closers.push(() => http.close());
  const clock = { ...systemClock, sleep: async () => {} };
  const probing = new Probing({
    api: new ApiClient({ http, provider: { baseUrl: service.url }, clock, logger: pino({ enabled: false }) }),
    tokens: { get: async () => ANY_TOKEN, renew: async () => ANY_TOKEN, refused: async () => {} },
    requester: { company: companyId, urgent: true },
    signal: AbortSignal.timeout(60_000),
  });
  const ask = () => probing.ask({ method: 'GET', path: '/a', query: {}, body: {} }, {});
  for (let n = 0; n < 6; n += 1) expect(await ask()).toMatchObject({ kind: 'refused', status: 503 });
  await expect(ask()).rejects.toThrow(RequestsSpent);
  expect([service.received.length, probing.left]).toEqual([MOST_REQUESTS, 0]);
});

test('a list that the authorization does not reach ends no authorization, and renews the token once', async () => {
  let renewals = 0;
  let refusals = 0;
  const tokens = {
    get: async () => ANY_TOKEN,
    renew: async () => (renewals++, new Secret('d.e.f')),
    refused: async () => void refusals++,
  };
  const { outcome, lookUp, received } = await lookAt(() => ({ status: 401 }), { tokens });
  expect([outcome, renewals, refusals, received.length]).toEqual(['nothing', 1, 0, 2]);
  expect(lookUp[0]).toMatch(/scope or role/);
});

test.each([
  [
    'an object without a list',
    { body: { name: 'secret name', count: 5 } },
    'an object without an array of objects (its members: name, count)',
  ],
  ['a list of texts', { body: ['secret name'] }, 'an array of something other than objects'],
  [
    'a map of records',
    { body: { data: { a: { id: 1 }, b: { id: 2 } } } },
    'an object without an array of objects (its members: data)',
  ],
])('%s is no page, and is told without its values', async (_, answer, says) => {
  const learned = await lookAt(() => answer);
  expect([learned.outcome, learned.findings[0]!.says]).toEqual(['nothing', `The service answered 200 with ${says}.`]);
  expect(JSON.stringify(learned)).not.toMatch(/secret name/);
});

test('a page of HTML is no answer of the API, and is told without its words', async () => {
  const learned = await lookAt(() => ({ headers: { 'content-type': 'text/html' }, body: '<html>Sign in</html>' }));
  expect([learned.outcome, learned.findings[0]!.says]).toEqual([
    'nothing',
    expect.stringMatching(/^No usable response came: .* answered 200 with text\/html that is no JSON \(20 bytes\)/),
  ]);
  expect(learned.lookUp[0]).toMatch(/^Look up the address of the list/);
  expect(JSON.stringify(learned)).not.toContain('Sign in');
});

test('an answer that is too large is asked for again with a size', async () => {
  const all = rows(400, (n) => ({ id: n + 1, text: 'x'.repeat(30_000) }));
  const { outcome, catalogue } = await lookAt((asked) => ({
    body: all.slice(number(asked, 'offset', 0), number(asked, 'offset', 0) + number(asked, 'limit', 400)),
  }));
  expect(catalogue!['odd']!['pager']).toEqual({
    style: 'skip-take',
    in: 'query',
    skipName: 'offset',
    takeName: 'limit',
    size: expect.any(Number),
  });
  expect(outcome).toBe('confirmed');
});

test('a list whose parameters have unknown names gives no entry, and says which numbers it tells', async () => {
  const all = rows(100);
  const { outcome, entry, lookUp, findings } = await lookAt((asked) => ({
    body: { meta: { total: 100 }, rows: all.slice(number(asked, 'anfang', 0)).slice(0, 10) },
  }));
  expect([outcome, entry]).toEqual(['nothing', undefined]);
  expect(findings[0]!.says).toMatch(/10 records came.*No known parameter leads to another page/);
  expect(lookUp[0]).toMatch(/Numbers are in meta\.total/);
});

test('a list that comes whole is one page, and only its total confirms it', async () => {
  const all = rows(43);
  const told = await lookAt(() => ({ body: { total: 43, data: all } }));
  expect(told.catalogue!['odd']!['pager']).toEqual({ style: 'next-link', sizeName: 'none', size: 10_000 });
  expect(told.outcome).toBe('confirmed');
  const silent = await lookAt(() => ({ body: { data: all } }));
  expect(silent.catalogue).toEqual(told.catalogue);
  expect([silent.outcome, silent.lookUp[0]]).toEqual([
    'unconfirmed',
    expect.stringMatching(/^Nothing shows that this is the whole list/),
  ]);
});

test('a page of a usual length that nothing changes is not taken for the list', async () => {
  const { outcome, entry } = await lookAt(() => ({ body: { data: rows(50) } }));
  expect([outcome, entry]).toEqual(['nothing', undefined]);
});

test('an order that changes is seen, and nothing is called confirmed', async () => {
  const all = rows(30);
  let turn = 0;
  const { outcome, catalogue, findings } = await lookAt((asked) => {
    turn += 7;
    const turned = [...all.slice(turn % 30), ...all.slice(0, turn % 30)];
    return { body: { total: 30, data: cut(turned, asked) } };
  });
  expect(outcome).toBe('unconfirmed');
  expect(catalogue!['odd']).toMatchObject({
    pager: { style: 'skip-take', skipName: 'offset', takeName: 'limit' },
    order: 'unstable',
  });
  expect(findings.find(({ about }) => about === 'order')!.says).toBe('The first page came again in another order.');
});

test('ETags that do not change with the page are passed over, and right ones are tried', async () => {
  const all = rows(60);
  const lying = await lookAt((asked) => ({ headers: { etag: '"v1"' }, body: { total: 60, data: cut(all, asked) } }));
  expect(lying.catalogue!['odd']).toMatchObject({ etag: 'ignore' });
  expect(lying.findings.find(({ about }) => about === 'etag')!.says).toMatch(/the same ETag/);
  const right = await lookAt((asked, { headers }) => {
    const etag = `"${asked.search}"`;
    return headers['if-none-match'] === etag
      ? { status: 304, headers: { etag } }
      : { headers: { etag }, body: { total: 60, data: cut(all, asked) } };
  });
  expect(right.catalogue!['odd']).not.toHaveProperty('etag');
  expect(right.findings.find(({ about }) => about === 'etag')!.says).toBe(
    'Each page has an ETag of its own, and a request with it gets 304.',
  );
});

test('where no member alone is an id, several together are', async () => {
  const all = rows(60, (n) => ({
    employeeId: 1 + (n % 7),
    startDate: `2024-01-${String(1 + Math.floor(n / 7)).padStart(2, '0')}`,
    hours: n % 3,
  }));
  const { outcome, catalogue } = await lookAt((asked) => ({ body: { total: 60, data: cut(all, asked) } }));
  expect(catalogue!['odd']!['id']).toEqual([['employeeId', 'startDate']]);
  expect(outcome).toBe('confirmed');
});

test('no token goes to another host, whatever a page names', async () => {
  const elsewhere = await fakeService((_, response) => void response.end('[]'));
  closers.push(() => elsewhere.close());
  const { outcome } = await lookAt(() => ({ body: { data: rows(10), next: `${elsewhere.url.href}more` } }));
  expect(outcome).not.toBe('confirmed');
  expect(elsewhere.received).toEqual([]);
});

test('neither values of records nor page tokens stand in the report', async () => {
  const all = rows(60, (n) => ({ id: 40_000 + n, name: `secret ${n}` }));
  const { outcome, received, ...report } = await lookAt((asked) => {
    const after = number(asked, 'after', 0);
    const from = all.findIndex((each) => (each as { id: number }).id === after) + 1;
    const items = all.slice(from, from + number(asked, 'limit', 25));
    return { body: { items, more: from + items.length < 60 } };
  });
  expect(outcome).toBe('confirmed');
  expect(received.some(({ url }) => url.includes('after=40'))).toBe(true);
  const { sent: _, ...shown } = report;
  expect(JSON.stringify(shown)).not.toMatch(/400\d\d|secret/);
});

test('a path without the company is looked at, and its entry is said to be refused', async () => {
  const all = rows(60);
  const { outcome, lookUp, entry } = await lookAt((asked) => ({ body: { total: 60, data: cut(all, asked) } }), {
    path: '/api/rows',
  });
  expect(outcome).toBe('unconfirmed');
  expect(lookUp[0]).toBe('A catalogue with this entry is refused: odd.path must hold {company_id}.');
  expect(entry).toContain('skipName: offset');
});

test.each([
  [
    'cuts larger pages short',
    (size: number) => ({ size: Math.min(size, 100) }),
    100,
    /^A page has at most 100 records, although 1000 were requested\.$/,
  ],
  [
    'has a cap of just what is asked for',
    (size: number) => ({ size: Math.min(size, 1_000) }),
    500,
    /^A page has at most 1000 records, although 1001 were requested\.$/,
  ],
  [
    'takes whatever is asked for',
    (size: number) => ({ size }),
    500,
    /^A page of 1000 records came; no larger page was requested\.$/,
  ],
  [
    'refuses larger pages',
    (size: number) => (size > 250 ? { refusal: 'limit must be between 1 and 250' } : { size }),
    200,
    /^A page of 200 records came; .* 1000 were refused \("limit must be between 1 and 250"\)\.$/,
  ],
] as const)('the cap of a list that %s is told', async (_, served, size, says) => {
  const all = rows(3_000);
  const { catalogue, findings } = await lookAt((asked) => {
    const answered: { size?: number; refusal?: string } = served(number(asked, 'limit', 25));
    if (answered.refusal !== undefined) return { status: 400, body: { message: answered.refusal } };
    const offset = number(asked, 'offset', 0);
    return { body: { total: 3_000, data: all.slice(offset, offset + answered.size!) } };
  });
  expect(catalogue!['odd']!['pager']).toMatchObject({ takeName: 'limit', size });
  expect(findings.find(({ about }) => about === 'cap')!.says).toMatch(says);
});

test('long samples are cut after the privacy rules were applied', async () => {
  const all = rows(60, (n) => ({ id: n + 1, notes: 'n'.repeat(9_000), secret: 'x'.repeat(50) }));
  const entry = { method: 'GET', path, pager: { style: 'odata', size: 5 }, privacy: { notes: 'mask', secret: 'drop' } };
  const [known] = endpointsOf({ odd: entry });
  const answer: Answer = (asked) => ({ body: { total: 60, data: cut(all, asked) } });
  const { samples } = await lookAt(answer, { known: known!, withSamples: true });
  expect(samples).toHaveLength(3);
  for (const sample of samples) expect(sample).toMatch(/^\{"id":\d,"notes":"\*+…?.*$/);
  const whole = await lookAt(answer, { withSamples: true });
  for (const sample of whole.samples) expect(sample.length).toBe(2_001);
});
