// muster.change_batches: one commit's worth of a list's changes. Whoever commits a change of mirrored rows adds a batch, and a
// sweep numbers it after the commit (`first_seq`). The view muster.stamped_changes shows the changes of numbered batches, one a row.
import type { Environment } from '../../core/company.js';
import type { Database } from '../database.js';
import { inTransaction } from '../transaction.js';

export interface ChangeRow {
  /** A bigint in decimal. */
  readonly seq: string;
  readonly resource: string;
  readonly environment: string;
  readonly companyId: string;
  readonly id: string;
  readonly op: string;
  /** JSON as text, with every digit of its numbers; null where the change has no record. */
  readonly data: string | null;
  readonly changedAt: Date;
  readonly runId: string | null;
}

/**
 * The numbered changes after `after`, in their order: what the view mirror.changes shows, from the batch on that holds `after`. That
 * view's number is a sum that no index knows, and a consumer at the end of a long feed must not read all of it again.
 */
export async function readChanges(
  db: Database,
  {
    after,
    resource,
    environment,
    limit,
  }: { readonly after: string; readonly resource?: string; readonly environment?: Environment; readonly limit: number },
): Promise<ChangeRow[]> {
  const { rows } = await db.pool.query<ChangeRow>(
    `SELECT first_seq + position AS seq, resource, environment, company_id AS "companyId", record_id AS id, op, data::text AS data,
       changed_at AS "changedAt", run_id AS "runId"
     FROM muster.stamped_changes
     WHERE first_seq >= COALESCE((SELECT max(first_seq) FROM muster.change_batches WHERE first_seq <= $1), 0)
       AND first_seq + position > $1 AND ($2::text IS NULL OR resource = $2) AND ($3::text IS NULL OR environment = $3)
     ORDER BY first_seq, position LIMIT $4`,
    [after, resource ?? null, environment ?? null, limit],
  );
  return rows;
}

/**
 * Numbers the batches that were committed since the last call. One sequencer at a time, across processes: the row of
 * muster.change_sequence is locked first, in a statement of its own, so that the next statement sees every batch that
 * the previous holder stamped. A number, once visible, has every smaller number visible beside it: that is what lets a
 * consumer read on from the last number it saw. Foreign transactions, however long, do not matter.
 */
export async function stampChanges(db: Database): Promise<void> {
  const [waiting] = await db.prisma.$queryRaw<unknown[]>`SELECT 1 FROM muster.change_batches WHERE first_seq IS NULL LIMIT 1`;
  if (!waiting) return;
  await inTransaction(db, async (tx) => {
    await tx.$executeRaw`SELECT 1 FROM muster.change_sequence FOR UPDATE`;
    await tx.$executeRaw`
      WITH numbered AS (
        SELECT id, size, sum(size) OVER (ORDER BY id) - size AS before FROM muster.change_batches WHERE first_seq IS NULL
      ), stamped AS (
        UPDATE muster.change_batches b SET first_seq = s.next_seq + n.before
        FROM numbered n, muster.change_sequence s WHERE b.id = n.id
      )
      UPDATE muster.change_sequence SET next_seq = next_seq + COALESCE((SELECT sum(size) FROM numbered), 0)`;
  });
}

/** Batches that one transaction removes, so that none is long. */
const REMOVED_AT_ONCE = 1_000;

/**
 * Removes the changes that are older than so many days, oldest first and whole batches at a time. The numbers of those that
 * stay, and of those to come, do not change.
 */
export async function removeOldChanges(db: Database, days: number): Promise<void> {
  for (let removed = REMOVED_AT_ONCE; removed === REMOVED_AT_ONCE; ) {
    removed = await db.prisma.$executeRaw`
      WITH oldest AS (
        SELECT id FROM muster.change_batches WHERE first_seq IS NOT NULL ORDER BY id LIMIT ${REMOVED_AT_ONCE}
      )
      DELETE FROM muster.change_batches b USING oldest
      WHERE b.id = oldest.id AND b.changed_at < now() - make_interval(days => ${days}::int)`;
  }
}
