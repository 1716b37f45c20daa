import type { ServerResponse } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { MusterError } from '../../src/core/errors.js';
import { Secret } from '../../src/core/secret.js';
import { ApiClient, encodeQuery } from '../../src/http/api-client.js';
import type { RequestBudget } from '../../src/http/budget/request-budget.js';
import { HttpClient } from '../../src/http/http-client.js';
import type { TokenSource } from '../../src/http/token-source.js';
import { fakeService, type Received } from './fake-service.js';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Tokens t1, t2, … of which a renewal makes the next, once however many ask. */
function countingTokens(): TokenSource & { renewals: number; readonly refusals: string[] } {
  const current = () => new Secret(`t${source.renewals + 1}`);
  const source = {
    renewals: 0,
    refusals: [] as string[],
    get: async () => current(),
    renew: async (stale: Secret) => {
      if (stale.reveal() === current().reveal()) source.renewals += 1;
      return current();
    },
    refused: async (token: Secret) => void source.refusals.push(token.reveal()),
  };
  return source;
}

async function setUp(answer: (request: Received, response: ServerResponse) => void, basePath = '', budget?: RequestBudget) {
  const service = await fakeService(answer);
  closers.push(() => service.close());
  const clock = { ...systemClock, sleep: async () => {} };
  const api = new ApiClient({
    http: new HttpClient(),
    provider: { baseUrl: new URL(basePath, service.url) },
    clock,
    logger: pino({ enabled: false }),
    ...(budget && { budget }),
  });
  const tokens = countingTokens();
  const get = (path = '/api/x', query?: Record<string, string>) => api.request({ method: 'GET', path, query, tokens });
  return { ...service, api, tokens, get };
}

const always =
  (status: number, headers: Record<string, string> = {}) =>
  (_: Received, response: ServerResponse) =>
    void response.writeHead(status, headers).end('{"a":1}');

test('asks with the bearer token, the base path and literal $ names', async () => {
  const { get, received } = await setUp(always(200), '/root/');
  expect(await get('/api/x', { skip: '0', $take: '5', q: 'a&b=ü' })).toMatchObject({
    status: 200,
    bytes: Buffer.from('{"a":1}'),
  });
  expect(received[0]).toMatchObject({ method: 'GET', url: '/root/api/x?skip=0&$take=5&q=a%26b%3D%C3%BC' });
  expect(received[0]?.headers).toMatchObject({ authorization: 'Bearer t1', 'accept-encoding': 'gzip' });
  expect(encodeQuery({ $skip: '$1' })).toBe('$skip=%241');
});

test('an error page that is not UTF-8 is told by its status, and asked for again', async () => {
  let left = 1;
  const { get } = await setUp((_, response) => {
    if (left-- > 0)
      response.writeHead(503, { 'content-type': 'text/html' }).end(Buffer.from('Dienst nicht verf\xfcgbar', 'latin1'));
    else response.end('{"a":1}');
  });
  expect(await get()).toMatchObject({ status: 200, bytes: Buffer.from('{"a":1}') });
});

test('posts JSON', async () => {
  const { api, tokens, received } = await setUp(always(200));
  await api.request({ method: 'POST', path: '/list', body: { skip: 0, take: 5 }, tokens });
  expect(received[0]).toMatchObject({ method: 'POST', body: '{"skip":0,"take":5}' });
  expect(received[0]?.headers['content-type']).toBe('application/json');
});

test.each([
  ['//elsewhere.example/api', '//elsewhere.example/api'],
  ['@elsewhere.example/api', '/@elsewhere.example/api'],
  ['.elsewhere.example', '/.elsewhere.example'],
])('no path leads to another host: %s', async (path, asked) => {
  const { get, received } = await setUp(always(200));
  await get(path);
  expect(received[0]?.url).toBe(asked);
});

test('401: one renewal for ten requests side by side', async () => {
  const { get, tokens, received } = await setUp(({ headers }, response) =>
    response.writeHead(headers.authorization === 'Bearer t2' ? 200 : 401).end('{}'),
  );
  const answers = await Promise.all(Array.from({ length: 10 }, () => get()));
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(tokens.renewals).toBe(1);
  expect(received.length).toBeLessThanOrEqual(20);
});

