import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { type Database, openDatabase } from '../../src/db/connection/database.js';
import { migrate } from '../../src/db/schema/migrate.js';
import { findToken } from '../../src/db/tables/tokens.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { emptyDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

// The database of version 0.1.0, written down while one of its companies was half-way through a night: two companies of 60 employees and 35
// documents, each after two nights. The second company's third night had committed three of its pages.

const MIGRATIONS = new URL('../../prisma/migrations/', import.meta.url);
const LAST_OF_0_1_0 = '20261123180000_known_by_runs';

interface Kept {
  readonly run: string;
  readonly settled: CompanyKey;
  readonly underWay: CompanyKey;
  /** Rows by table, each as JSON. */
  readonly tables: Readonly<Record<string, readonly string[]>>;
  readonly sequences: readonly { readonly name: string; readonly value: string }[];
  readonly feed: readonly { readonly seq: string }[];
}

const kept = JSON.parse(gunzipSync(readFileSync(new URL('version-0.1.0.json.gz', import.meta.url))).toString()) as Kept;
const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;

let sandbox: Sandbox;
let database: Awaited<ReturnType<typeof emptyDatabase>>;
let db: Database;
let harness: SyncHarness;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: [kept.settled, kept.underWay].map(({ companyId }, n) => ({
      companyId,
      name: n === 0 ? 'Settled' : 'Under way',
      employees: 60,
      documents: 35,
    })),
  });
  for (const { companyId } of [kept.settled, kept.underWay]) mark(companyId, 12, 'x');
  mark(kept.underWay.companyId, 31, 'y');
  sandbox.list(kept.underWay.companyId, 'employees').remove(50, 1);
  database = await emptyDatabase();
  await restore(database.url);
  await migrate(database.url, pino({ level: 'silent' }));
  db = openDatabase({ url: database.url });
  harness = syncHarness(db, sandbox, endpointsOf({ employees: ENTRIES.employees, documents: ENTRIES.documents }));
});
afterAll(async () => {
  await harness.close();
  await db.close();
  await database.close();
  await sandbox.stop();
});

function mark(companyId: string, at: number, marker: string): void {
  const list = sandbox.list(companyId, 'employees');
  list.change(at, list.texts()[at]!.replace('{', `{"marker":"${marker}",`));
}

/** Makes the database as version 0.1.0 left it, a minute ago. */
async function restore(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`CREATE TABLE public._prisma_migrations (id VARCHAR(36) PRIMARY KEY, checksum VARCHAR(64) NOT NULL, finished_at TIMESTAMPTZ,
    migration_name VARCHAR(255) NOT NULL, logs TEXT, rolled_back_at TIMESTAMPTZ, started_at TIMESTAMPTZ NOT NULL DEFAULT now(), applied_steps_count INTEGER NOT NULL DEFAULT 0)`);
  const names = readdirSync(MIGRATIONS, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  for (const name of names.toSorted().filter((each) => each <= LAST_OF_0_1_0)) {
    const sql = readFileSync(new URL(`${name}/migration.sql`, MIGRATIONS), 'utf8');
    await client.query(sql);
    const checksum = createHash('sha256').update(sql).digest('hex');
    await client.query(
      'INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count) VALUES ($1, $2, now(), $3, 1)',
      [randomUUID(), checksum, name],
    );
  }
  await client.query('CREATE TABLE mirror.documents (LIKE mirror.employees INCLUDING ALL) WITH (fillfactor = 90)');
  await client.query('TRUNCATE muster.change_sequence');
  await client.query('SET session_replication_role = replica');
  for (const [table, rows] of Object.entries(kept.tables)) {
    const { rows: columns } = await client.query<{ name: string }>(
      `SELECT quote_ident(column_name) AS name FROM information_schema.columns
       WHERE table_schema || '.' || table_name = $1 AND is_generated = 'NEVER'`,
      [table],
    );
    const list = columns.map(({ name }) => name).join(', ');
    await client.query(`INSERT INTO ${table} (${list}) SELECT ${list} FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb)`, [
      `[${rows.join(',')}]`,
    ]);
  }
  for (const { name, value } of kept.sequences) await client.query('SELECT setval($1::regclass, $2)', [name, value]);
  // The answer to a refresh of each company was lost; of the second one its process died as well.
  for (const [{ environment, companyId }, unanswered, failures] of [
    [kept.settled, 1, 3],
    [kept.underWay, 2, 0],
  ] as const)
    await client.query(
      `INSERT INTO muster.tokens (environment, company_id, refresh_token, attempt_started_at, ambiguous_attempts, transient_failures)
       VALUES ($1, $2, 'encrypted', now() - interval '1 minute', $3, $4)`,
      [environment, companyId, unanswered, failures],
    );
  await client.query(`UPDATE muster.walks SET checkpoint_at = now() - interval '1 minute' WHERE checkpoint IS NOT NULL`);
  await client.end();
}

