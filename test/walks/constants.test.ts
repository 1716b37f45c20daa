import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { endpointsOf } from './company-fixture.js';
import { foreignHarness } from './sync-harness.js';

// Constants of an entry's query and body go with every request, wherever the pager has its own parameters.

const all = Array.from({ length: 7 }, (_, id) => ({ id }));
let database: TestDatabase;
let service: Server;
let asked: unknown[] = [];

beforeAll(async () => {
  database = await testDatabase();
  service = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      const { pathname, searchParams } = new URL(request.url!, 'http://service');
      const body = JSON.parse(text || '{}') as Record<string, unknown>;
      const parameters: Record<string, unknown> = { ...Object.fromEntries(searchParams), ...body };
      if (pathname.endsWith('/list')) asked.push([searchParams.get('expand'), body['active']]);
      const skip = Number(parameters['skip'] ?? 0);
      const data = all.slice(skip, skip + Number(parameters['take'] ?? 1));
      response.end(JSON.stringify({ totalRecords: all.length, data }));
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => service.once('listening', resolve));
});
afterAll(async () => {
  service.close();
  await database.close();
});

test.each(['query', 'body'])('a POST whose pager is in the %s', async (place) => {
  asked = [];
  const pager = { style: 'skip-take', in: place, size: 3 };
  const constants = { query: { expand: 'all' }, body: { active: true } };
  const endpoints = endpointsOf({ things: { method: 'POST', path: '/{company_id}/list', pager, ...constants } });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  const url = new URL(`http://127.0.0.1:${(service.address() as AddressInfo).port}`);
  const harness = foreignHarness(database.db, url, endpoints);
  const company = await harness.connect(randomUUID());
  expect((await harness.sync(company)).walks).toMatchObject([{ verified: true, received: all.length }]);
  expect((await harness.verify(company)).walks[0]!.verify).toMatchObject({ missing: 0, compared: all.length });
  expect(asked.length).toBeGreaterThan(4);
  for (const each of asked) expect(each).toEqual(['all', true]);
  await harness.close();
});