describe('401 again, to a token that was renewed', () => {
  /** What lists and the company's own record answer, by the token: the last of each goes on. */
  const answering = (list: Record<string, number>, record: Record<string, number | string>) => {
    return ({ url, headers }: Received, response: ServerResponse) => {
      const token = headers.authorization!.replace('Bearer ', '');
      const found = (url === '/api/companies/c' ? record : list)[token] ?? 401;
      const [status, body] = typeof found === 'string' ? [401, found] : [found, '{"message":"No."}'];
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    };
  };
  const recordPath = '/api/companies/c';
  const askedFor = (received: Received[]) => received.map(({ url, headers }) => `${url} ${headers.authorization}`);

  test('the company’s own record takes the token: this request alone is refused', async () => {
    const { api, tokens, received } = await setUp(answering({}, { t2: 200 }));
    const request = api.request({ method: 'GET', path: '/api/x', tokens: { ...tokens, recordPath } });
    await expect(request).rejects.toMatchObject({
      code: 'service_refused',
      retryable: false,
      details: { status: 401, service_says: 'No.' },
    });
    expect(tokens.refusals).toEqual([]);
    expect(askedFor(received)).toEqual(['/api/x Bearer t1', '/api/x Bearer t2', '/api/companies/c Bearer t2']);
  });

  test('the record refuses it, too, and takes a newer one: the list is asked with that', async () => {
    const { api, tokens, received } = await setUp(answering({ t3: 200 }, { t3: 200 }));
    expect((await api.request({ method: 'GET', path: '/api/x', tokens: { ...tokens, recordPath } })).status).toBe(200);
    expect(tokens.refusals).toEqual([]);
    expect(askedFor(received).slice(2)).toEqual(['/api/companies/c Bearer t2', '/api/companies/c Bearer t3', '/api/x Bearer t3']);
  });

  test('and refuses the newer one, twice: the token source is told', async () => {
    const { api, tokens, received } = await setUp(answering({}, {}));
    const request = api.request({ method: 'GET', path: '/api/x', tokens: { ...tokens, recordPath } });
    await expect(request).rejects.toMatchObject({ code: 'access_token_refused', retryable: false, details: { status: 401 } });
    expect([tokens.refusals, tokens.renewals]).toEqual([['t3'], 2]);
    expect(askedFor(received).slice(3)).toEqual(['/api/companies/c Bearer t3', '/api/companies/c Bearer t3']);
  });

  test('a new token that takes a moment to be known is not given up', async () => {
    let early = 1;
    const { api, tokens } = await setUp((request, response) => {
      const isEarly = request.headers.authorization === 'Bearer t3' && early-- > 0;
      answering({ t3: 200 }, { t3: isEarly ? 401 : 200 })(request, response);
    });
    expect((await api.request({ method: 'GET', path: '/api/x', tokens: { ...tokens, recordPath } })).status).toBe(200);
    expect(tokens.refusals).toEqual([]);
  });

  test.each([
    ['503', 503],
    ['408', 408],
    ['401 with the page of a gateway', '<html><h1>Unauthorized</h1>'],
  ])('the record answers %s: it is not known, and asked again', async (_what, answer) => {
    let left = 2;
    const { api, tokens } = await setUp((request, response) => {
      answering({}, { t2: request.url === recordPath && left-- > 0 ? answer : 200 })(request, response);
    });
    const request = api.request({ method: 'GET', path: '/api/x', tokens: { ...tokens, recordPath } });
    await expect(request).rejects.toMatchObject({ code: 'service_refused', details: { status: 401 } });
    expect([tokens.refusals, left]).toEqual([[], -1]);
    const never = await setUp(answering({}, { t2: answer }));
    const unknown = never.api.request({ method: 'GET', path: '/api/x', tokens: { ...never.tokens, recordPath } });
    await expect(unknown).rejects.toMatchObject({ code: 'service_error', retryable: true });
    expect([never.tokens.refusals, never.tokens.renewals]).toEqual([[], 1]);
  });

  test.each([403, 404, 302])('the record answers %i: it did not refuse the token', async (status) => {
    const { api, tokens } = await setUp(answering({}, { t2: status }));
    const request = api.request({ method: 'GET', path: '/api/x', tokens: { ...tokens, recordPath } });
    await expect(request).rejects.toMatchObject({ code: 'service_refused', details: { status: 401 } });
    expect(tokens.refusals).toEqual([]);
  });

  test('the record itself is what was asked for: that alone ends nothing', async () => {
    const { api, tokens, received } = await setUp(answering({}, {}));
    const request = api.request({ method: 'GET', path: recordPath, tokens: { ...tokens, recordPath } });
    await expect(request).rejects.toMatchObject({ code: 'service_refused', details: { status: 401 } });
    expect([tokens.refusals, received.length]).toEqual([[], 2]);
  });

  test('the record waits for the budget and is asked with a token that came until then: so is the list', async () => {
    let asked = 0;
    const permit = { answered: () => {}, failed: () => {}, unused: () => {} };
    // Another request renews the token while the record waits.
    const admit = async () => {
      asked += 1;
      if (asked === 3) await tokens.renew(new Secret('t2'));
      return { ...permit, waitedMs: asked === 3 ? 6_000 : 0 };
    };
    const { api, tokens, received } = await setUp(answering({ t3: 200 }, { t3: 200 }), '', { admit });
    expect((await api.request({ method: 'GET', path: '/api/x', tokens: { ...tokens, recordPath } })).status).toBe(200);
    expect(askedFor(received).slice(1)).toEqual(['/api/x Bearer t2', '/api/companies/c Bearer t3', '/api/x Bearer t3']);
  });

  test('a list of a further host: the record is asked where records stand', async () => {
    const { tokens, received, url } = await setUp(answering({}, { t2: 200 }));
    const numbers = await fakeService((_, response) => response.writeHead(401).end());
    closers.push(() => numbers.close());
    const provider = { baseUrl: url, bases: { numbers: numbers.url } };
    const api = new ApiClient({ http: new HttpClient(), clock: systemClock, logger: pino({ enabled: false }), provider });
    const request = api.at('numbers').request({ method: 'GET', path: '/api/x', tokens: { ...tokens, recordPath } });
    await expect(request).rejects.toMatchObject({ code: 'service_refused', details: { status: 401 } });
    expect([askedFor(numbers.received), askedFor(received)]).toEqual([
      ['/api/x Bearer t1', '/api/x Bearer t2'],
      ['/api/companies/c Bearer t2'],
    ]);
  });

  test('one renewal a request, whatever happens in between', async () => {
    const script = [401, 503, 401];
    const flaky = await setUp((_, response) => response.writeHead(script.shift() ?? 200).end('{}'));
    await expect(flaky.get()).rejects.toMatchObject({ code: 'service_refused' });
    expect([flaky.received.length, flaky.tokens.renewals]).toEqual([3, 1]);
  });
});

