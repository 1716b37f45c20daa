import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { endpointsOf } from './company-fixture.js';
import { foreignHarness } from './sync-harness.js';

// A service, or a proxy before it, that encodes its answers otherwise than it is asked to.

const all = Array.from({ length: 7 }, (_, id) => ({ id, name: 'é'.repeat(50) }));
const endpoints = endpointsOf({ coded: { method: 'GET', path: '/{company_id}/coded', pager: { style: 'skip-take', size: 3 } } });
let database: TestDatabase;
let service: Server;
let coding: string;
let encode: (body: Buffer) => Buffer;

beforeAll(async () => {
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  service = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://service');
    const [skip, take] = [Number(searchParams.get('skip')), Number(searchParams.get('take'))];
    const body = Buffer.from(JSON.stringify({ totalRecords: all.length, data: all.slice(skip, skip + take) }));
    const isList = pathname.endsWith('/coded');
    response.writeHead(200, { 'content-type': 'application/json', ...(isList && { 'content-encoding': coding }) });
    response.end(isList ? encode(body) : body);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => service.once('listening', resolve));
});
afterAll(async () => {
  service.close();
  await database.close();
});

async function walk(of: string, by: (body: Buffer) => Buffer) {
  [coding, encode] = [of, by];
  const url = new URL(`http://127.0.0.1:${(service.address() as AddressInfo).port}`);
  const harness = foreignHarness(database.db, url, endpoints);
  const company = await harness.connect(randomUUID());
  const [walked] = (await harness.sync(company)).walks;
  const verify = walked!.verified ? (await harness.verify(company)).walks[0]!.verify : undefined;
  await harness.close();
  return { walked: walked!, verify };
}

test.each<[string, (body: Buffer) => Buffer]>([
  ['br', brotliCompressSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['deflate, gzip', (body) => gzipSync(deflateSync(body))],
  ['UTF-8', (body) => body],
  ['none', (body) => body],
])('a list in the content-encoding %s is proved, and read a second time', async (of, by) => {
  expect(await walk(of, by)).toMatchObject({
    walked: { verified: true, received: all.length },
    verify: { missing: 0, extra: 0, different: 0, compared: all.length },
  });
});

test('a list in a content-encoding that cannot be undone fails, and names both', async () => {
  const { walked } = await walk('zstd', (body) => body);
  expect(walked).toMatchObject({ resource: 'coded', status: 'failed', verified: false });
  expect(walked.error).toMatchObject({
    code: 'malformed_response',
    message: expect.stringMatching(/GET 127\.0\.0\.1:\d+\/.*\/coded has the content-encoding zstd.*Muster asks for gzip/),
  });
});
