import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../src/db/connection/database.js';
import type { Transaction } from '../../src/db/connection/transaction.js';
import { listAuditEntries } from '../../src/db/tables/audit.js';
import { listCertificates } from '../../src/db/tables/certificates.js';
import { listConnections } from '../../src/db/tables/connection-list.js';
import { listHolds } from '../../src/db/tables/holds.js';
import { listIssues } from '../../src/db/tables/issues.js';
import { findListToRewrite } from '../../src/db/tables/list-privacy.js';
import { findListStates } from '../../src/db/tables/list-states.js';
import { findActiveTokens, listNamedTokens } from '../../src/db/tables/named-tokens.js';
import { listNotifications } from '../../src/db/tables/notifications.js';
import { listRejectedRecords } from '../../src/db/tables/rejected-records.js';
import { listRuns } from '../../src/db/tables/run-list.js';
import { listColumns } from '../../src/db/tables/schema-columns.js';
import { companyIdOf } from '../support/company-ids.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

// What a page of a list reads, whichever filters are given, told by the counters of PostgreSQL: they see a sequential scan and a sort of all that an
// index gives alike. The tables are as the planner knows them in earnest: full, and analysed.

const COMPANIES = 20_000;
const RUNS = 60_000;
const ENTRIES = 30_000;
const ISSUES = 20_000;
const CERTIFICATES = 40_000;
/** Runs whose walks are kept: the newest. */
const WALKED = RUNS / 4;
const LIMIT = 20;
/** From the sixth on, PostgreSQL may take a plan that fits every value. */
const TIMES = 7;
/** Rows of a page, the one too many, and some that a page of another table's rows brings along. */
const MOST_ROWS = 5 * LIMIT;

let database: TestDatabase;
const ID = '00000000-0000-4000-8000-000000000001';

