// muster.change_batches: changes of a list that were committed together (feed-append.ts). A sweep numbers each batch after the commit (`first_seq`). Triggers
// keep muster.change_numbers, in which the view mirror.changes finds a number. Every writer of existing batches locks them by id, before their changes:
// numbering, which holds muster.change_sequence, removal and retention.
import pg from 'pg';
import type { CompanyKey } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { sqlState } from '../connection/sql-state.js';
import { inTransaction, type Transaction } from '../connection/transaction.js';
import { inPieces, PIECE_ROWS } from '../statements/in-pieces.js';
import { FIRST_WAITING_BARRIER, numberBarriers, removeOldBarriers } from './barriers.js';
import { isOf } from './connections.js';
import { isOfList, type ListKey } from './lists.js';
import { removeVoidPurges } from './purges.js';

/** The first and the last number that the feed has, in one snapshot. Bigints in decimal; `newest` is below `oldest` where the feed is empty. */
export async function feedSpan(client: Pick<pg.ClientBase, 'query'>): Promise<{ oldest: string; newest: string }> {
  const { rows } = await client.query<{ oldest: string; newest: string }>(
    `SELECT COALESCE((SELECT min(first_seq) FROM muster.change_batches), next_seq)::text AS oldest, (next_seq - 1)::text AS newest
     FROM muster.change_sequence`,
  );
  return rows[0]!;
}

/**
 * The text of a query for the records of a resource that changed after the number `after`: environment, company_id, id, and op and seq of the newest
 * change of each. It has no parameters, as COPY takes none.
 */
export function changedRecords({ resource, after }: { readonly resource: string; readonly after: string }): string {
  const seq = pg.escapeLiteral(after);
  return `
    SELECT DISTINCT ON (b.environment, b.company_id, c.id) b.environment, b.company_id, c.id, c.op, b.first_seq + c.position AS seq
    FROM muster.change_batches b
    CROSS JOIN LATERAL (
      SELECT r.position, r.record_id AS id, r.op FROM muster.changes r WHERE r.batch_id = b.id
      UNION ALL
      SELECT w.n - 1, w.id, COALESCE(w.op, 'insert') FROM unnest(b.ids, b.ops) WITH ORDINALITY AS w(id, op, n)
    ) c
    WHERE b.first_seq >= COALESCE((SELECT max(first_seq) FROM muster.change_batches WHERE first_seq <= ${seq}::bigint), 0)
      AND b.resource = ${pg.escapeLiteral(resource)} AND b.first_seq + c.position > ${seq}::bigint
    ORDER BY b.environment, b.company_id, c.id, b.first_seq + c.position DESC`;
}

/** Limits of one transaction, so that a first mirror of many millions is numbered piece by piece. A batch is never divided. */
const NUMBERED_AT_ONCE = { batches: 1_000, changes: 100_000 };

/**
 * Numbers the batches, and the barriers that follow them, that were committed since the last call. One process numbers at a time: it locks the row of
 * muster.change_sequence first, in a statement of its own, so that the next statement sees every batch that the previous holder stamped. All smaller
 * numbers are visible when a number is, so a consumer can read on from the last number it saw. Other transactions, however long, do not matter.
 * Returns early where another process has held the lock for too long: that process numbers the rest as well.
 */
export async function stampChanges(db: Database): Promise<void> {
  // The order is that of the index: right after a first mirror PostgreSQL believes that most batches wait, and would read the table to find one. EXISTS
  // would drop the order.
  const [waiting] = await db.prisma.$queryRaw<{ any: boolean }[]>`
    SELECT COALESCE((SELECT id FROM muster.change_batches WHERE first_seq IS NULL ORDER BY id LIMIT 1), ${FIRST_WAITING_BARRIER}) IS NOT NULL AS any`;
  if (!waiting!.any) return;
  try {
    while (await stampPiece(db));
  } catch (error) {
    if (sqlState(error) !== '55P03') throw error; // lock_not_available
  }
}

