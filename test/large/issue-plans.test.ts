import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../src/db/connection/database.js';
import { readByIndex } from '../../src/db/statements/by-index.js';
import { countCompanies } from '../../src/db/tables/connections.js';
import { countOngoingIssues, reconcileIssues } from '../../src/db/tables/issues.js';
import { countProofs, countProvedSince } from '../../src/db/tables/list-counts.js';
import { tryLock } from '../../src/db/tables/locks.js';
import { addNightExports, findDueNightExports, findLastExport } from '../../src/db/tables/night-exports.js';
import { countNightAnew, findFirstRunTime, listNights, readListNights } from '../../src/db/tables/nights.js';
import { countActiveRuns, countNight, measureWait } from '../../src/db/tables/run-counts.js';
import { claimRun, endRun, renewClaims } from '../../src/db/tables/runs.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';

// What the overview and the sweep for issues read where there are 10,000 companies with months of runs, told by the counters of
// PostgreSQL: they see the plans of statements as they are sent, a plan for every value included.

const COMPANIES = 10_000;
const NIGHTS = 8;
const COMPANY = { environment: 'production', companyId: '00000000-0000-4000-8000-000000000001' } as const;
const SEARCH = {
  resources: ['employees', 'departments'],
  exported: ['employees'],
  staleAfterHours: 26,
  secondsLeft: 3_600,
  isNightYoung: false,
  environments: [],
  isWorker: true,
  hasWebhook: false,
};

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  const { pool } = database.db;
  await pool.query(`
    INSERT INTO muster.connections (environment, company_id, paused, created_at)
    SELECT CASE WHEN n % 100 = 0 THEN 'test' ELSE 'production' END, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, n % 1000 = 1,
      now() - interval '100 days'
    FROM generate_series(1, ${COMPANIES}) n`);
  await pool.query(`
    INSERT INTO muster.lists (environment, company_id, resource, last_verified_at)
    SELECT environment, company_id, unnest('{employees,departments}'::text[]), now() - interval '1 hour' FROM muster.connections`);
  await pool.query(`
    INSERT INTO muster.runs (environment, company_id, trigger, mode, status, created_at, finished_at)
    SELECT environment, company_id, 'nightly', 'full', CASE WHEN n = 0 AND company_id::text LIKE '%7' THEN 'failed' ELSE 'succeeded' END,
      now() - n * interval '1 day' - interval '1 hour', now() - n * interval '1 day'
    FROM generate_series(${NIGHTS - 1}, 0, -1) n, muster.connections`);
  await pool.query(`
    INSERT INTO muster.walks (run_id, position, environment, company_id, resource, status, verified, finished_at, error)
    SELECT id, p, environment, company_id, (ARRAY['employees', 'departments'])[p + 1], status, status = 'succeeded', finished_at,
      CASE WHEN status = 'failed' THEN '{"code": "service_error", "message": ""}'::jsonb END
    FROM muster.runs, generate_series(0, 1) p`);
  await pool.query(`
    INSERT INTO muster.issues (cause, environment, severity, companies, told, status, resolved_at)
    SELECT 'service_error', CASE WHEN n % 100 = 0 THEN 'test' ELSE 'production' END, 'warning', 1, 1, 'resolved', now() - interval '2 days'
    FROM generate_series(1, 5000) n`);
  await pool.query('ANALYZE');
});
afterAll(() => database.close());

const LARGE = ['runs', 'walks', 'lists', 'connections', 'issues'];

interface Reads {
  readonly scans: number;
  readonly rows: number;
}

/** The name by which the sessions that are measured are found. */
const MEASURED = 'measured reading';

/** Sequential scans and rows of each large table, as sessions of their own read it: a session writes its last counters when it ends. */
async function inItsOwn(work: (db: Database) => Promise<unknown>): Promise<Record<string, Reads>> {
  const { pool } = database.db;
  const counters = async () => {
    const { rows } = await pool.query<{ name: string; scans: number; rows: number }>(
      `SELECT relname AS name, seq_scan::int AS scans, (seq_tup_read + COALESCE(idx_tup_fetch, 0))::int AS rows
       FROM pg_stat_user_tables WHERE schemaname = 'muster' AND relname = ANY($1)`,
      [LARGE],
    );
    return new Map(rows.map((row) => [row.name, row]));
  };
  // What this session has read before.
  await pool.query('SELECT pg_stat_force_next_flush()');
  const before = await counters();
  const db = openDatabase({ url: database.url, poolSize: 1, applicationName: MEASURED });
  // From the sixth on, PostgreSQL may take a plan that fits every value.
  for (let i = 0; i < 7; i++) await work(db);
  await db.close();
  // PostgreSQL lists a session until its counters are written. The counters cannot tell: a session writes some of them once a second, and the rest
  // would be counted as read by the next test.
  const listed = () => pool.query('SELECT 1 FROM pg_stat_activity WHERE application_name = $1', [MEASURED]);
  await waitFor(async () => (await listed()).rowCount === 0, { what: 'the end of the measured sessions' });
  const after = await counters();
  return Object.fromEntries(
    LARGE.map((name) => [
      name,
      { scans: after.get(name)!.scans - before.get(name)!.scans, rows: after.get(name)!.rows - before.get(name)!.rows },
    ]),
  );
}

