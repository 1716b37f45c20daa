import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { foldGoneCounts, WorkCounts } from '../../src/observability/work-counts.js';
import { WorkMetrics } from '../../src/observability/work-metrics.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { metricsOf } from './metrics-of.js';

const logger = pino({ level: 'silent' });
const LIST = { environment: 'test', resource: 'employees' } as const;

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
beforeEach(() => database.db.pool.query('TRUNCATE muster.work_counts'));
afterAll(() => database.close());

/** A process that counts. */
function processNamed(process: string) {
  const work = new WorkMetrics(['test']);
  return { work, counts: new WorkCounts(database.db, { work, process, logger }) };
}

/** The sample of a scrape, or undefined. Labels come in the order in which the database keeps them. */
async function shown(sample: string): Promise<number | undefined> {
  const wanted = parts(sample);
  for (const line of (await metricsOf(database.db).metrics()).split('\n')) {
    const at = line.lastIndexOf(' ');
    if (!line.startsWith('#') && parts(line.slice(0, at)) === wanted) return Number(line.slice(at));
  }
  return undefined;
}
const parts = (sample: string) => sample.split(/[{,}]/).toSorted().join();

const WALKS = 'muster_walks_ended_total{environment="test",resource="employees",outcome="verified"}';
const rows = async () =>
  (await database.db.pool.query<{ process: string }>('SELECT process FROM muster.work_counts ORDER BY process')).rows.map(
    ({ process }) => process,
  );
const age = (process: string) =>
  database.db.pool.query(`UPDATE muster.work_counts SET counted_at = now() - interval '2 hours' WHERE process = $1`, [process]);

test('a scrape shows the sum of all processes, as counters and histograms that begin at 0', async () => {
  const [one, other] = [processNamed('a/1'), processNamed('b/1')];
  for (const { work } of [one, other]) {
    work.walkEnded(LIST, 'verified');
    work.proofReplaced(LIST, 86_500);
    work.requestsOf('test').ended('2xx');
    work.pagesCommitted(LIST, { pages: 2, received: 900, inserted: 4, updated: 1 });
  }
  other.work.walkEnded(LIST, 'verified');
  await Promise.all([one.counts.write(), other.counts.write()]);
  expect(await shown(WALKS)).toBe(3);
  expect(await shown('muster_pages_total{environment="test",resource="employees"}')).toBe(4);
  expect(await shown('muster_records_written_total{environment="test",resource="employees",change="inserted"}')).toBe(8);
  expect(await shown('muster_service_requests_total{environment="test",outcome="2xx"}')).toBe(2);
  expect(await shown('muster_service_requests_total{environment="test",outcome="429"}')).toBe(0);
  const bucket = (le: string) => `muster_proof_age_seconds_bucket{le="${le}",environment="test",resource="employees"}`;
  expect([await shown(bucket('86400')), await shown(bucket('90000')), await shown(bucket('+Inf'))]).toEqual([0, 2, 2]);
  expect(await shown('muster_proof_age_seconds_sum{environment="test",resource="employees"}')).toBe(173_000);
});

test('counts never fall and are never there twice: through repeated writes, a clean stop, a death, and sweeps at the same time', async () => {
  const [stopped, killed] = [processNamed('a/1'), processNamed('b/1')];
  stopped.work.walkEnded(LIST, 'verified');
  killed.work.walkEnded(LIST, 'verified');
  for (const { counts } of [stopped, killed, stopped]) await counts.write();
  expect(await shown(WALKS)).toBe(2);
  stopped.work.walkEnded(LIST, 'verified'); // after the last write: the stop stores it
  await stopped.counts.stop();
  await stopped.counts.stop();
  expect(await rows()).toEqual(['b/1/0', 'total']);
  expect(await shown(WALKS)).toBe(3);
  await foldGoneCounts(database.db); // it wrote just now
  expect(await rows()).toEqual(['b/1/0', 'total']);
  await age('b/1/0');
  await Promise.all([1, 2, 3].map(() => foldGoneCounts(database.db)));
  expect(await rows()).toEqual(['total']);
  expect(await shown(WALKS)).toBe(3);
});

test('a process that was frozen for so long that it counted as gone goes on from 0 under another name', async () => {
  const { work, counts } = processNamed('a/1');
  work.walkEnded(LIST, 'verified');
  await counts.write();
  await age('a/1/0');
  await foldGoneCounts(database.db);
  work.walkEnded(LIST, 'verified');
  await counts.write(); // finds its row gone; what it counted since the last write is lost
  expect(await shown(WALKS)).toBe(1);
  work.walkEnded(LIST, 'verified');
  await counts.write();
  expect(await rows()).toEqual(['a/1/1', 'total']);
  expect(await shown(WALKS)).toBe(2);
});

test('where nothing was counted, nothing is written but a sign of life', async () => {
  const { counts } = processNamed('a/1');
  const written = async () =>
    (await database.db.pool.query<{ xmin: string }>('SELECT xmin::text FROM muster.work_counts')).rows[0]!.xmin;
  await counts.write();
  const first = await written();
  for (let write = 1; write < 120; write++) await counts.write();
  expect(await written()).toBe(first);
  await counts.write();
  expect(await written()).not.toBe(first);
});
