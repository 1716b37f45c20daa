import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Logger } from 'pino';
import { isMusterError, MusterError } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';
import { explainConnectFailure } from '../connection/connect-failure.js';
import { connectionOptions, sessionOptions } from '../connection/connection-options.js';
import { DatabaseClient } from '../connection/database-client.js';
import { requireUsableServer } from '../connection/server-check.js';
import { prepareSession } from '../connection/session.js';
import { sqlState, translateDatabaseError } from '../connection/sql-state.js';
import { requireCompatible } from './compatibility.js';
import { foreignObject } from './foreign-objects.js';
import { type Migration, migrationNames, readMigrations } from './migration-files.js';
import { isTableInUse, underMigrationLock } from './migration-lock.js';

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

type Querying = Pick<pg.Pool | pg.Client, 'query'>;

interface Row {
  migration_name: string;
  checksum: string;
  finished_at: Date | null;
}

/**
 * Applies the migrations of prisma/migrations that the database lacks, in order, each in one transaction with its row.
 * Any number of processes may do so at once: each migration is applied by one of them.
 * Throws `migration_failed` for a migration that fails, was edited after it was applied, or was left half-finished by
 * another tool; `invalid_configuration` for a database that is not there or cannot be used; `database_unavailable`.
 * A migration that only the database has is ignored, as Prisma ignores it: a newer version is running alongside. Throws `process_outdated` where that
 * version has said that this one cannot: it changes nothing then.
 */
export async function migrate(url: string, logger: Logger): Promise<{ applied: string[] }> {
  const client = new DatabaseClient(connectionOptions(url, 'muster migrate'));
  client.on('error', () => {}); // the query under way reports it
  try {
    await client.connect();
    await prepareSession(client, sessionOptions(url));
    await requireUsableServer(client);
    await requireCompatible(client);
    return { applied: await applyPending(client, logger) };
  } catch (error) {
    throw explainConnectFailure(error, url, 'look up or apply the migrations');
  } finally {
    await client.end().catch(() => {});
  }
}

/** Names of the migrations that are not applied yet, for readiness checks; reads only. Takes a pool or a client. */
export async function pendingMigrations(db: Querying): Promise<string[]> {
  try {
    const applied = new Set((await readRows(db)).filter((row) => row.finished_at).map((row) => row.migration_name));
    return (await migrationNames()).filter((name) => !applied.has(name));
  } catch (error) {
    throw translateDatabaseError(error);
  }
}

/** Throws `migration_failed` if a migration is not applied yet. */
export async function requireNoPendingMigrations(db: Querying): Promise<void> {
  const pending = await pendingMigrations(db);
  if (pending.length > 0)
    throw new MusterError('migration_failed', `Migrations are pending: ${pending.join(', ')}. Run \`muster migrate\`.`);
}

/** Compares the migrations of this version with the database's; reads only. */
export interface MigrationState {
  readonly pending: readonly string[];
  /** Migrations that a newer version has applied. */
  readonly newer: readonly string[];
  /** Why `migrate` would refuse to go on. */
  readonly problem: string | undefined;
}

export async function readMigrationState(db: Querying): Promise<MigrationState> {
  const [migrations, rows] = [await readMigrations(), await readRows(db)];
  const [known, applied] = [new Set(migrations.map(({ name }) => name)), new Set(rows.map((row) => row.migration_name))];
  const newer = [...applied].filter((name) => !known.has(name));
  const pending = [...known].filter((name) => !applied.has(name));
  try {
    nextOf(migrations, rows);
    return { pending, newer, problem: undefined };
  } catch (error) {
    if (isMusterError(error, 'migration_failed')) return { pending, newer, problem: error.message };
    throw error;
  }
}

async function applyPending(client: pg.Client, logger: Logger): Promise<string[]> {
  const migrations = await readMigrations();
  const applied: string[] = [];
  // An up-to-date database is only read, so that no other right is needed.
  while (nextOf(migrations, await readRows(client))) {
    const name = await underMigrationLock(client, logger, async () => {
      await client.query(TABLE);
      const next = nextOf(migrations, await readRows(client)); // another process may have been faster
      if (next) await apply(client, next);
      return next?.name;
    });
    if (name === undefined) continue;
    logger.info({ migration: name }, 'migration applied');
    applied.push(name);
  }
  const known = new Set(migrations.map(({ name }) => name));
  const newer = (await readRows(client)).map((row) => row.migration_name).filter((name) => !known.has(name));
  if (newer.length > 0)
    logger.warn({ migrations: newer }, 'the database has migrations of a newer version, or of another application');
  return applied;
}

/**
 * The first migration to apply. Throws `migration_failed` if the applied ones are not the expected ones. Unknown ones may
 * belong to another application that shares the table: Prisma's CLI gives it the same name in every database.
 */
function nextOf(migrations: readonly Migration[], rows: readonly Row[]): Migration | undefined {
  const known = new Set(migrations.map(({ name }) => name));
  for (const { migration_name: name, finished_at } of rows) {
    if (finished_at || !known.has(name)) continue;
    throw new MusterError(
      'migration_failed',
      `Migration ${name} was begun by another tool and not finished. Undo by hand what it did, then run: ` +
        `npx prisma migrate resolve --rolled-back ${name}`,
    );
  }
  const checksums = new Map(rows.map((row) => [row.migration_name, row.checksum]));
  for (const { name, checksum } of migrations) {
    const found = checksums.get(name);
    if (found === undefined || found === checksum) continue;
    throw new MusterError(
      'migration_failed',
      `Migration ${name} differs from what was applied to this database. Restore prisma/migrations/${name}/migration.sql ` +
        'as it was, and make changes in a new migration',
    );
  }
  return migrations.find(({ name }) => !checksums.has(name));
}

async function apply(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
  try {
    await client.query(sql);
    await client.query(
      Prisma.sql`INSERT INTO public._prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count)
       VALUES (${randomUUID()}, ${checksum}, clock_timestamp(), ${name}, 1)`,
    );
  } catch (error) {
    if (isTableInUse(error)) throw error; // underMigrationLock tries again
    const foreign = foreignObject(error, `Migration ${name} was undone`);
    if (foreign) throw foreign;
    const translated = translateDatabaseError(error);
    if (translated !== error || sqlState(error) === '42501') throw translated;
    throw new MusterError('migration_failed', `Migration ${name} failed and was undone: ${String(error)}`, { cause: error });
  }
}

/** Rows that count: a migration that was marked as rolled back may be applied again. */
async function readRows(db: Querying): Promise<Row[]> {
  const made = await db.query<{ made: boolean }>(`SELECT to_regclass('public._prisma_migrations') IS NOT NULL AS made`);
  if (!made.rows[0]!.made) return [];
  const { rows } = await db.query<Row>(
    `SELECT migration_name, checksum, finished_at FROM public._prisma_migrations WHERE rolled_back_at IS NULL ORDER BY started_at`,
  );
  return rows;
}
