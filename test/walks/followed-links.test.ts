import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { endpointsOf } from './company-fixture.js';
import { foreignHarness } from './sync-harness.js';

// A list whose pages name each other by addresses that are not the one that Muster asks, and a stranger who listens.

const RECORDS = 7;
const SIZE = 3;

let database: TestDatabase;
let service: Server;
let stranger: Server;
let url: URL;
/** Port of the stranger. */
let port: number;
let received: { path: string; token: string | undefined; of: 'service' | 'stranger' }[];
/** The link to the page of this path. */
let linkTo: (path: string) => string;
let context: string | undefined;

beforeAll(async () => {
  database = await testDatabase();
  const server = (of: 'service' | 'stranger') =>
    createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url!, 'http://service');
      if (/\/(members|headers)$/.test(pathname)) received.push({ path: request.url!, token: request.headers.authorization, of });
      const from = Number(searchParams.get('from') ?? 0);
      const data = Array.from({ length: Math.max(0, Math.min(SIZE, RECORDS - from)) }, (_, n) => ({ id: from + n }));
      const next = from + SIZE < RECORDS ? linkTo(`${pathname}?from=${from + SIZE}`) : undefined;
      response.setHeader('content-type', 'application/json');
      if (!pathname.includes('headers'))
        return response.end(JSON.stringify({ '@odata.context': context, value: data, next: next ?? null }));
      if (next !== undefined) response.setHeader('link', `<${next}>; rel="next"`);
      return response.end(JSON.stringify(data));
    }).listen(0, '127.0.0.1');
  service = server('service');
  stranger = server('stranger');
  await Promise.all([service, stranger].map((each) => new Promise((resolve) => each.once('listening', resolve))));
  url = new URL(`http://127.0.0.1:${(service.address() as AddressInfo).port}`);
  ({ port } = stranger.address() as AddressInfo);
  const endpoints = endpointsOf({ links: { method: 'GET', path: '/{company_id}', pager: { style: 'odata', size: SIZE } } });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
});
beforeEach(() => ([received, context] = [[], undefined]));
afterAll(async () => {
  for (const each of [service, stranger]) each.close();
  await database.close();
});

async function walk(where: 'members' | 'headers', more: object = {}) {
  const fields = where === 'headers' ? { data: 'none' } : { data: 'value', next: 'next' };
  const pager = { style: 'next-link', size: SIZE, ...more };
  const entry = { method: 'GET', path: `/{company_id}/${where}`, pager, fields };
  const harness = foreignHarness(database.db, url, endpointsOf({ links: entry }));
  try {
    const company = await harness.connect(randomUUID());
    const [walked] = (await harness.sync(company)).walks;
    const walkReceived = received;
    received = [];
    const verify = walked!.verified ? (await harness.verify(company)).walks[0]!.verify : undefined;
    return { walked: walked!, walkReceived, verify };
  } finally {
    await harness.close();
  }
}

describe.each(['members', 'headers'] as const)('links in %s', (where) => {
  test.each<[string, (path: string) => string, object?]>([
    ['the same host at the port of another server', (path) => `http://127.0.0.1:${port}${path}`],
    ['the same host by TLS', (path) => `https://127.0.0.1${path}`],
    ['an inner host that the entry names', (path) => `http://api-7.internal:8080${path}`, { hosts: ['API-7.internal'] }],
    ['no host', (path) => path],
  ])('to %s are asked of the API itself, with the token', async (_what, link, more) => {
    linkTo = link;
    const { walked, walkReceived, verify } = await walk(where, more);
    expect(walked).toMatchObject({ verified: true, proof: 'token-chain', received: RECORDS });
    expect(verify).toMatchObject({ missing: 0, extra: 0, different: 0, compared: RECORDS });
    for (const { of, token } of [...walkReceived, ...received]) expect([of, token]).toEqual(['service', 'Bearer a.b.c']);
    expect(walkReceived).toHaveLength(3);
  });

  test.each<[string, (path: string) => string, object?]>([
    ['another host', (path) => `http://localhost:${port}${path}`],
    ['another host without a scheme', (path) => `//localhost:${port}${path}`],
    ['another host with backslashes', (path) => `\\\\localhost:${port}${path}`],
    ['another host that the API seems to log in to', (path) => `http://127.0.0.1@localhost:${port}${path}`],
    [
      'another port of a host that the entry names with one',
      (path) => `http://localhost:${port}${path}`,
      { hosts: ['localhost:1'] },
    ],
  ])('to %s are refused, and say which member would allow them', async (_what, link, more) => {
    linkTo = link;
    const { walked, walkReceived } = await walk(where, more);
    expect(walked).toMatchObject({ status: 'failed', verified: false });
    expect(walked.error).toMatchObject({
      code: 'malformed_envelope',
      message: expect.stringContaining('pager: { hosts: [localhost'),
    });
    for (const { of } of walkReceived) expect(of).toBe('service');
  });
});

test('links of an answer whose context is of another host are relative to what was asked', async () => {
  context = `http://localhost:${port}/odata/$metadata#Links`;
  linkTo = (path) => path.slice(path.indexOf('members'));
  expect(await walk('members')).toMatchObject({ walked: { verified: true, received: RECORDS }, verify: { missing: 0 } });
});

test('links that are a query alone are of the address that was asked, whatever the context', async () => {
  context = '../$metadata#Links';
  linkTo = (path) => path.slice(path.indexOf('?'));
  expect(await walk('members')).toMatchObject({ walked: { verified: true, received: RECORDS }, verify: { missing: 0 } });
});
