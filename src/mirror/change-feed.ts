import type { Database } from '../db/database.js';
import { inTransaction } from '../db/transaction.js';

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