beforeAll(async () => {
  database = await testDatabase();
  const { pool } = database.db;
  await pool.query(`
    WITH companies AS (
      INSERT INTO muster.connections (environment, company_id, paused)
      SELECT CASE WHEN n % 100 = 0 THEN 'test' ELSE 'production' END, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, n % 1000 = 1
      FROM generate_series(1, ${COMPANIES}) n RETURNING environment, company_id),
    tokens AS (INSERT INTO muster.tokens (environment, company_id, refresh_token) SELECT environment, company_id, 'encrypted' FROM companies),
    names AS (INSERT INTO mirror.companies (environment, company_id, name) SELECT environment, company_id, 'Company' FROM companies)
    INSERT INTO muster.lists (environment, company_id, resource)
    SELECT environment, company_id, unnest('{employees,departments}'::text[]) FROM companies`);
  // The newest runs are of other companies and states than most filters ask for.
  await pool.query(`
    INSERT INTO muster.runs (environment, company_id, trigger, mode, status, created_at)
    SELECT CASE WHEN n % 100 = 0 AND n < ${RUNS / 3} THEN 'test' ELSE 'production' END, ('00000000-0000-4000-8000-' || lpad((n % ${COMPANIES / 2})::text, 12, '0'))::uuid,
      CASE WHEN n % 900 = 0 AND n < ${RUNS / 3} THEN 'manual' ELSE 'nightly' END, 'full',
      CASE WHEN n % 500 = 0 AND n < ${RUNS / 3} THEN 'failed' ELSE 'succeeded' END, now() - (${RUNS} - n) * interval '1 minute'
    FROM generate_series(1, ${RUNS}) n`);
  // What is asked for is rare in the newest entries, by itself and together.
  await pool.query(`
    INSERT INTO muster.audit (actor, role, action, environment, company_id)
    SELECT CASE WHEN n % 3 = 0 AND n < ${ENTRIES / 2} THEN 'anna' ELSE 'admin' END, 'admin',
      CASE WHEN n % 3 = 1 AND n < ${ENTRIES / 2} OR n % 999 = 0 THEN 'run.cancel' ELSE 'company.sync' END,
      CASE WHEN n % 3 = 2 AND n < ${ENTRIES / 2} OR n % 999 = 0 THEN 'test' ELSE 'production' END,
      ('00000000-0000-4000-8000-' || lpad((n % ${COMPANIES / 2})::text, 12, '0'))::uuid
    FROM generate_series(1, ${ENTRIES}) n`);
  // Of the runs of the last three nights each has two walks, of which every seventh rejected something; the newest of each list is the last one.
  await pool.query(`
    INSERT INTO muster.walks (run_id, position, environment, company_id, resource, status, verified, rejected, unverified_reason)
    SELECT id, position, environment, company_id, resource, 'succeeded', seq % 7 <> 0, CASE WHEN seq % 7 = 0 THEN 3 ELSE 0 END,
      CASE WHEN seq % 7 = 0 THEN 'rejected_records' END
    FROM muster.runs, unnest('{employees,departments}'::text[]) WITH ORDINALITY AS r(resource, position) WHERE seq > ${RUNS - WALKED};
    INSERT INTO muster.rejected_records (walk_id, pass, page, position, reason, text)
    SELECT id, 1, 0, n, 'no_id', 'e30=' FROM muster.walks, generate_series(1, 3) n WHERE rejected > 0;
    UPDATE muster.lists l SET last_run_id = r.id, last_verified_at = now()
    FROM (SELECT DISTINCT ON (environment, company_id) * FROM muster.runs ORDER BY environment, company_id, seq DESC) r
    WHERE l.environment = r.environment AND l.company_id = r.company_id`);
  await pool.query(`
    INSERT INTO muster.holds (environment, company_id, resource, run_id, walk_id, count, living, status)
    SELECT CASE WHEN n % 100 = 0 THEN 'test' ELSE 'production' END, ('00000000-0000-4000-8000-' || lpad((n % 999)::text, 12, '0'))::uuid, 'employees',
      gen_random_uuid(), gen_random_uuid(), 1, 1, CASE WHEN n % 500 = 0 THEN 'approved' ELSE 'superseded' END FROM generate_series(1, 20000) n;
    INSERT INTO muster.notifications (environment, company_id, type, change, status)
    SELECT CASE WHEN n % 100 = 0 THEN 'test' ELSE 'production' END, ('00000000-0000-4000-8000-' || lpad((n % 999)::text, 12, '0'))::uuid,
      CASE WHEN n % 400 = 0 THEN 'deletions_held' ELSE 'run_failed' END, n::text, CASE WHEN n % 300 = 0 THEN 'failed' ELSE 'delivered' END
    FROM generate_series(1, 20000) n`);
  await pool.query(`
    INSERT INTO muster.issues (cause, environment, severity, companies, told, status)
    SELECT 'service_error', CASE WHEN n % 100 = 0 AND n < ${ISSUES / 2} THEN 'test' ELSE 'production' END, 'warning', 1, 1, 'resolved'
    FROM generate_series(1, ${ISSUES}) n`);
  // Of the newest none is of `test`, nor of the list that is asked for.
  await pool.query(`
    INSERT INTO muster.certificates (id, environment, company_id, resource, verified_at, jws)
    SELECT n, CASE WHEN n % 100 = 0 AND n < ${CERTIFICATES / 2} THEN 'test' ELSE 'production' END, ('00000000-0000-4000-8000-' || lpad((n % 999)::text, 12, '0'))::uuid,
      CASE WHEN n % 7 = 0 AND n < ${CERTIFICATES / 2} THEN 'absences' WHEN n % 2 = 0 THEN 'employees' ELSE 'departments' END, now() - (${CERTIFICATES} - n) * interval '1 minute', 'e30.e30.e30'
    FROM generate_series(1, ${CERTIFICATES}) n`);
  await pool.query('VACUUM ANALYZE');
});
afterAll(() => database.close());

