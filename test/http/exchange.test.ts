import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Exchange } from '../../src/http/exchange.js';
import { HttpClient, textOf } from '../../src/http/http-client.js';
import { fakeService } from './fake-service.js';

/** Pages of 20 bytes to 4 MB: one part of what a socket reads, and many. */
const PAGES = Array.from({ length: 40 }, (_, n) => randomBytes(10 * Math.ceil(1.37 ** n)).toString('hex'));

let service: Awaited<ReturnType<typeof fakeService>>;

beforeAll(async () => {
  service = await fakeService(({ url }, response) => {
    const [, how, n] = url.split('/');
    const body = PAGES[Number(n)]!;
    if (how === 'measured') response.setHeader('content-length', body.length);
    response.end(body);
  });
});
afterAll(() => service.close());

test.each(['measured', 'chunked'])('answers that come side by side over kept connections are whole: %s', async (how) => {
  const http = new HttpClient();
  const wanted = Array.from({ length: 400 }, (_, n) => (n * 7) % PAGES.length);
  const answers = await Promise.all(wanted.map((n) => http.send({ method: 'GET', url: new URL(`/${how}/${n}`, service.url) })));
  const wrong = wanted.filter((n, each) => textOf(answers[each]!) !== PAGES[n]);
  expect(wrong).toEqual([]);
  await http.close();
});

/** Of Node's pool: 8 KB in Node 20 and 22, in 24 as much as a socket reads at once. */
test.each([8_192, 65_536])('what the socket read into is given back, and a pool of %i bytes never', async (poolSize) => {
  const usual = Buffer.poolSize;
  Buffer.poolSize = poolSize;
  onTestFinished(() => {
    Buffer.poolSize = usual;
  });
  // The pool that was there is used up, so that the next small buffer stands in one of the size that was set.
  for (let used = 0; used < usual; used += 1_000) Buffer.allocUnsafe(1_000);
  const exchange = new Exchange(1_000_000);
  const read = Buffer.alloc(65_536, 'a');
  const pooled = Buffer.from('d'.repeat(100));
  const parts = [read.subarray(500), Buffer.alloc(65_536, 'b'), read.subarray(100, 200), pooled];
  expect(pooled.buffer.byteLength).toBe(poolSize);
  const body = Buffer.concat(parts).toString();
  exchange.onResponseStart(undefined, 200, { 'content-length': String(body.length) });
  for (const part of parts) exchange.onResponseData(undefined, part);
  exchange.onResponseEnd();
  expect(parts.map(({ length }) => length)).toEqual([65_036, 65_536, 100, 100]);
  expect(String((await exchange.response).body)).toBe(body);
  expect(parts.map(({ length }) => length)).toEqual([0, 0, 0, 100]);
});

test('memory that was read into is given back while the rest is still to come, where the length of the body was said', async () => {
  for (const length of ['250000', undefined]) {
    const exchange = new Exchange(1_000_000);
    const parts = Array.from('abcde', (letter) => Buffer.alloc(50_000, letter));
    const body = Buffer.concat(parts).toString();
    exchange.onResponseStart(undefined, 200, length === undefined ? {} : { 'content-length': length });
    for (const part of parts.slice(0, 4)) exchange.onResponseData(undefined, part);
    await Promise.resolve();
    const left = length === undefined ? 50_000 : 0;
    expect(parts.map((part) => part.length)).toEqual([left, left, left, left, 50_000]);
    exchange.onResponseData(undefined, parts[4]!);
    exchange.onResponseEnd();
    expect(String((await exchange.response).body)).toBe(body);
    expect(parts.map((part) => part.length)).toEqual([0, 0, 0, 0, 0]);
  }
});