test('what the token source throws passes through, and is not repeated', async () => {
  const { api, received } = await setUp(always(401));
  for (const code of ['reauthorization_required', 'token_busy', 'service_unreachable'] as const) {
    let calls = 0;
    const renew = async () => {
      calls += 1;
      throw new MusterError(code, 'x');
    };
    await expect(api.request({ method: 'GET', path: '/x', tokens: { ...countingTokens(), renew } })).rejects.toMatchObject({
      code,
    });
    await expect(api.request({ method: 'GET', path: '/x', tokens: { ...countingTokens(), get: renew } })).rejects.toMatchObject({
      code,
    });
    expect(calls).toBe(2);
  }
  expect(received).toHaveLength(3);
});

test('203, 204 and 206 are answers as 200 is', async () => {
  for (const status of [203, 204, 206]) {
    const { get, received } = await setUp(always(status));
    expect(await get()).toMatchObject({ status });
    expect(received).toHaveLength(1);
  }
});

test.each([
  [403, 'service_refused', 1],
  [400, 'service_refused', 1],
  [410, 'service_refused', 1],
  [202, 'malformed_response', 1],
  [307, 'service_refused', 5],
  [425, 'service_refused', 5],
  [499, 'service_refused', 5],
  [408, 'service_timeout', 5],
  [429, 'service_throttled', 20],
  [500, 'service_error', 5],
])('%i is %s after %i requests', async (status, code, requests) => {
  const { get, received } = await setUp(always(status, status === 307 ? { location: 'http://127.0.0.1:1/' } : {}));
  const error = await get('/api/x', { pageToken: 'hush-hush' }).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code, details: { status } });
  expect(String(error)).not.toMatch(/hush|t1|"a"/);
  expect(received).toHaveLength(requests);
});

const HTML = '<!doctype html><title>Wartung</title>';