/** Rows of each table that the reading reads in the worst of several times. */
async function rowsRead<T extends string>(
  tables: readonly T[],
  read: (db: Database) => Promise<unknown>,
): Promise<Record<T, number>> {
  const reading = async (tx: Transaction) => {
    const count = async () => {
      const rows = await tx.$queryRaw<{ name: T; rows: bigint }[]>`
        SELECT name, seq_tup_read + COALESCE(idx_tup_fetch, 0) AS rows
        FROM unnest(${tables}::text[]) AS name JOIN pg_stat_xact_user_tables ON relid = name::regclass`;
      return new Map(rows.map((row) => [row.name, Number(row.rows)]));
    };
    // What makes a transaction of its own is counted in this one.
    const $transaction = (work: (inner: typeof tx) => unknown) => work(tx);
    const prisma = new Proxy(tx, { get: (inner, name) => (name === '$transaction' ? $transaction : Reflect.get(inner, name)) });
    const most = new Map(tables.map((table) => [table, 0]));
    for (let i = 0; i < TIMES; i++) {
      const before = await count();
      await read({ prisma } as unknown as Database);
      const after = await count();
      for (const table of tables) most.set(table, Math.max(most.get(table)!, after.get(table)! - before.get(table)!));
    }
    return Object.fromEntries(most) as Record<T, number>;
  };
  // Prisma ends a transaction after 5 s, and a slow machine takes longer.
  return database.db.prisma.$transaction(reading, { timeout: 80_000 });
}

/** Rows of the one table that matters. */
async function rowsOf(table: string, read: (db: Database) => Promise<unknown>): Promise<number> {
  return (await rowsRead([table], read))[table]!;
}

/** The tables of which the reading reads as many rows or more, with how many it reads. */
async function tablesOver(most: number, tables: readonly string[], read: (db: Database) => Promise<unknown>): Promise<object> {
  return Object.fromEntries(Object.entries(await rowsRead(tables, read)).filter(([, rows]) => rows >= most));
}

/** Every choice of the members. */
function combinations<T extends object>(filters: T): Partial<T>[] {
  let all: Partial<T>[] = [{}];
  for (const [name, value] of Object.entries(filters)) all = all.concat(all.map((each) => ({ ...each, [name]: value })));
  return all;
}

const cursorOf = (text: string) => Buffer.from(text).toString('base64url');

test.each(combinations({ status: 'paused' as const, environment: 'test' as const, cursor: cursorOf(`production|${ID}`) }))(
  'a page of companies reads that page alone: %j',
  async (filter) => {
    const read = (db: Database) => listConnections(db, { ...filter, limit: LIMIT });
    expect(await tablesOver(MOST_ROWS, ['muster.connections', 'muster.tokens'], read)).toEqual({});
  },
);

const DAYS = [new Date(Date.now() - 20 * 86_400_000), new Date(Date.now() - 19 * 86_400_000)] as const;

test.each(
  combinations({
    companyId: ID,
    status: 'failed' as const,
    environment: 'test' as const,
    trigger: 'manual' as const,
    since: DAYS[0],
    until: DAYS[1],
    cursor: cursorOf(String(RUNS - 5)),
  }),
)('a page of runs reads that page alone: %j', async (filter) => {
  // Of each environment, trigger and state that a filter leaves open a page is read.
  const most = MOST_ROWS + (filter.companyId === undefined ? 25 * LIMIT : 0);
  expect(await rowsOf('muster.runs', (db) => listRuns(db, { ...filter, limit: LIMIT }))).toBeLessThan(most);
});

test.each(
  combinations({
    actor: 'anna',
    action: 'run.cancel',
    environment: 'test' as const,
    companyId: ID,
    cursor: cursorOf(String(ENTRIES - 5)),
  }),
)('a page of the audit reads that page alone: %j', async (filter) => {
  expect(await rowsOf('muster.audit', (db) => listAuditEntries(db, { ...filter, limit: LIMIT }))).toBeLessThan(MOST_ROWS);
});

