import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ForeignService } from './foreign-service.js';
import { startJsonServer } from './json-server.js';

let service: ForeignService;

beforeAll(async () => {
  service = await startJsonServer();
});

afterAll(() => service.stop());

test('numbered pages give the whole list, with its total and links in headers', async () => {
  const path = '/api/companies/1f3c9d84-6a2b-4c57-8e19-7d5b3f0a4c02/notes';
  const address = (page: number) => new URL(`${path}?_page=${page}&_limit=200`, service.url).href;
  const received: unknown[] = [];
  for (const page of [1, 2, 3]) {
    const { statusCode, headers, body } = await request(address(page));
    expect([statusCode, headers['x-total-count']]).toEqual([200, '500']);
    expect(String(headers.link).includes(`<${address(page + 1)}>; rel="next"`)).toBe(page < 3);
    received.push(...((await body.json()) as unknown[]));
  }
  expect(received).toEqual(service.records);

  const behind = await request(address(4));
  expect([await behind.body.json(), behind.headers['x-total-count'], behind.headers.link]).toEqual([[], '500', '']);
});