test.each<[string, number, Record<string, string>, string, string]>([
  ['a page of HTML', 200, { 'content-type': 'text/html' }, HTML, 'malformed_response'],
  ['a page of HTML under the name of JSON', 200, { 'content-type': 'application/json' }, `\n${HTML}`, 'malformed_response'],
  ['a line of text', 200, { 'content-type': 'text/plain' }, 'Service Unavailable', 'malformed_response'],
  ['XML behind a byte order mark', 200, {}, '\uFEFF<?xml version="1.0"?><fault/>', 'malformed_response'],
  ['nothing', 200, {}, '', 'malformed_response'],
  ['white space', 200, {}, ' \r\n', 'malformed_response'],
  ['a way to a status page', 302, { location: '/status' }, '', 'service_refused'],
  ['a firewall', 403, { 'content-type': 'text/html; charset=utf-8' }, HTML, 'service_refused'],
  ['a firewall that calls it JSON', 403, { 'content-type': 'application/json' }, HTML, 'service_refused'],
  ['a gateway without a route', 404, { 'content-type': 'text/html' }, HTML, 'service_refused'],
  ['a gateway in plain text', 404, { 'content-type': 'text/plain' }, 'no such route', 'service_refused'],
  ['a firewall that asks who we are', 401, { 'content-type': 'text/html' }, HTML, 'service_refused'],
  ['a challenge', 400, { 'content-type': 'text/html' }, HTML, 'service_refused'],
])('%s is no answer of the API, and asked for again', async (_, status, headers, body, code) => {
  let left = 2;
  const { get, received } = await setUp((_request, response) => {
    if (left-- > 0) response.writeHead(status, headers).end(body);
    else response.end('{"a":1}');
  });
  expect(await get()).toMatchObject({ status: 200, bytes: Buffer.from('{"a":1}') });
  expect(received).toHaveLength(3);

  left = Infinity;
  const error = await get().catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code, retryable: true, details: { status } });
  expect(String(error)).not.toContain('Wartung');
});

test('what others wait for is not asked for again where it is refused', async () => {
  const { api, tokens, received } = await setUp((_, response) =>
    response.writeHead(404, { 'content-type': 'text/html' }).end(HTML),
  );
  const asked = api.request({ method: 'GET', path: '/x', tokens, takesRefusals: true });
  await expect(asked).rejects.toMatchObject({ code: 'service_refused' });
  expect(received).toHaveLength(1);
});

test.each<[string, Record<string, string>, string]>([
  ['JSON', { 'content-type': 'application/problem+json' }, '{"title":"no"}'],
  ['JSON under another name', { 'content-type': 'text/html' }, ' {"title":"no"}'],
  ['no body', {}, ''],
])('a refusal in the words of the API is final: %s', async (_, headers, body) => {
  const { get, received } = await setUp((_request, response) => void response.writeHead(404, headers).end(body));
  await expect(get()).rejects.toMatchObject({ code: 'service_refused', retryable: false, details: { own_words: true } });
  expect(received).toHaveLength(1);
});

test('a further host of the API is asked with the same token, by its own address alone', async () => {
  const { api, tokens, received, url } = await setUp(always(200), '/root');
  const numbers = await fakeService(always(200));
  closers.push(() => numbers.close());
  const parts = { provider: { baseUrl: new URL('/root', url), bases: { numbers: new URL('/v2', numbers.url) } } };
  const further = new ApiClient({ http: new HttpClient(), clock: systemClock, logger: pino({ enabled: false }), ...parts }).at(
    'numbers',
  );
  expect(further.baseUrl).toBe(`${numbers.url.href}v2`);
  await further.request({ method: 'GET', path: '/api/x', tokens });
  await further.request({ method: 'GET', path: '/api/x', link: '/v2/api/x?page=2', tokens });
  expect(numbers.received.map((request) => [request.url, request.headers.authorization])).toEqual([
    ['/v2/api/x', 'Bearer t1'],
    ['/v2/api/x?page=2', 'Bearer t1'],
  ]);
  expect(received).toEqual([]);
  expect(api.at(undefined)).toBe(api);
  expect(() => api.at('numbers')).toThrow(expect.objectContaining({ code: 'environment_not_configured' }));
});

test('a lost connection is service_unreachable', async () => {
  const { get, received } = await setUp((_, response) => response.socket?.destroy());
  await expect(get()).rejects.toMatchObject({ code: 'service_unreachable' });
  expect(received).toHaveLength(5);
});

test('a page that comes after two failures is a page', async () => {
  const script = [503, 429];
  const { get, received } = await setUp((_, response) =>
    response.writeHead(script.shift() ?? 200, { 'retry-after': '0' }).end('{}'),
  );
  expect((await get()).status).toBe(200);
  expect(received).toHaveLength(3);
});