test.each(
  combinations({ environment: 'test' as const, companyId: ID, resource: 'absences', cursor: cursorOf(String(CERTIFICATES - 5)) }),
)('a page of certificates reads that page alone, or those of one company: %j', async (filter) => {
  const most = MOST_ROWS + (filter.companyId !== undefined && filter.resource === undefined ? CERTIFICATES / 999 : 0);
  expect(await rowsOf('muster.certificates', (db) => listCertificates(db, { ...filter, limit: LIMIT }))).toBeLessThan(most);
});

test('lists whose privacy rules have changed are found among all without reading them', async () => {
  const resources = ['employees', 'departments'];
  const rows = () => rowsOf('muster.lists', (db) => findListToRewrite(db, { resources }));
  expect(await rows()).toBe(0);
  await database.db.pool.query(
    `UPDATE muster.lists SET privacy_stage = 'rewrite' WHERE company_id = $1 AND resource = 'employees'`,
    [ID],
  );
  expect(await rows()).toBe(1);
});

test('the named tokens are listed off an index, and found by another one', async () => {
  const hash = (n: number) => createHash('sha256').update(String(n)).digest('hex');
  await database.db.pool.query(
    `INSERT INTO muster.named_tokens (name, role, token_hash, created_by, revoked_at)
     SELECT 'token ' || n, 'viewer', encode(sha256(n::text::bytea), 'hex'), 'admin', CASE WHEN n % 50 > 0 THEN now() END
     FROM generate_series(1, 20000) n`,
  );
  await database.db.pool.query('ANALYZE muster.named_tokens');
  expect(await rowsOf('muster.named_tokens', (db) => listNamedTokens(db, { limit: LIMIT }))).toBeLessThan(MOST_ROWS);
  expect(await rowsOf('muster.named_tokens', (db) => findActiveTokens(db, [hash(50), hash(100)]))).toBeLessThan(10);
});

test('the columns of typed views are listed off an index', async () => {
  await database.db.pool.query(
    `INSERT INTO muster.schema_columns (resource, path, name, type, position, environment, first_seen_at, last_seen_at)
     SELECT 'list_' || n % 50, ARRAY['key ' || n], 'key_' || n, 'text', n, 'test', now(), now() FROM generate_series(1, 30000) n`,
  );
  await database.db.pool.query('ANALYZE muster.schema_columns');
  for (const filter of [
    {},
    { resource: 'list_30' },
    { resource: 'list_30', cursor: cursorOf('list_30 200') },
    { cursor: cursorOf('list_7 1') },
  ])
    expect(await rowsOf('muster.schema_columns', (db) => listColumns(db, { ...filter, limit: LIMIT }))).toBeLessThan(MOST_ROWS);
});

test.each(['employees', 'cats'])(
  'a page of the runs with walks of %s looks through no more runs than it may',
  async (resource) => {
    const read = (db: Database) => listRuns(db, { resource, limit: LIMIT });
    expect(await tablesOver(2 * 2 * 2_000 + MOST_ROWS, ['muster.runs', 'muster.walks'], read)).toEqual({});
  },
);

test.each(combinations({ companyId: ID, status: 'approved' as const, environment: 'test' as const, cursor: cursorOf('15000') }))(
  'a page of holds reads that page alone: %j',
  async (filter) => {
    const most = MOST_ROWS + 8 * LIMIT;
    expect(await rowsOf('muster.holds', (db) => listHolds(db, { ...filter, limit: LIMIT }))).toBeLessThan(most);
  },
);

test.each(
  combinations({
    companyId: ID,
    status: 'failed' as const,
    environment: 'test' as const,
    type: 'deletions_held' as const,
    cursor: cursorOf('15000'),
  }),
)('a page of notifications reads that page alone: %j', async (filter) => {
  const most = MOST_ROWS + 30 * LIMIT;
  expect(await rowsOf('muster.notifications', (db) => listNotifications(db, { ...filter, limit: LIMIT }))).toBeLessThan(most);
});

