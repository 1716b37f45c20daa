import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import { TRANSACTION_SETTINGS } from '../connection/session.js';
import { sqlState } from '../connection/sql-state.js';

/** The lock that Prisma's own engine takes: this runner and `prisma migrate deploy` exclude each other. */
const LOCK_ID = 72707369;

/**
 * How long a migration waits for a table that another session uses. Every other session that wants the table waits behind it for as long: behind a
 * dump of the whole database, nothing would be read or written for an hour. The migration is undone then, and tried again after a pause.
 *
 * A session that waits behind it may have what it needs next. PostgreSQL looks for a deadlock after a second, and ends the session that looks. At
 * first, all waits of a migration, at most four, together take less than that: it gives way, and no request fails. Commits of large pages may leave
 * no table alone within such a short wait, so later ones are longer.
 */
const AT_FIRST = { tries: 10, waitMs: 200, pauseMs: 1_000 };
const LATER = { waitMs: 2_000, pauseMs: 5_000 };

/** The states of errors that end the wait. A deadlock: an older process takes tables in another order than the migration. */
const TABLE_IN_USE = new Set([
  '55P03', // lock_not_available: lock_timeout
  '40P01', // deadlock_detected
]);

/** The transaction idles during the pauses, so no limit on that may end it. */
const BEGIN = `BEGIN; ${TRANSACTION_SETTINGS}; SET LOCAL idle_in_transaction_session_timeout = 0`;

/** Milliseconds until the migration lock is tried again. No transaction stays open in between. */
const RETRY_MS = 250;
/** How often a waiting process logs that it waits. */
const SAID_EVERY_MS = 30_000;
/** Tries of a migration that take about as long, but for the first ones. */
const TRIES_A_WARNING = 5;

/** Whether a migration failed only because another session uses a table that it needs: `underMigrationLock` then runs it again. */
export function isTableInUse(error: unknown): boolean {
  return TABLE_IN_USE.has(sqlState(error) ?? '');
}

/**
 * Runs `work` in a transaction of its own, one process at a time, and commits it; rolls back when `work` throws. It runs again while a session uses a table
 * that it needs: then `work` must throw PostgreSQL's own error. A waiting process logs
 * which session has the lock: a dead process, or another tool that uses a pooler, may have left a lock that is never given back.
 */
export async function underMigrationLock<T>(client: pg.Client, logger: Logger, work: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    const { waitMs, pauseMs } = tries < AT_FIRST.tries ? AT_FIRST : LATER;
    await beginLocked(client, logger);
    try {
      await client.query(`SET LOCAL lock_timeout = ${waitMs}`);
      if (tries % TRIES_A_WARNING === 1) await sayWhoUsesTables(client, logger);
      // The pause keeps the lock: otherwise the next of several waiting processes would begin at once, and the tables would be blocked almost without
      // pause. It keeps nothing else: the transaction is new, so it has no id, which would hold VACUUM back.
      if (tries > 0) await sleep(pauseMs);
      const result = await work();
      await client.query('COMMIT');
      return result;
    } catch (error) {
      if (isTableInUse(error)) continue;
      await client.query('ROLLBACK').catch(() => {}); // the connection is gone, and with it the transaction
      throw error;
    }
  }
}

/** Begins a transaction that has the migration lock. A transaction that has failed ends. */
async function beginLocked(client: pg.Client, logger: Logger): Promise<void> {
  for (let waited = 0; !(await tryToBeginLocked(client)); waited += RETRY_MS) {
    if (waited % SAID_EVERY_MS === 0) await sayWhoHolds(client, logger);
    await sleep(RETRY_MS);
  }
}

async function tryToBeginLocked(client: pg.Client): Promise<boolean> {
  // One message, so that no other process takes the lock after the transaction that has failed, and before this one.
  const results: unknown = await client.query(`ROLLBACK; ${BEGIN}; SELECT pg_try_advisory_xact_lock(${LOCK_ID}) AS ours`);
  const { rows } = (results as pg.QueryResult<{ ours: boolean }>[]).at(-1)!;
  if (rows[0]!.ours) return true;
  await client.query('ROLLBACK');
  return false;
}

async function sayWhoHolds(client: pg.Client, logger: Logger): Promise<void> {
  const { rows } = await client.query<{ pid: number; role: string | null; application: string | null; since: Date | null }>(
    `SELECT l.pid, a.usename AS role, a.application_name AS application, COALESCE(a.xact_start, a.state_change, a.backend_start) AS since
     FROM pg_locks l JOIN pg_database d ON d.oid = l.database LEFT JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = ${LOCK_ID} AND l.granted AND d.datname = current_database()`,
  );
  const [holder] = rows;
  if (!holder) return; // it has just been given back
  logger.warn(
    { holder },
    `waiting for the migration lock, which process ${holder.pid} of PostgreSQL holds (${holder.application || 'no name'}, role ${holder.role}). ` +
      `Where it does not migrate, end it: SELECT pg_terminate_backend(${holder.pid})`,
  );
}

/** The session whose transaction has used tables of Muster for the longest time is the one that the migration most likely waits for. */
async function sayWhoUsesTables(client: pg.Client, logger: Logger): Promise<void> {
  const { rows } = await client.query<{ pid: number; role: string | null; application: string | null; since: Date }>(
    `SELECT a.pid, a.usename AS role, a.application_name AS application, a.xact_start AS since
     FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.granted AND n.nspname IN ('muster', 'mirror', 'warehouse') AND a.datname = current_database() AND a.xact_start IS NOT NULL
     ORDER BY a.xact_start LIMIT 1`,
  );
  const [user] = rows;
  if (!user) return; // it has just ended
  logger.warn(
    { user },
    `the migration waits for a table that another session uses, most likely process ${user.pid} of PostgreSQL (${user.application || 'no name'}, ` +
      `role ${user.role}), and tries again until that has ended. To end it: SELECT pg_terminate_backend(${user.pid})`,
  );
}