test.each([
  ['90.5', 91_000],
  ['120, 120', 120_000],
  ['-1', undefined],
  ['90.5.1', undefined],
])('Retry-After: %s is told with the refusal: %j', async (value, retryAfterMs) => {
  const { get } = await setUp(always(503, { 'retry-after': value }));
  await expect(get()).rejects.toMatchObject({ code: 'service_error', retryAfterMs });
});

test('a kept answer that still holds is 304 without a body, whatever encoding it speaks of', async () => {
  const { api, tokens, received } = await setUp(always(304, { etag: '"a"', 'content-encoding': 'gzip' }));
  const answer = await api.request({ method: 'GET', path: '/api/x', tokens, ifNoneMatch: '"a"' });
  expect(answer).toMatchObject({ status: 304, headers: { etag: '"a"' } });
  expect(answer.bytes).toHaveLength(0);
  expect(received[0]?.headers).toMatchObject({ 'if-none-match': '"a"', 'cache-control': 'no-cache' });
});

test.each(['content-length: 1000\r\n', 'content-encoding: gzip\r\ncontent-length: 1000\r\n', 'transfer-encoding: chunked\r\n'])(
  '304 with the header %j has no body',
  async (header) => {
    const server = createServer((socket) =>
      socket.on('error', () => {}).on('data', () => socket.write(`HTTP/1.1 304 Not Modified\r\netag: "a"\r\n${header}\r\n`)),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const http = new HttpClient();
    closers.push(
      () => http.close(),
      async () => server.close(),
    );
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    for (let n = 0; n < 2; n += 1) {
      const { status, bytes } = await http.send({ method: 'GET', url, headers: { 'if-none-match': '"a"' } });
      expect([status, bytes.length]).toEqual([304, 0]);
    }
  },
);

test('304 without if-none-match carries no page', async () => {
  const { get } = await setUp(always(304));
  await expect(get()).rejects.toMatchObject({ code: 'service_refused', details: { status: 304 } });
});

describe('the request budget', () => {
  function watchedBudget(waitedMs = 0) {
    const seen: unknown[] = [];
    const budget: RequestBudget = {
      admit: async (requester) => {
        seen.push(requester.company);
        return {
          waitedMs,
          answered: ({ status }) => void seen.push(status),
          failed: (error) => void seen.push((error as MusterError).code),
          unused: () => void seen.push('unused'),
        };
      },
    };
    return { budget, seen };
  }

  test('is asked before every attempt, and told how it ended', async () => {
    const { budget, seen } = watchedBudget();
    const script = [401, 429, 0, 200];
    const { api, tokens } = await setUp(
      (_, response) => {
        const status = script.shift()!;
        if (status === 0) response.socket?.destroy();
        else response.writeHead(status, { 'retry-after': '0' }).end('{}');
      },
      '',
      budget,
    );
    await api.request({ method: 'GET', path: '/x', tokens, requester: { company: 'c', urgent: true } });
    expect(seen).toEqual(['c', 401, 'c', 429, 'c', 'service_unreachable', 'c', 200]);
  });

  test('a request that waited for it for long takes the newest token, and gives its place back where there is none', async () => {
    const { budget, seen } = watchedBudget(60_000);
    const { api, received } = await setUp(always(200), '', budget);
    const tokens = countingTokens();
    let asked = 0;
    const get = async () => new Secret(`t${(asked += 1)}`);
    await api.request({ method: 'GET', path: '/x', tokens: { ...tokens, get } });
    expect(received[0]?.headers.authorization).toBe('Bearer t2');
    const gone = async () =>
      asked++ % 2 === 0 ? new Secret('t') : Promise.reject(new MusterError('reauthorization_required', 'x'));
    await expect(api.request({ method: 'GET', path: '/x', tokens: { ...tokens, get: gone } })).rejects.toMatchObject({
      code: 'reauthorization_required',
    });
    expect(seen).toEqual(['', 200, '', 'unused']);
  });
});

test('a refusal carries the sentence of the service, without the token that it repeats', async () => {
  const { api } = await setUp(({ headers }, response) => {
    const message = `No role for ${headers.authorization?.slice(7)}.`;
    response.writeHead(403, { 'content-type': 'application/json' }).end(JSON.stringify({ message }));
  });
  const tokens = { ...countingTokens(), get: async () => new Secret('opaque-and-never-registered') };
  const says = 'No role for [redacted].';
  await expect(api.request({ method: 'GET', path: '/x', tokens })).rejects.toMatchObject({
    code: 'service_refused',
    serviceSays: says,
    details: { status: 403, own_words: true, service_says: says },
  });
});
