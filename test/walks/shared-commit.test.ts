import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bytesOf } from '../../src/core/text-slice.js';
import { ResponseMemory } from '../../src/http/response-memory.js';
import { pagerFor } from '../../src/pagers/registry.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import type { OpenWalk } from '../../src/walks/open-walk.js';
import type { CountedPage, PagesToCommit } from '../../src/walks/pages-to-commit.js';
import { type ReceivedPage, readInFull } from '../../src/walks/received-page.js';
import { SharedCommit } from '../../src/walks/shared-commit.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { ownBytes, syncHarness } from './sync-harness.js';

let sandbox: Sandbox;
let database: TestDatabase;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: [
      { name: 'A', employees: 0 },
      { name: 'B', employees: 0 },
    ],
  });
  database = await testDatabase();
});
afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

const answers = new ResponseMemory();
const both = (n: number) => `{"id":"${n}","uid":"u${n}"}`;

test.each([
  [0, 1, ['{}', '{"id":"1"}', both(2), both(3), both(4), both(5)]],
  [1, 3, ['{}', '{}', '{}', '{"id":"1"}', '{"id":"2"}', both(3), '{}', both(5), both(6), both(7)]],
])('pages that differ in the id that they show are all named by one (%i)', async (n, most, records) => {
  const second = most === 1 ? '1' : '2';
  let isThirdThere = false;
  const harness = syncHarness(database.db, sandbox, endpointsOf({ employees: ENTRIES.employees }), {
    // The second page comes behind the third one.
    beforeRequest: async ({ query }) => void (query?.['skip'] === second && (await waitFor(() => isThirdThere))),
    respond: ({ path, query }) => {
      if (!path.endsWith('/employees')) return undefined;
      const skip = Number(query!['skip']);
      isThirdThere ||= skip > Number(second);
      const data = records.slice(skip, skip + Math.min(most, Number(query!['$take'])));
      return `{"totalRecords":${records.length},"totalDisplayRecords":${data.length},"data":[${data.join(',')}]}`;
    },
  });
  const company = await harness.onboard(sandbox.companies[n]!.companyId);
  await harness.sync(company);
  await harness.close();
  const rows = await database.db.prisma.employee.findMany({ where: company });
  const { idField } = await database.db.prisma.list.findFirstOrThrow({ where: company });
  expect(rows.length).toBeGreaterThan(0);
  expect(rows.map(({ id }) => id)).toEqual(rows.map(({ data }) => (data as Record<string, string>)[idField!]));
});

/** How many pages go into each commit, of pages with records of so many bytes, all of which have come. */
async function commitsOf(sizes: readonly number[], { records = 1, isKept = true } = {}): Promise<number[]> {
  const commits: number[] = [];
  const store = { commitPages: async (_: OpenWalk, { pages }: PagesToCommit) => void commits.push(pages.length) };
  const commit = new SharedCommit({ idField: 'id' } as OpenWalk, { store, clock: { monotonic: () => 0 }, answers });
  const source = Buffer.alloc(0);
  for (const [number, size] of sizes.entries()) {
    const texts = Array.from({ length: records }, () => ({ source, start: 0, end: Math.ceil(size / records) }));
    const ledger = { kind: 'new', ids: ['1'], keys: new Uint32Array(2) };
    const page = { records: isKept ? texts : [], rejected: isKept ? [] : texts, ledger } as unknown as CountedPage['page'];
    await commit.add({ page, number, newFrom: 0 }, answers.reserve(1), {} as never, true);
  }
  await commit.now();
  return commits;
}

test('a commit is large enough, and never too large for the database', async () => {
  const MB = 1024 * 1024;
  expect(await commitsOf(Array(260).fill(10))).toEqual([256, 4]);
  expect(await commitsOf(Array(5).fill(10 * MB))).toEqual([2, 2, 1]);
  expect(await commitsOf([60 * MB, 60 * MB])).toEqual([1, 1]);
  expect(await commitsOf(Array(5).fill(MB), { records: 500 })).toEqual([2, 2, 1]);
});

test('records that cannot be kept count as well', async () => {
  const MB = 1024 * 1024;
  expect(await commitsOf(Array(5).fill(10 * MB), { isKept: false })).toEqual([2, 2, 1]);
  expect(await commitsOf(Array(5).fill(MB), { records: 500, isKept: false })).toEqual([2, 2, 1]);
});

describe('the memory of a response', () => {
  const [endpoint] = endpointsOf({ employees: ENTRIES.employees });
  const data = Array.from({ length: 200 }, (_, n) => `{"id":"${n}","name":"${'x'.repeat(40)}"}`);
  const text = `{"totalRecords":200,"totalDisplayRecords":200,"data":[${data.join(',')}]}`;

  /** Adds a page to a commit; what the database is then given, and the response after it has answered. */
  async function commitOf(response: Buffer, read: (page: ReceivedPage) => Partial<ReceivedPage> = () => ({}), fails = false) {
    let given = '';
    const store = {
      commitPages: async (_: OpenWalk, { pages }: PagesToCommit) => {
        await nextTurn();
        const texts = pages.flatMap(({ page }) => [...page.records, ...page.rejected]);
        given = texts.map((each) => bytesOf(each).toString()).join();
        if (fails) throw new Error('no database');
      },
    };
    const commit = new SharedCommit({ idField: 'id' } as OpenWalk, { store, clock: { monotonic: () => 0 }, answers });
    const format = { resource: 'employees', id: ['id'], pager: pagerFor(endpoint!), ignoreTotals: false };
    const page = await readInFull({ bytes: response, headers: {}, url: 'http://service/' }, format, 'id');
    const memory = answers.reserve(1);
    memory.settle(response);
    await commit.add({ page: { ...page, ...read(page) }, number: 0, newFrom: 0 }, memory, {} as never, true);
    const waiting = response.length;
    await commit.now().catch(() => {});
    return { given, waiting, left: response.length };
  }

  test('is given back once its records are written', async () => {
    const length = Buffer.byteLength(text);
    expect(await commitOf(ownBytes(text))).toEqual({ given: data.join(), waiting: length, left: 0 });
    const marked = ownBytes(`\uFEFF${text}`);
    expect(await commitOf(marked)).toEqual({ given: data.join(), waiting: length + 3, left: 0 });
  });

  test('is given back at once where none of them is to be written', async () => {
    expect(await commitOf(ownBytes(text), () => ({ records: [] }))).toEqual({ given: '', waiting: 0, left: 0 });
  });

  test('is kept for records that are rejected, and when they could not be written', async () => {
    const rejected = (page: ReceivedPage) => ({
      records: [],
      rejected: page.records.map((each) => ({ ...each, reason: 'nul' as const })),
    });
    expect(await commitOf(ownBytes(text), rejected)).toMatchObject({ given: data.join(), left: 0 });
    expect(await commitOf(ownBytes(text), undefined, true)).toMatchObject({
      given: data.join(),
      left: Buffer.byteLength(text),
    });
  });
});
