// muster.locks: work that one process does at a time, a row each, locked until the transaction of the work ends. Advisory locks would do the same, were
// they not everybody's: any role that may connect to the database can take one.
import type pg from 'pg';
import type { Transaction } from '../connection/transaction.js';

export type LockName = 'issues' | 'certificates' | 'mirror_tables' | 'typed_views';

/** Waits for the lock. */
export async function takeLock(tx: Transaction, name: LockName): Promise<void> {
  await tx.$queryRaw`SELECT 1 FROM muster.locks WHERE name = ${name} FOR UPDATE`;
}

/** Takes the lock where nobody has it. A statement of its own, so that the next one sees what the holder before has written. */
export async function tryLock(tx: Transaction, name: LockName): Promise<boolean> {
  const taken = await tx.$executeRaw`
    UPDATE muster.locks SET taken_at = now() WHERE name = (SELECT name FROM muster.locks WHERE name = ${name} FOR UPDATE SKIP LOCKED)`;
  return taken === 1;
}

export interface HeldLock {
  /** Since somebody last began with it and ended. */
  readonly seconds: number;
  /** Process ids of PostgreSQL that may hold it, with the names of their applications, where this role may see them. */
  readonly holders: readonly { readonly pid: number; readonly application: string | null }[];
}

/** Reads what is known of a lock that somebody else has. */
export async function readHeldLock(tx: Transaction, name: LockName): Promise<HeldLock> {
  const [lock] = await tx.$queryRaw<HeldLock[]>`
    SELECT extract(epoch FROM now() - taken_at)::float8 AS seconds, COALESCE((
      SELECT jsonb_agg(DISTINCT jsonb_build_object('pid', l.pid, 'application', a.application_name))
      FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE l.relation = 'muster.locks'::regclass AND l.mode IN ('RowExclusiveLock', 'RowShareLock') AND l.pid <> pg_backend_pid()
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())), '[]') AS holders
    FROM muster.locks WHERE name = ${name}`;
  if (!lock) throw new Error(`muster.locks has lost its row ${name}`);
  return lock;
}

/** Adds a row that is never committed: whoever would add the same waits for the transaction. */
export async function addName(client: pg.ClientBase, name: string): Promise<void> {
  await client.query('INSERT INTO muster.locks (name) VALUES ($1)', [name]);
}
