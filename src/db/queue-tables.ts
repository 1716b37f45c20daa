import type pg from 'pg';
import type { Reader } from './read-only.js';

/** Schema of BullMQ's own tables; there only where the queue is in PostgreSQL. */
export const QUEUE_SCHEMA = 'bullmq';

/**
 * Makes the sequences from which BullMQ numbers the jobs of each queue. By itself it makes one with the first job, for which a role with rights on data alone
 * lacks the right. BullMQ's own function makes them, at the price of a number; where all are there, none is spent.
 */
export async function makeJobSequences(client: pg.ClientBase, queues: readonly string[]): Promise<void> {
  await client.query(
    `SELECT bullmq.next_job_id(queue) FROM unnest($1::text[]) AS queue WHERE to_regclass('bullmq.' || bullmq.job_id_seq_name(queue)) IS NULL`,
    [queues],
  );
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
    `SELECT queue, count(id)::int AS waiting, min(added_at_ms)::float8 AS "oldestAt"
     FROM unnest($1::text[]) AS queue LEFT JOIN bullmq.job USING (queue) WHERE id IS NULL OR state = 'waiting' GROUP BY queue`,
    [queues],
  );
  return rows;
}
