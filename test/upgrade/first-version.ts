import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import type { CompanyKey } from '../../src/core/company.js';

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

export const kept = JSON.parse(gunzipSync(readFileSync(new URL('version-0.1.0.json.gz', import.meta.url))).toString()) as Kept;

/** Makes the database as version 0.1.0 left it, a minute ago. */
export async function makeFirstVersion(url: string): Promise<void> {
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
