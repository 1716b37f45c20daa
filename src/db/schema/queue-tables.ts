import type pg from 'pg';
import { Prisma } from '../../generated/prisma/client.js';
import type { Reader } from '../connection/read-only.js';

/** Schema of BullMQ's own tables; there only where the queue is in PostgreSQL. */
export const QUEUE_SCHEMA = 'bullmq';

/**
 * Makes the sequences from which BullMQ numbers the jobs of each queue. BullMQ makes one with the first job, for which a role with rights on data alone
 * lacks the right. BullMQ's own function makes them, at the price of a number; if all exist, none is spent.
 */
export async function makeJobSequences(client: pg.ClientBase, queues: readonly string[]): Promise<void> {
  await client.query(
    Prisma.sql`SELECT bullmq.next_job_id(queue) FROM unnest(${queues}::text[]) AS queue WHERE to_regclass('bullmq.' || bullmq.job_id_seq_name(queue)) IS NULL`,
  );
}

/**
 * Drops BullMQ's tables if a person has emptied all of them: with the table of their versions empty, BullMQ would try to create
 * existing tables. No job is lost: due work is queued again from our own tables.
 */
export async function dropEmptied(client: pg.ClientBase): Promise<void> {
  // BullMQ's own lock for its migrations.
  await client.query(`BEGIN; SELECT pg_advisory_xact_lock(1112493644, hashtext('${QUEUE_SCHEMA}'))`);
  try {
    const { rows } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname = '${QUEUE_SCHEMA}' AND to_regclass('${QUEUE_SCHEMA}.migration') IS NOT NULL AND to_regclass('${QUEUE_SCHEMA}.job') IS NOT NULL`,
    );
    if (rows.length > 0) {
      const filled = rows.map(({ name }) => `SELECT FROM ${name}`).join(' UNION ALL ');
      const { rowCount } = await client.query(`${filled} LIMIT 1`);
      if (rowCount === 0) await client.query(`DROP SCHEMA ${QUEUE_SCHEMA} CASCADE`);
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {}); // the connection is gone, and with it the transaction
    throw error;
  }
}

/** Jobs of a queue that wait for a worker, and when the oldest of them was added, in milliseconds since the epoch. */
export interface WaitingJobs {
  readonly queue: string;
  readonly waiting: number;
  readonly oldestAt: number | null;
}

/** Undefined where BullMQ has no tables yet. */
export async function readWaitingJobs(db: Reader, queues: readonly string[]): Promise<readonly WaitingJobs[] | undefined> {
  const made = await db.query<{ made: boolean }>(`SELECT to_regclass('bullmq.job') IS NOT NULL AS made`);
  if (!made.rows[0]!.made) return undefined;
  const { rows } = await db.query<WaitingJobs>(
    Prisma.sql`SELECT queue, count(id)::int AS waiting, min(added_at_ms)::float8 AS "oldestAt"
     FROM unnest(${queues}::text[]) AS queue LEFT JOIN bullmq.job USING (queue) WHERE id IS NULL OR state = 'waiting' GROUP BY queue`,
  );
  return rows;
}
