import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';

/** The lock that Prisma's own engine takes: this runner and `prisma migrate deploy` exclude each other. */
const LOCK_ID = 72707369;

const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
  SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`;

/** Milliseconds until the lock is tried again. No transaction stays open in between. */
const RETRY_MS = 250;
/** How often a waiting process logs that it waits. */
const SAID_EVERY_MS = 30_000;

/**
 * Runs `work` in a transaction of its own, one process at a time, and commits it; rolls back when `work` throws. A waiting process logs
 * which session has the lock: a dead process, or another tool that uses a pooler, may have left a lock that is never given back.
 */
export async function underMigrationLock<T>(client: pg.Client, logger: Logger, work: () => Promise<T>): Promise<T> {
  for (let waited = 0; !(await beginLocked(client)); waited += RETRY_MS) {
    if (waited % SAID_EVERY_MS === 0) await sayWhoHolds(client, logger);
    await sleep(RETRY_MS);
  }
  try {
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {}); // the connection is gone, and with it the transaction
    throw error;
  }
}

async function beginLocked(client: pg.Client): Promise<boolean> {
  await client.query(BEGIN);
  const { rows } = await client.query<{ ours: boolean }>(`SELECT pg_try_advisory_xact_lock(${LOCK_ID}) AS ours`);
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
