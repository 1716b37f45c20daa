// muster.barriers: up to which point of the change feed a list was complete, one barrier per verified walk. The step that ends the walk writes it. It
// points at the list's last batch, which may have no number yet. The sequencer (change-batches.ts) numbers the barrier later, and readers see only
// numbered barriers. Lock order: lists, batches, barriers.
import type { Environment } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { isOfList, type ListKey } from './lists.js';

/**
 * The part of a statement that notes how far the feed goes that belongs to `walk`, as of the proof `proved` (recordVerified). The list is locked:
 * its last batch is the walk's own or an earlier one, and every later batch has a larger number. Where none is kept, all have had numbers, and
 * every later one will have a larger number than the last that was given.
 */
export function recordBarrier(list: ListKey): Prisma.Sql {
  const { environment, companyId, resource } = list;
  return Prisma.sql`barrier AS (
    INSERT INTO muster.barriers (environment, company_id, resource, batch_id, seq, verified_at, records, run_id, grant_number)
    SELECT ${environment}, ${companyId}::uuid, ${resource}, CASE WHEN b.first_seq IS NULL THEN b.id END,
      CASE WHEN b.id IS NULL THEN s.next_seq - 1 ELSE b.first_seq + b.size - 1 END, proved.last_verified_at, proved.records, walk.run_id, walk.grant_number
    FROM walk CROSS JOIN proved JOIN muster.change_sequence s ON s.only
    LEFT JOIN LATERAL (
      SELECT id, first_seq, size FROM muster.change_batches WHERE ${isOfList(list)} ORDER BY id DESC LIMIT 1
    ) b ON true
    RETURNING id)`;
}

/** SQL: the id of the first barrier that waits for its number, or null. */
export const FIRST_WAITING_BARRIER = Prisma.sql`(SELECT id FROM muster.barriers WHERE number IS NULL ORDER BY id LIMIT 1)`;

/**
 * Gives numbers to the barriers whose batches have theirs. The caller has locked muster.change_sequence in an earlier statement of the transaction:
 * as with changes, a reader that sees a number sees every smaller one. If retention removed the batch while the barrier was being written, the batch
 * had its number: the barrier then ends before the list's newer changes, and does not wait forever. LIMIT makes the planner look each batch up:
 * the caller has turned nested loops off.
 */
export async function numberBarriers(tx: Transaction): Promise<void> {
  await tx.$executeRaw`
    WITH waiting AS (
      SELECT r.id, CASE WHEN r.seq IS NOT NULL THEN r.seq WHEN b.id IS NOT NULL THEN b.first_seq + b.size - 1 ELSE COALESCE((
          SELECT l.first_seq FROM muster.change_batches l
          WHERE l.environment = r.environment AND l.company_id = r.company_id AND l.resource = r.resource AND l.id > r.batch_id
          ORDER BY l.id LIMIT 1), (SELECT next_seq FROM muster.change_sequence)) - 1 END AS seq
      FROM muster.barriers r
      LEFT JOIN LATERAL (SELECT id, first_seq, size FROM muster.change_batches WHERE id = r.batch_id LIMIT 1) b ON true
      WHERE r.number IS NULL
    ), numbered AS (
      SELECT id, seq, row_number() OVER (ORDER BY id) - 1 AS n FROM waiting WHERE seq IS NOT NULL
    ), stamped AS (
      UPDATE muster.barriers r SET number = (SELECT next_barrier FROM muster.change_sequence) + n.n, seq = n.seq, batch_id = NULL
      FROM numbered n WHERE r.id = n.id AND r.number IS NULL
    )
    UPDATE muster.change_sequence SET next_barrier = next_barrier + (SELECT count(*) FROM numbered)`;
}

export interface BarrierRow {
  /** A bigint in decimal, as is `seq`. */
  readonly number: string;
  readonly environment: string;
  readonly companyId: string;
  readonly resource: string;
  readonly seq: string;
  readonly verifiedAt: Date;
  readonly records: number;
  readonly runId: string;
  /** Null where a process of an earlier version walked the list. */
  readonly grantNumber: number | null;
}

export interface BarrierQuery {
  /** The last number that the reader has seen, or 0. A bigint in decimal. */
  readonly after: string;
  readonly resource?: string;
  readonly environment?: Environment;
  /** How many barriers are examined, wanted or not. */
  readonly limit: number;
}

/** Barriers after `after`, by number, and the number to read on from: `after` itself at the end of the feed. */
export async function readBarriers(
  db: Pick<Database, 'prisma'>,
  query: BarrierQuery,
): Promise<{ rows: readonly BarrierRow[]; nextAfter: string }> {
  const { after, resource = null, environment = null, limit } = query;
  const rows = await db.prisma.$queryRaw<(BarrierRow & { isAskedFor: boolean })[]>`
    SELECT b.number::text, environment, company_id AS "companyId", resource, seq::text, verified_at AS "verifiedAt", records, run_id AS "runId",
      grant_number AS "grantNumber",
      (${resource}::text IS NULL OR resource = ${resource}) AND (${environment}::text IS NULL OR environment = ${environment}) AS "isAskedFor"
    FROM muster.barriers b WHERE b.number > ${after}::bigint ORDER BY b.number LIMIT ${limit}::int`;
  return { rows: rows.filter(({ isAskedFor }) => isAskedFor), nextAfter: rows.at(-1)?.number ?? String(BigInt(after)) };
}

/**
 * Removes barriers older than this many days, at most `limit`, and returns how many. The newest barrier of each list stays, and each
 * whose certificate waits for its number. `which`: all of them, or only those without a later change before the next barrier of the
 * list: that barrier says the same about a later time.
 */
export function removeOldBarriers(
  db: Pick<Database, 'prisma'>,
  { days, limit, which }: { readonly days: number; readonly limit: number; readonly which: 'all' | 'repeated' },
): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.barriers WHERE id IN (
      SELECT r.id FROM muster.barriers r
      WHERE r.verified_at < now() - make_interval(days => ${days}::int) AND r.number IS NOT NULL AND EXISTS (
        SELECT FROM muster.barriers n
        WHERE n.environment = r.environment AND n.company_id = r.company_id AND n.resource = r.resource AND n.id > r.id
          AND n.number IS NOT NULL AND (${which} = 'all' OR n.seq = r.seq))
        AND NOT EXISTS (SELECT FROM muster.certificates c WHERE c.id = r.id AND c.jws IS NULL)
      ORDER BY r.id LIMIT ${limit}::int)`;
}