/** Returns whether more may wait. */
function stampPiece(db: Database): Promise<boolean> {
  const { batches, changes } = NUMBERED_AT_ONCE;
  return inTransaction(db, async (tx) => {
    // An ANALYZE during the first commits counts no rows, and a planner that expects none compares each batch with all of a piece.
    await tx.$executeRaw`SELECT set_config('enable_nestloop', 'off', true), set_config('jit', 'off', true) FROM muster.change_sequence FOR UPDATE`;
    const [piece] = await tx.$queryRaw<{ isFull: boolean }[]>`
      WITH waiting AS (
        SELECT id, size FROM muster.change_batches WHERE first_seq IS NULL ORDER BY id LIMIT ${batches} FOR UPDATE
      ), counted AS (
        SELECT id, size, sum(size) OVER (ORDER BY id) - size AS before FROM waiting
      ), numbered AS (
        SELECT id, size, before FROM counted WHERE before < ${changes}
      ), stamped AS (
        UPDATE muster.change_batches b SET first_seq = (SELECT next_seq FROM muster.change_sequence) + n.before
        FROM numbered n
        WHERE b.id = n.id AND b.first_seq IS NULL AND b.id BETWEEN (SELECT min(id) FROM numbered) AND (SELECT max(id) FROM numbered)
      )
      UPDATE muster.change_sequence SET next_seq = next_seq + COALESCE((SELECT sum(size) FROM numbered), 0)
      RETURNING (SELECT count(*) = ${batches} OR COALESCE(sum(size), 0) > ${changes} FROM waiting) AS "isFull"`;
    await numberBarriers(tx);
    return piece!.isFull;
  });
}

interface SizedBatch {
  readonly id: bigint;
  readonly size: number;
}

/** Takes the data out of all changes of a list, or of a company's lists; ids, ops and numbers stay. The caller has locked the lists. */
export async function purgeChanges(tx: Transaction, of: CompanyKey | ListKey): Promise<void> {
  const condition = 'resource' in of ? isOfList(of) : isOf(of);
  const query = Prisma.sql`SELECT id, size FROM muster.change_batches WHERE ${condition} ORDER BY id FOR UPDATE`;
  for await (const batches of inPieces<SizedBatch>(tx, query)) {
    for (const ids of groupBySize(batches)) {
      await tx.$executeRaw`UPDATE muster.changes SET data = NULL WHERE batch_id = ANY(${ids}::bigint[]) AND data IS NOT NULL`;
      await tx.$executeRaw`UPDATE muster.change_batches SET texts = NULL WHERE id = ANY(${ids}::bigint[]) AND texts IS NOT NULL`;
    }
  }
}

/** Groups of batches in their order, of about PIECE_ROWS changes each. A larger batch is a group of its own. */
function groupBySize(batches: readonly SizedBatch[]): bigint[][] {
  const groups: bigint[][] = [];
  let room = 0;
  for (const { id, size } of batches) {
    if (size > room || groups.length === 0) {
      groups.push([]);
      room = PIECE_ROWS;
    }
    groups.at(-1)!.push(id);
    room -= size;
  }
  return groups;
}

/** Batches and barriers that one transaction removes, so that none is long. */
const REMOVED_AT_ONCE = 200;
const BARRIERS_AT_ONCE = 1_000;

/**
 * Removes changes older than `days`, oldest first, by whole batches, and none that follows one that stays: the feed has no gaps. No number changes.
 * Barriers go at the same age, but for the newest of each list.
 */
export async function removeOldChanges(db: Database, days: number): Promise<void> {
  await stampChanges(db); // a waiting barrier takes its number from a batch that may be about to go
  for (let removed = REMOVED_AT_ONCE; removed === REMOVED_AT_ONCE; ) {
    removed = await db.prisma.$executeRaw`
      WITH oldest AS (
        SELECT id, bool_and(changed_at < now() - make_interval(days => ${days}::int)) OVER (ORDER BY first_seq) AS may_go
        FROM (SELECT id, first_seq, changed_at FROM muster.change_batches WHERE first_seq IS NOT NULL
              ORDER BY first_seq LIMIT ${REMOVED_AT_ONCE}) b
      ), locked AS (
        SELECT id FROM muster.change_batches WHERE id IN (SELECT id FROM oldest WHERE may_go) ORDER BY id FOR UPDATE
      )
      DELETE FROM muster.change_batches b USING locked WHERE b.id = locked.id`;
  }
  await removeVoidPurges(db);
  while ((await removeOldBarriers(db, { days, limit: BARRIERS_AT_ONCE, which: 'all' })) === BARRIERS_AT_ONCE);
}
