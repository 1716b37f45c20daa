import type { DeleteGuard } from '../catalogue/endpoint.js';
import { textArray } from '../db/array-literals.js';
import { inPieces } from '../db/in-pieces.js';
import { isOf } from '../db/tables/connections.js';
import { closeHolds } from '../db/tables/holds.js';
import { type ListKey, setRecords, subtractRecords } from '../db/tables/lists.js';
import { addDeleted } from '../db/tables/walks.js';
import type { Transaction } from '../db/transaction.js';
import { Prisma } from '../generated/prisma/client.js';
import { mirrorTable } from './mirror-table.js';

/** What became of the rows that a verified walk did not receive. */
export interface Reconciliation {
  /** Rows marked deleted. */
  readonly deleted: number;
  /** Rows held back for a person to decide; 0 = no hold. */
  readonly held: number;
  /** Whether an earlier walk's hold was open still: then people know. */
  readonly wasHeld: boolean;
}

/** Which walk proved the rows gone: its ledger's last pass is the list as it is upstream. */
export interface VerifiedPass {
  readonly list: ListKey;
  readonly runId: string;
  readonly walkId: string;
  readonly pass: number;
}

const SAMPLE = 20;

/**
 * Marks the rows deleted that the verified pass did not receive, or, when too many would go at once, opens a hold.
 * An open hold of an earlier walk is closed either way. The caller has locked the list.
 */
export async function reconcile(tx: Transaction, verified: VerifiedPass, guard: DeleteGuard): Promise<Reconciliation> {
  const { list, runId, walkId } = verified;
  const wasHeld = await closeHolds(tx, list, 'superseded');
  const [found] = await tx.$queryRaw<{ count: number; living: number; sample: string[] }[]>`
    WITH gone AS (${goneRows(list, verified)})
    SELECT (SELECT count(*)::int FROM gone) AS count, (SELECT count(*)::int FROM (${livingRows(list)}) l) AS living,
      ARRAY(SELECT id FROM gone ORDER BY id LIMIT ${SAMPLE}) AS sample`;
  const gone = found!;
  // The count is kept by differences; here it is known.
  await setRecords(tx, list, gone.living);
  if (gone.count === 0) return { deleted: 0, held: 0, wasHeld };
  if (mustHold(gone, guard)) {
    await tx.hold.create({ data: { ...list, runId, walkId, count: gone.count, living: gone.living, sample: gone.sample } });
    return { deleted: 0, held: gone.count, wasHeld };
  }
  return { deleted: await deleteGoneRows(tx, verified), held: 0, wasHeld };
}

/** Whether so many deletions need a person. Deleting wrongly is worse than asking once too often. */
function mustHold({ count, living }: { count: number; living: number }, guard: DeleteGuard): boolean {
  return count >= guard.rows && (count > guard.share * living || count === living);
}

/** Marks deleted what the verified pass lacks, with its change feed rows. The caller has locked the list. */
export async function deleteGoneRows(tx: Transaction, { list, runId, walkId, pass }: VerifiedPass): Promise<number> {
  const deleted = await markDeleted(tx, list, goneRows(list, { walkId, pass }), runId);
  await addDeleted(tx, walkId, deleted);
  return deleted;
}

/** Marks every living row deleted, as deleteGoneRows does. */
export function deleteAllRows(tx: Transaction, list: ListKey): Promise<number> {
  return markDeleted(tx, list, livingRows(list), null);
}

/** `gone`: a query of the rows' ids. Each piece of them has its own batch of the feed, in the order of ids. */
async function markDeleted(tx: Transaction, list: ListKey, gone: Prisma.Sql, runId: string | null): Promise<number> {
  const { environment, companyId, resource } = list;
  let deleted = 0;
  for await (const rows of inPieces<{ id: string }>(tx, Prisma.sql`${gone} ORDER BY id`)) {
    const ids = textArray(rows.map(({ id }) => id));
    const [piece] = await tx.$queryRaw<{ size: number }[]>`
      WITH marked AS (
        UPDATE ${tableOf(list)} SET deleted_at = now(), changed_at = now()
        WHERE ${isOf(list)} AND id = ANY(${ids}::text[]) RETURNING id, data
      ), counted AS (
        SELECT count(*)::int AS size FROM marked
      ), batch AS (
        INSERT INTO muster.change_batches (size, environment, company_id, resource, run_id, changed_at)
        SELECT size, ${environment}, ${companyId}::uuid, ${resource}, ${runId}::uuid, now() FROM counted WHERE size > 0 RETURNING id
      ), fed AS (
        INSERT INTO muster.changes (batch_id, position, record_id, op, data)
        SELECT batch.id, row_number() OVER (ORDER BY m.id) - 1, m.id, 'delete', m.data FROM batch, marked m
      )
      SELECT size FROM counted`;
    deleted += piece!.size;
  }
  await subtractRecords(tx, list, deleted);
  return deleted;
}

const tableOf = ({ resource }: ListKey) => Prisma.raw(mirrorTable(resource));

/** Ids of the living rows. */
const livingRows = (list: ListKey) => Prisma.sql`SELECT id FROM ${tableOf(list)} WHERE ${isOf(list)} AND deleted_at IS NULL`;

/**
 * Ids of the living rows that are not in the ledger of the pass. EXCEPT, because whatever the planner expects, it hashes or sorts both sides
 * once; of an anti-join it may make a loop over all pairs.
 */
const goneRows = (list: ListKey, { walkId, pass }: Pick<VerifiedPass, 'walkId' | 'pass'>) => Prisma.sql`
  ${livingRows(list)} EXCEPT
  SELECT unnest(k.ids) COLLATE "C"
  FROM muster.walk_pages p JOIN muster.page_snapshots s ON s.id = p.snapshot_id JOIN muster.page_keys k ON k.id = s.keys_id
  WHERE p.walk_id = ${walkId}::uuid AND p.pass = ${pass}`;