// The pages before, and those of companies that a search by name has found.
test.each(
  combinations({
    cursor: cursorOf('<15000'),
    companies: [{ environment: 'production' as const, companyId: ID }],
    status: 'failed' as const,
  }),
)('a page that is read backward, or of some companies, reads that page alone: %j', async (filter) => {
  const most = MOST_ROWS + 30 * LIMIT;
  const { status: _, ...others } = filter;
  const lists = {
    runs: (db: Database) => listRuns(db, { ...filter, limit: LIMIT }),
    notifications: (db: Database) => listNotifications(db, { ...filter, limit: LIMIT }),
    holds: (db: Database) => listHolds(db, { ...others, limit: LIMIT }),
    audit: (db: Database) => listAuditEntries(db, { ...others, limit: LIMIT }),
    certificates: (db: Database) => listCertificates(db, { ...others, limit: LIMIT }),
  };
  for (const [table, read] of Object.entries(lists)) expect(await tablesOver(most, [`muster.${table}`], read)).toEqual({});
});

test.each(
  combinations({
    companyId: ID,
    environment: 'production' as const,
    resource: 'employees',
    cursor: cursorOf(`production|${ID}|employees|5`),
  }),
)('a page of rejected records reads that page alone: %j', async (filter) => {
  // Walks that rejected something and are not the newest of their list are passed over: here two nights of three.
  const read = (db: Database) => listRejectedRecords(db, { ...filter, limit: LIMIT });
  expect(await tablesOver(MOST_ROWS, ['muster.walks', 'muster.lists', 'muster.rejected_records'], read)).toEqual({});
});

test.each([{ search: '00000000-0000-4000-8000-00000001' }, { search: 'nobody' }])(
  'a search reads each company once: %j',
  async (filter) => {
    const read = (db: Database) => listConnections(db, { ...filter, limit: LIMIT });
    expect(await tablesOver(COMPANIES + MOST_ROWS + 1, ['muster.connections', 'mirror.companies'], read)).toEqual({});
    const wide = (db: Database) => listConnections(db, { ...filter, limit: 100 });
    expect(await rowsOf('muster.tokens', wide)).toBeLessThanOrEqual(2 * 101);
  },
);

test.each(combinations({ cursor: cursorOf(`production|${ID}|3`), status: 'active' as const }))(
  'the worst are found by reading companies and lists once, and of walks those that proved nothing: %j',
  async (filter) => {
    const sort = { by: 'worst', resources: ['employees', 'departments'], staleAfterHours: 26 } as const;
    const read = (db: Database) => listConnections(db, { ...filter, sort, limit: LIMIT });
    const rows = await rowsRead(['muster.connections', 'muster.lists', 'muster.walks', 'muster.runs'], read);
    expect(rows['muster.connections']).toBeLessThanOrEqual(COMPANIES + MOST_ROWS);
    expect(rows['muster.lists']).toBeLessThanOrEqual(2 * COMPANIES + MOST_ROWS);
    expect(rows['muster.walks']).toBeLessThan((2 * WALKED) / 6);
    expect(rows['muster.runs']).toBe(0);
  },
);

test.each(combinations({ status: 'resolved' as const, environment: 'test' as const, cursor: cursorOf(String(ISSUES - 5)) }))(
  'a page of issues reads that page alone: %j',
  async (filter) => {
    expect(await rowsOf('muster.issues', (db) => listIssues(db, { ...filter, limit: LIMIT }))).toBeLessThan(MOST_ROWS);
  },
);

test('the lists of a page of companies are looked up', async () => {
  const companyIds = Array.from({ length: LIMIT }, (_, i) => companyIdOf(i + 1));
  const resources = ['employees', 'departments'];
  expect(await rowsOf('muster.lists', (db) => findListStates(db, { companyIds, resources, staleAfterHours: 26 }))).toBeLessThan(
    MOST_ROWS,
  );
});
