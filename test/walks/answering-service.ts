import { randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { endpointsOf } from './company-fixture.js';
import { foreignHarness } from './sync-harness.js';

export interface Answer {
  readonly status?: number;
  /** A list of values is sent as that many headers. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Undefined: no body. A text is sent as it is. */
  readonly body?: unknown;
}
export type Respond = (asked: URLSearchParams, body: Record<string, unknown>, headers: IncomingHttpHeaders) => Answer;

interface Course {
  /** The walk is interrupted once, behind so many pages. */
  readonly stopAfterPages?: number;
  /** Walks of the list, of which the last one counts. */
  readonly nights?: number;
}

const PATH = '/api/companies/{company_id}/things';

/** A service with one list, `things`, that answers as a test says, and walks over that list with a new company each. */
async function answeringService(database: TestDatabase) {
  let respond: Respond = () => ({ status: 500 });
  let asked: string[] = [];
  const service = createServer((request, response) => {
    void (async () => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const { pathname, search, searchParams } = new URL(request.url!, 'http://service');
      const sent = parts.length > 0 ? (JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>) : {};
      if (pathname.endsWith('/things')) asked.push(search);
      const { status = 200, headers, body } = respond(searchParams, sent, request.headers);
      response.writeHead(status, { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers });
      response.end(typeof body === 'string' || body === undefined ? body : JSON.stringify(body));
    })();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => service.once('listening', resolve));
  const url = new URL(`http://127.0.0.1:${(service.address() as AddressInfo).port}`);
  const endpoints = (entry: object) => endpointsOf({ things: { method: 'GET', path: PATH, ...entry } });
  await ensureMirrorTables(database.db, {
    endpoints: endpoints({ pager: { style: 'skip-take', size: 1 } }),
    get: () => undefined,
  });

  /** Mirrors the list that is declared so, and has it read a second time where `later` answers. */
  async function walk(entry: object, answers: Respond, later?: Respond, { stopAfterPages, nights = 1 }: Course = {}) {
    const harness = foreignHarness(database.db, url, endpoints(entry));
    [respond, asked] = [answers, []];
    try {
      const company = await harness.connect(randomUUID());
      let { id, walks } = await harness.sync(company, {}, stopAfterPages === undefined ? {} : { stopAfterPages });
      if (stopAfterPages !== undefined) ({ walks } = await harness.work(id));
      for (let night = 1; night < nights; night += 1) ({ id, walks } = await harness.sync(company));
      const [walked] = walks;
      const searches = [...asked];
      respond = later ?? answers;
      const verify = later && (await harness.verify(company)).walks[0];
      return { ...walked!, asked: searches, again: verify };
    } finally {
      await harness.close();
    }
  }

  return { walk, close: () => service.close() };
}

/** Records with the ids from `from` on, up to `to`. */
export function records(from: number, to: number) {
  return Array.from({ length: Math.max(0, to - from) }, (_, n) => ({ id: from + n }));
}

type Walk = Awaited<ReturnType<typeof answeringService>>['walk'];

/** The service for the tests of one file, in a database of its own: its `walk`. */
export function walksOverAnswers(): Walk {
  let database: TestDatabase;
  let service: Awaited<ReturnType<typeof answeringService>>;
  beforeAll(async () => {
    database = await testDatabase();
    service = await answeringService(database);
  });
  afterAll(async () => {
    service.close();
    await database.close();
  });
  return (...of) => service.walk(...of);
}