test('a sweep reads no large table from its beginning, and the newest walk of each list alone', async () => {
  const reads = await inItsOwn((db) => reconcileIssues(db, { take: (tx) => tryLock(tx, 'issues') }, SEARCH));
  for (const [table, { scans }] of Object.entries(reads)) expect([table, scans]).toEqual([table, 0]);
  expect(reads['walks']!.rows).toBeLessThanOrEqual(7 * 2 * COMPANIES);
  expect(reads['walks']!.rows).toBeGreaterThan(COMPANIES);
  expect(reads['issues']!.rows).toBeLessThan(1_000);
  expect(
    await database.db.prisma.issue.findFirstOrThrow({ where: { status: 'ongoing', environment: 'production' } }),
  ).toMatchObject({
    cause: 'service_error',
    companies: 1_000,
  });
});

test('the overview reads no large table from its beginning, the runs of one night alone, and no walk', async () => {
  const since = new Date(Date.now() - 12 * 3_600_000);
  const reads = await inItsOwn((db) =>
    readByIndex(db, async (tx) => {
      await countCompanies(tx);
      expect(await countProofs(tx, SEARCH)).toMatchObject({
        total: 2 * COMPANIES,
        verified: 2 * COMPANIES,
      });
      await countProvedSince(tx, { ...SEARCH, since });
      await countActiveRuns(tx);
      await measureWait(tx);
      expect((await countNight(tx, { since })).finished).toBe(COMPANIES);
      await countOngoingIssues(tx);
    }),
  );
  for (const [table, { scans }] of Object.entries(reads)) expect([table, scans]).toEqual([table, 0]);
  expect(reads['runs']!.rows).toBeLessThanOrEqual(7 * COMPANIES);
  expect(reads['walks']!.rows).toBe(0);
  expect(reads['issues']!.rows).toBeLessThan(100);
});

test('counting a night reads the runs of that night and their walks, and no large table from its beginning', async () => {
  const endedAt = new Date(Date.now() - 2 * 86_400_000);
  const night = {
    night: '2026-11-01',
    beganAt: new Date(endedAt.getTime() - 86_400_000),
    endedAt,
    endsAt: new Date(),
    resources: ['departments', 'employees'],
  };
  const reads = await inItsOwn(async (db) => {
    await countNightAnew(db, night);
    // The newest night, which has no run yet.
    await countNightAnew(db, { ...night, night: '2026-11-24', beganAt: new Date(), endedAt: null });
    await findFirstRunTime(db, { days: 90 });
  });
  for (const [table, { scans }] of Object.entries(reads)) expect([table, scans]).toEqual([table, 0]);
  expect(reads['runs']!.rows).toBeLessThanOrEqual(7 * (COMPANIES + 1));
  expect(reads['walks']!.rows).toBeLessThanOrEqual(7 * 2 * COMPANIES);
  const [, counted] = await listNights(database.db, { since: night.beganAt });
  expect(counted).toMatchObject({ due: COMPANIES, succeeded: COMPANIES, lists: 2 * COMPANIES, verified: 2 * COMPANIES });
});

test('what is to be exported is found without a look at companies and runs that have ended', async () => {
  await database.db.pool.query(`
    INSERT INTO muster.nights VALUES ('2026-11-23', 'production', now(), 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, FALSE)
    ON CONFLICT (night, environment) DO UPDATE SET due = 1`);
  const exports = { resources: SEARCH.resources, endsAt: new Date() };
  const reads = await inItsOwn(async (db) => {
    await addNightExports(db, exports);
    await findDueNightExports(db, { ...exports, limit: 10 });
    await readByIndex(db, (tx) => findLastExport(tx));
  });
  for (const [table, { scans, rows }] of Object.entries(reads)) expect([table, scans, rows < 100]).toEqual([table, 0, true]);
  const due = await findDueNightExports(database.db, { ...exports, limit: 10 });
  expect(due.filter(({ environment }) => environment === 'production')).toMatchObject([
    { night: '2026-11-23' },
    { night: '2026-11-23' },
  ]);
});

test("the nights are shown without a look at runs, and a company's without those of others", async () => {
  await database.db.pool.query('TRUNCATE muster.nights CASCADE');
  await database.db.pool.query(`
    INSERT INTO muster.nights SELECT now()::date - n, 'production', now() - n * interval '1 day' - interval '2 hours',
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, TRUE FROM generate_series(0, 89) n`);
  const days = 5;
  const reads = await inItsOwn(async (db) => {
    const since = new Date(Date.now() - days * 86_400_000);
    await listNights(db, { since });
    expect(await readListNights(db, { ...COMPANY, resources: SEARCH.resources, since })).toHaveLength(2 * days);
  });
  for (const [table, { scans }] of Object.entries(reads)) expect([table, scans]).toEqual([table, 0]);
  expect(reads['runs']!.rows).toBeLessThanOrEqual(7 * (NIGHTS + 1));
  expect(reads['walks']!.rows).toBeLessThanOrEqual(7 * 2 * NIGHTS);
});

test('a run is claimed and ended without a look at the others that are under way, of which the statistics know nothing', async () => {
  const { pool } = database.db;
  await pool.query('VACUUM ANALYZE muster.runs');
  const { rows: waiting } = await pool.query<{ id: string }>(
    `INSERT INTO muster.runs (environment, company_id, trigger, mode)
     SELECT environment, company_id, 'nightly', 'full' FROM muster.connections WHERE NOT paused LIMIT 1000 RETURNING id`,
  );
  const left = waiting.values();
  const reads = await inItsOwn(async (db) => {
    const claimed = (await claimRun(db, { id: left.next().value!.id, worker: 'a worker' }))!;
    expect(await renewClaims(db, { ids: [claimed.id], worker: 'a worker' })).toHaveLength(1);
    expect(await endRun(db, { ...claimed, status: 'succeeded' })).toBe(true);
  });
  expect(reads['runs']!.rows).toBeLessThan(200);
  await pool.query('DELETE FROM muster.runs WHERE id = ANY($1)', [waiting.map(({ id }) => id)]);
});