async function feed(): Promise<object[]> {
  const { rows } = await db.pool.query<object>('SELECT seq::text, resource, id, op, data::text FROM mirror.changes ORDER BY seq');
  return rows;
}

test('the change feed and the mirror are as they were', async () => {
  expect(await feed()).toEqual(kept.feed);
  const { companyId } = kept.settled;
  for (const resource of ['employees', 'documents'] as const)
    expect(await mirrored(db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));
});

test('a refresh token whose answer was lost is sent again, for as long as nothing is known of it', async () => {
  expect(await findToken(db.prisma, kept.settled)).toMatchObject({ isUnanswered: true, putOffs: 1, transientFailures: 3 });
  expect(await findToken(db.prisma, kept.underWay)).toMatchObject({ isUnanswered: true, putOffs: 0, transientFailures: 0 });
  const { rows } = await db.pool.query(
    'SELECT max(ambiguous_attempts) AS most FROM muster.tokens WHERE attempt_started_at IS NOT NULL',
  );
  expect(rows).toEqual([{ most: 1 }]);
});

test('a run that was under way goes on from its checkpoint, and loses nothing', async () => {
  const { companyId } = kept.underWay;
  const asked = sandbox.requests.all('/employees').length;
  await harness.work(kept.run);
  const run = (await harness.runs.find(kept.run))!;
  const [employees, documents] = run.walks;
  expect(run.status).toBe('succeeded');
  expect(employees).toMatchObject({ verified: true, resumed: true, pages: 7, received: 59, updated: 1, deleted: 1 });
  expect(documents).toMatchObject({ verified: true, received: 35, unchanged: 35 });
  // Three of the seven pages had been committed.
  expect(sandbox.requests.all('/employees').length - asked).toBe(4);
  for (const resource of ['employees', 'documents'] as const)
    expect(await mirrored(db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));
  expect((await feed()).slice(0, kept.feed.length)).toEqual(kept.feed);
});

test('a list goes on by its last walk where that kept its hashes whole, and compares everything once where it did not', async () => {
  const { companyId } = kept.settled;
  const edit = async (resource: string) => {
    const { rows } = await db.pool.query<{ id: string }>(
      `UPDATE mirror."${resource}" SET data = '{"edited": true}' WHERE (company_id, id) IN (
         SELECT company_id, id FROM mirror."${resource}" WHERE company_id = $1 ORDER BY id LIMIT 1) RETURNING id`,
      [companyId],
    );
    expect(rows).toHaveLength(1);
  };
  await edit('employees');
  await edit('documents');
  const [employees, documents] = (await harness.sync(kept.settled, NIGHTLY)).walks;
  // The night before, one employee had changed, of whose page only the difference was kept.
  expect(employees).toMatchObject({ verified: true, updated: 1 });
  expect(documents).toMatchObject({ verified: true, updated: 0 });
  await harness.sync(kept.settled, { mode: 'full' });
  for (const resource of ['employees', 'documents'] as const)
    expect(await mirrored(db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));
  await edit('employees');
  expect((await harness.sync(kept.settled, NIGHTLY)).walks[0]).toMatchObject({ verified: true, updated: 0 });
});
