import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Exchange } from '../../src/http/exchange.js';
import { HttpClient } from '../../src/http/http-client.js';
import { fakeService } from './fake-service.js';

/** Pages of 20 bytes to 2 MB: parts of a socket's reading, whole and in pieces. */
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
  const wrong = wanted.filter((n, each) => answers[each]!.text !== PAGES[n]);
  expect(wrong).toEqual([]);
  await http.close();
});

test('the memory of what was received is given back, but for the last part and for parts of other memory', async () => {
  const exchange = new Exchange(1_000_000);
  const read = Buffer.alloc(1_000, 'a');
  const parts = [read.subarray(500), Buffer.alloc(65_536, 'b'), Buffer.alloc(65_536, 'c'), Buffer.alloc(1_000, 'd')];
  exchange.onResponseStart(undefined, 200, { 'content-length': String(parts.reduce((sum, { length }) => sum + length, 0)) });
  for (const part of parts) exchange.onResponseData(undefined, part);
  exchange.onResponseEnd();
  expect(parts.map(({ length }) => length)).toEqual([500, 0, 0, 1_000]);
  expect(String((await exchange.answer).body)).toBe(
    'a'.repeat(500) + 'b'.repeat(65_536) + 'c'.repeat(65_536) + 'd'.repeat(1_000),
  );
});
