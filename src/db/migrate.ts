import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import type { Logger } from 'pino';
import { connectionFailure } from '../core/connection-failure.js';
import { MusterError } from '../core/errors.js';
import { sqlState, translateDatabaseError } from './sql-state.js';

const MIGRATIONS = new URL('../../prisma/migrations/', import.meta.url);

/** The lock that Prisma's own engine takes: this runner and `prisma migrate deploy` exclude each other. */
const LOCK_ID = 72707369;

/** Prisma's own table, letter by letter, so that its CLI can take over at any time. */
const TABLE = `CREATE TABLE IF NOT EXISTS public._prisma_migrations (
  id                  VARCHAR(36) PRIMARY KEY NOT NULL,
  checksum            VARCHAR(64) NOT NULL,
  finished_at         TIMESTAMPTZ,
  migration_name      VARCHAR(255) NOT NULL,
  logs                TEXT,
  rolled_back_at      TIMESTAMPTZ,
  started_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
  applied_steps_count INTEGER NOT NULL DEFAULT 0
)`;

const OLDEST_SERVER = 150000;

interface Migration {
  name: string;
  sql: string;
  /** Hex sha256 of the file. */
  checksum: string;
}

interface Row {
  migration_name: string;
  checksum: string;
  finished_at: Date | null;
}

/**
 * Applies the migrations of prisma/migrations that the database lacks, in order, each in one transaction with its row.
 * Any number of processes may do so at once: one works, the others wait and find nothing left to do.
 * Throws `migration_failed` for a migration that fails, was edited after it was applied, or was left half-finished by
 * another tool; `invalid_configuration` for a database that is not there or too old; `database_unavailable`.
 * A migration that the database has and this version lacks is let be, as Prisma does: a newer version runs beside us.
 */
export async function migrate(url: string, logger: Logger): Promise<{ applied: string[] }> {
  const client = new pg.Client({ connectionString: url, application_name: 'muster migrate', connectionTimeoutMillis: 30_000 });
  client.on('error', () => {}); // the query under way reports it
  try {
    await client.connect();
    return { applied: await applyPending(client, logger) };
  } catch (error) {
    throw explain(error, url);
  } finally {
    await client.end().catch(() => {}); // gives the lock back, too
  }
}

/** Names of the migrations that are not applied yet, for readiness checks; looks only. Takes a pool or a client. */
export async function pendingMigrations(db: Pick<pg.Pool | pg.Client, 'query'>): Promise<string[]> {
  try {
    const { rows } = await db.query<{ made: boolean }>(`SELECT to_regclass('public._prisma_migrations') IS NOT NULL AS made`);
    const applied = new Set(
      rows[0]?.made ? (await readRows(db)).filter((row) => row.finished_at).map((row) => row.migration_name) : [],
    );
    return (await readMigrations()).map(({ name }) => name).filter((name) => !applied.has(name));
  } catch (error) {
    throw translateDatabaseError(error);
  }
}

async function applyPending(client: pg.Client, logger: Logger): Promise<string[]> {
  const version = (await client.query<{ v: number }>(`SELECT current_setting('server_version_num')::int AS v`)).rows[0]?.v ?? 0;
  if (version < OLDEST_SERVER) {
    throw new MusterError(
      'invalid_configuration',
      `DATABASE_URL: PostgreSQL ${Math.floor(version / 10_000)} is too old, 15 or newer is needed`,
    );
  }
  await client.query(`SELECT pg_advisory_lock(${LOCK_ID})::text`);
  await client.query(TABLE);
  const rows = new Map((await readRows(client)).map((row) => [row.migration_name, row]));
  const applied: string[] = [];
  for (const { migration_name: name, finished_at } of rows.values()) {
    if (finished_at) continue;
    throw new MusterError(
      'migration_failed',
      `Migration ${name} was begun by another tool and not finished. Undo by hand what it did, then run: ` +
        `npx prisma migrate resolve --rolled-back ${name}`,
    );
  }
  for (const migration of await readMigrations()) {
    const { name, checksum } = migration;
    const row = rows.get(name);
    if (row && row.checksum !== checksum)
      throw new MusterError(
        'migration_failed',
        `Migration ${name} differs from what was applied to this database. Restore prisma/migrations/${name}/migration.sql ` +
          'as it was, and make changes in a new migration',
      );
    if (rows.delete(name)) continue;
    await apply(client, migration);
    logger.info({ migration: name }, 'migration applied');
    applied.push(name);
  }
  if (rows.size > 0) logger.warn({ migrations: [...rows.keys()] }, 'the database has migrations of a newer version');
  return applied;
}

async function apply(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
  try {
    await client.query('BEGIN');
    await client.query(sql);
    await client.query(
      `INSERT INTO public._prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count)
       VALUES ($1, $2, clock_timestamp(), $3, 1)`,
      [randomUUID(), checksum, name],
    );
    await client.query('COMMIT');
  } catch (error) {
    const translated = translateDatabaseError(error);
    if (translated !== error) throw translated;
    throw new MusterError('migration_failed', `Migration ${name} failed and was undone: ${String(error)}`, { cause: error });
  }
}

/** Rows that count: a migration that was marked as rolled back may be applied again. */
async function readRows(db: Pick<pg.Pool | pg.Client, 'query'>): Promise<Row[]> {
  const { rows } = await db.query<Row>(
    `SELECT migration_name, checksum, finished_at FROM public._prisma_migrations WHERE rolled_back_at IS NULL ORDER BY started_at`,
  );
  return rows;
}

async function readMigrations(): Promise<Migration[]> {
  const entries = await readdir(MIGRATIONS, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names.toSorted().map(async (name) => {
      const sql = await readFile(new URL(`${name}/migration.sql`, MIGRATIONS), 'utf8');
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    }),
  );
}

/** What a first start most often meets, in words of the one setting that mends it. */
function explain(error: unknown, url: string): unknown {
  if (error instanceof MusterError) return error;
  const { host, username } = new URL(url);
  const reasons: Record<string, string> = {
    '3D000': 'the database does not exist; create it first (createdb)',
    '28000': `the server at ${host} refuses the user ${username}`,
    '28P01': `the server at ${host} refuses this password of the user ${username}`,
    '42501': 'the user may not create schemas and tables in this database; make it the owner of the database',
  };
  const reason = reasons[sqlState(error) ?? ''];
  if (reason) return new MusterError('invalid_configuration', `DATABASE_URL: ${reason}`, { cause: error });
  const translated = translateDatabaseError(error);
  if (translated === error) return error;
  return new MusterError(
    'database_unavailable',
    `PostgreSQL at ${host || 'the local socket'} cannot be used: ${connectionFailure(error)}. ` +
      'See that it runs and that DATABASE_URL is right, then try again.',
    { cause: error, details: { sql_state: sqlState(error) ?? null } },
  );
}
