import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { WorkMetrics } from '../../src/observability/work-metrics.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

const EMPLOYEES = 45;
const ENDPOINTS = endpointsOf({ employees: { ...ENTRIES.employees, pager: { ...ENTRIES.employees.pager, size: 20 } } });

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
const work = new WorkMetrics(['test']);
beforeAll(async () => {
  sandbox = await startSandbox({ companies: [{ name: 'Counted', employees: EMPLOYEES }] });
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints: ENDPOINTS, get: () => undefined });
  harness = syncHarness(database.db, sandbox, ENDPOINTS, { work });
});
afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});

/** The samples of a metric that are not 0, by their labels. */
async function counted(name: string): Promise<Record<string, number>> {
  const values = (await work.registry.getSingleMetric(name)!.get()).values as readonly {
    readonly value: number;
    readonly labels: Readonly<Record<string, string | number>>;
    readonly metricName?: string;
  }[];
  return Object.fromEntries(
    values
      .filter(({ value, metricName = name }) => value !== 0 && !metricName.endsWith('_bucket'))
      .map(({ value, labels, metricName }) => {
        const others = Object.entries(labels).filter(([label]) => label !== 'environment' && label !== 'resource');
        return [[metricName?.slice(name.length), ...others.map(([, text]) => text)].join(' ').trim(), value];
      }),
  );
}

test('runs, walks, pages, records, requests and the age of proofs are counted as they are in the tables', async () => {
  const company = await harness.onboard(sandbox.companies[0]!.companyId);
  const first = await harness.sync(company);
  expect(first.walks).toMatchObject([{ verified: true, received: EMPLOYEES, inserted: EMPLOYEES }]);
  expect(await counted('muster_proof_age_seconds')).toEqual({});
  expect(await counted('muster_records_written_total')).toEqual({ inserted: EMPLOYEES });

  await database.db.pool.query(`UPDATE muster.lists SET last_verified_at = now() - interval '100 hours'`);
  sandbox.lessons.break('shrink');
  await harness.sync(company, { mode: 'full' });
  sandbox.lessons.mend();
  const age = (await counted('muster_proof_age_seconds'))['_sum']!;
  expect(age).toBeGreaterThan(360_000);
  expect(age).toBeLessThan(370_000);
  expect((await counted('muster_proof_age_seconds'))['_count']).toBe(1);

  sandbox.lessons.break('lie');
  await harness.sync(company, { mode: 'full' });
  sandbox.lessons.mend();
  expect(await counted('muster_walks_ended_total')).toEqual({ verified: 2, unverified: 1 });
  expect(await counted('muster_runs_ended_total')).toEqual({ 'manual succeeded': 3 });

  const { rows } = await database.db.pool.query<{ pages: number; inserted: number; updated: number; deleted: number }>(
    `SELECT sum(pages)::int AS pages, sum(inserted)::int AS inserted, sum(updated)::int AS updated, sum(deleted)::int AS deleted FROM muster.walks`,
  );
  const { pages, ...written } = rows[0]!;
  const isOver0 = ([, value]: readonly [string, number]) => value > 0;
  expect(await counted('muster_records_written_total')).toEqual(Object.fromEntries(Object.entries(written).filter(isOver0)));
  expect(await counted('muster_pages_total')).toEqual({ '': pages });
  const { _count: answers } = await counted('muster_page_duration_seconds');
  expect(answers).toBeGreaterThanOrEqual(pages);
  // The company's own record is asked for by each run, and is no page.
  expect(await counted('muster_service_requests_total')).toEqual({ '2xx': answers! + 3 });
});

test('a walk that fails is counted, and so is why', async () => {
  const before = await counted('muster_service_requests_total');
  const company = { environment: 'test', companyId: sandbox.companies[0]!.companyId } as const;
  sandbox.lessons.break('forbid');
  await harness.sync(company, { mode: 'full' });
  sandbox.lessons.mend();
  expect(await counted('muster_walks_ended_total')).toMatchObject({ failed: 1 });
  expect((await counted('muster_service_requests_total'))['4xx']).toBeGreaterThan(before['4xx'] ?? 0);
});
