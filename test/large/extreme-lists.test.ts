import v8 from 'node:v8';
import vm from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ApiRequest } from '../../src/http/api-client.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type HarnessOptions, type SyncHarness, syncHarness } from '../walks/sync-harness.js';

const { employees, documents } = ENTRIES;

let sandbox: Sandbox;
let database: TestDatabase;
let next = 0;

beforeAll(async () => {
  sandbox = await startSandbox({ companies: Array.from({ length: 5 }, (_, n) => ({ name: `C${n}`, employees: 0 })) });
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints: endpointsOf(ENTRIES), get: () => undefined });
});
afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

/** Works with a service that answers for this list as the test says, given the index and number of records asked for. */
async function withList<T>(
  entry: (typeof ENTRIES)['employees' | 'documents'],
  answer: (skip: number, take: number) => string,
  work: (harness: SyncHarness, company: Awaited<ReturnType<SyncHarness['onboard']>>) => Promise<T>,
): Promise<T> {
  const respond: NonNullable<HarnessOptions['respond']> = ({ path, query }: ApiRequest) =>
    /employees|documents/.test(path) ? answer(Number(query?.['skip']), Number(query?.['$take'])) : undefined;
  const endpoints = endpointsOf(entry === employees ? { employees } : { documents });
  const harness = syncHarness(database.db, sandbox, endpoints, { respond });
  try {
    return await work(harness, await harness.onboard(sandbox.companies[next++]!.companyId));
  } finally {
    await harness.close();
  }
}

const numbered = (count: number, member = 'id') => Array.from({ length: count }, (_, n) => `{"${member}":"${n}"}`);

test('a page of 150,000 records that cannot be kept ends the walk unverified, with the first of them kept aside', async () => {
  const page = `{"totalRecords":150000,"data":[${numbered(150_000, 'nr').join(',')}]}`;
  await withList(
    employees,
    () => page,
    async (harness, company) => {
      const run = await harness.sync(company);
      const walks = [{ unverified_reason: 'rejected_records', received: 150_000, rejected: 150_000, pages: 1 }];
      expect(run).toMatchObject({ status: 'succeeded', walks });
      const kept = { walk: { runId: run.id } };
      expect(await database.db.prisma.rejectedRecord.count({ where: kept })).toBe(1_000);
      const last = await database.db.prisma.rejectedRecord.findFirstOrThrow({ where: kept, orderBy: { position: 'desc' } });
      expect(last).toMatchObject({ reason: 'no_id', page: 0, position: 999 });
      expect(Buffer.from(last.text, 'base64').toString()).toBe('{"nr":"999"}');
    },
  );
});

test.each([2 ** 32 - 1, Number.MAX_SAFE_INTEGER])('a total of %i is not reached, and all is mirrored', async (total) => {
  const records = numbered(25);
  await withList(
    employees,
    (skip, take) => `{"totalRecords":${total},"data":[${records.slice(skip, skip + take).join(',')}]}`,
    async (harness, company) =>
      expect(await harness.sync(company)).toMatchObject({ status: 'succeeded', walks: [{ verified: false, inserted: 25 }] }),
  );
});

test('a page token that no request can hold is a malformed envelope', async () => {
  await withList(
    documents,
    () => '{"hasNextPage":true,"nextPageToken":"a\\ud800","data":[{"id":"1"}]}',
    async (harness, company) =>
      expect((await harness.sync(company)).walks).toMatchObject([{ error: { code: 'malformed_envelope' } }]),
  );
});

test('however long a list, a walk keeps some bytes of a record, and no page that is written', async () => {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc') as () => void;
  const alive: { skip: number; bytes: number }[] = [];
  const record = (n: number) => `{"id":"${n}","text":"${'x'.repeat(580)}"}`;
  const respond: NonNullable<HarnessOptions['respond']> = ({ path, query }) => {
    if (!path.includes('employees')) return undefined;
    const skip = Number(query?.['skip']);
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    alive.push({ skip, bytes: heapUsed + arrayBuffers });
    const data = Array.from({ length: Math.min(1_000, 40_000 - skip) }, (_, n) => record(skip + n));
    return `{"totalRecords":40000,"data":[${data.join(',')}]}`;
  };
  const endpoints = endpointsOf({ employees: { ...employees, pager: { ...employees.pager, size: 1_000 } } });
  const harness = syncHarness(database.db, sandbox, endpoints, { respond });
  const company = await harness.onboard(sandbox.companies[next++]!.companyId);
  expect(await harness.sync(company)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, inserted: 40_000 }] });
  await harness.close();
  // How many pages are on their way differs from moment to moment; the fewest do not.
  const least = (from: number, to: number) =>
    alive.filter(({ skip }) => skip > from && skip < to).toSorted((one, other) => one.bytes - other.bytes)[0]!;
  const [early, late] = [least(10_000, 20_000), least(30_000, 39_000)];
  expect((late.bytes - early.bytes) / (late.skip - early.skip)).toBeLessThan(100);
});
