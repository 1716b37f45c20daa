// muster.locks: work that one process at a time does, one row each, locked until the transaction of the work ends. Advisory locks would do the same,
// but any role that may connect to the database can take them.
import type pg from 'pg';
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';

export type LockName = 'issues' | 'certificates' | 'mirror_tables' | 'typed_views';

/** Waits for the lock. */
export async function takeLock(tx: Transaction, name: LockName): Promise<void> {
  await tx.$queryRaw`SELECT 1 FROM muster.locks WHERE name = ${name} FOR UPDATE`;
}

/** Takes the lock if it is free. It is a statement of its own, so that the next one sees what the previous holder has written. */
export async function tryLock(tx: Transaction, name: LockName): Promise<boolean> {
  const taken = await tx.$executeRaw`
    UPDATE muster.locks SET taken_at = now() WHERE name = (SELECT name FROM muster.locks WHERE name = ${name} FOR UPDATE SKIP LOCKED)`;
  return taken === 1;
}

export interface HeldLock {
  /** Seconds since the last holder that ended its work. */
  readonly seconds: number;
  /** Process ids of PostgreSQL that may hold it, with their application names, if this role may see them. */
  readonly holders: readonly { readonly pid: number; readonly application: string | null }[];
}

/** Reads who may hold a lock that is taken. */
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

/** Adds a row that is never committed: another process that adds the same row waits for this transaction. */
export async function addName(client: pg.ClientBase, name: string): Promise<void> {
  await client.query(Prisma.sql`INSERT INTO muster.locks (name) VALUES (${name})`);
}
