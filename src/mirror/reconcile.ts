import type { DeleteGuard } from '../catalogue/endpoint.js';
import type { Transaction } from '../db/connection/transaction.js';
import { textArray } from '../db/statements/array-literals.js';
import { inPieces } from '../db/statements/in-pieces.js';
import { isOf } from '../db/tables/connections.js';
import { appendToFeed } from '../db/tables/feed-append.js';
import { findWalkGrant, heldRows, insertHeldRows, keepHeldRows, removeHeldRows } from '../db/tables/held-rows.js';
import { closeHolds, type HoldCause, renewGrantHold } from '../db/tables/holds.js';
import { type ListKey, setRecords, subtractRecords } from '../db/tables/lists.js';
import { addDeleted } from '../db/tables/walks.js';
import { Prisma } from '../generated/prisma/client.js';
import { assignments } from './mirror-columns.js';
import { tableOf } from './mirror-table.js';

/** The outcome for the rows that a verified walk did not receive. */
export interface Reconciliation {
  /** Rows marked deleted. */
  readonly deleted: number;
  /** Rows that are held since too many would go at once; 0 = no hold of this cause. */
  readonly held: number;
  /** Whether an earlier walk's hold of this cause was still open, so that people know of it. */
  readonly wasHeld: boolean;
  /** Rows that no verified walk under this grant has received, whether or not a person has decided on them. */
  readonly heldForGrant: number;
  /** Whether a hold of them was opened, which people do not know of yet. */
  readonly opensGrantHold: boolean;
}

/** The walk that proved the rows gone: the last pass in its ledger is the list as the service has it. */
export interface VerifiedPass {
  readonly list: ListKey;
  readonly runId: string;
  readonly walkId: string;
  readonly pass: number;
}

const SAMPLE = 20;

/**
 * Decides on the rows that the verified pass did not receive. Rows that no verified walk under its grant has ever received wait for a person, however many
 * walks follow, in one hold of cause `grant`, which each walk renews. The others are marked deleted, or wait in a hold of cause `share` when too many
 * would go at once. The caller has locked the list.
 */
export async function reconcile(tx: Transaction, verified: VerifiedPass, guard: DeleteGuard): Promise<Reconciliation> {
  const { list, runId, walkId } = verified;
  const wasHeld = await closeHolds(tx, { ...list, cause: 'share' }, 'superseded');
  const grant = await findWalkGrant(tx, list, { walkId });
  const gone = goneRows(list, verified);
  if (grant.isFirst) await insertHeldRows(tx, list, gone);
  if (grant.isFirst || grant.hasHeldRows) await keepHeldRows(tx, list, gone);
  const { heldForGrant, heldSample, ...found } = await countGone(tx, verified);
  // The count is otherwise kept by differences.
  await setRecords(tx, list, found.living);
  const waiting = { runId, walkId, count: heldForGrant, living: found.living, sample: heldSample };
  const opensGrantHold = await renewGrantHold(tx, list, waiting, grant);
  const outcome = { wasHeld, heldForGrant, opensGrantHold };
  if (found.count === 0) return { ...outcome, deleted: 0, held: 0 };
  if (mustHold({ count: found.count, received: found.living - heldForGrant }, guard)) {
    await tx.hold.create({ data: { ...list, runId, walkId, count: found.count, living: found.living, sample: found.sample } });
    return { ...outcome, deleted: 0, held: found.count };
  }
  return { ...outcome, deleted: await deleteGoneRows(tx, verified), held: 0 };
}

/** Rows that are gone by the ordinary rules (`count`, `sample`), and rows that are held for the grant. */
async function countGone(tx: Transaction, verified: VerifiedPass) {
  const { list } = verified;
  const [found] = await tx.$queryRaw<
    [{ count: number; living: number; sample: string[]; heldForGrant: number; heldSample: string[] }]
  >`
    WITH gone AS (${receivedRowsThatAreGone(list, verified)}), held AS (${heldRows(list)})
    SELECT (SELECT count(*)::int FROM gone) AS count, (SELECT count(*)::int FROM (${livingRows(list)}) l) AS living,
      ARRAY(SELECT id FROM gone ORDER BY id LIMIT ${SAMPLE}) AS sample, (SELECT count(*)::int FROM held) AS "heldForGrant",
      ARRAY(SELECT id FROM held ORDER BY id LIMIT ${SAMPLE}) AS "heldSample"`;
  return found;
}

/**
 * Whether so many deletions need a person: a wrong deletion is worse than a needless question. `received`: living rows that were received under the present
 * grant; rows that are held for it tell nothing of the service.
 */
function mustHold({ count, received }: { count: number; received: number }, guard: DeleteGuard): boolean {
  return count >= guard.rows && (count > guard.share * received || count === received);
}

/** Marks the rows deleted that the verified pass lacks and its grant once received, and appends them to the feed. The caller has locked the list. */
export function deleteGoneRows(tx: Transaction, verified: VerifiedPass): Promise<number> {
  return deleteCounted(tx, verified, receivedRowsThatAreGone(verified.list, verified));
}

/** Ids of the rows that `deleteGoneRows`, or for cause `grant` `deleteHeldRows`, would mark deleted. */
export function rowsThatWait({ list, ...walk }: Omit<VerifiedPass, 'runId'>, cause: HoldCause): Prisma.Sql {
  return cause === 'grant' ? heldRowsThatAreGone(list, walk) : receivedRowsThatAreGone(list, walk);
}

/** Marks the rows deleted that are held for the grant and that the verified pass lacks, as deleteGoneRows does. */
export async function deleteHeldRows(tx: Transaction, verified: VerifiedPass): Promise<number> {
  const { list } = verified;
  const deleted = await deleteCounted(tx, verified, heldRowsThatAreGone(list, verified));
  await removeHeldRows(tx, list);
  return deleted;
}

async function deleteCounted(tx: Transaction, { list, runId, walkId }: VerifiedPass, rows: Prisma.Sql): Promise<number> {
  const deleted = await markDeleted(tx, list, rows, runId);
  await addDeleted(tx, walkId, deleted);
  return deleted;
}

/** Marks every living row deleted, as deleteGoneRows does. */
export async function deleteAllRows(tx: Transaction, list: ListKey): Promise<number> {
  await removeHeldRows(tx, list);
  return markDeleted(tx, list, livingRows(list), null);
}

/** `gone`: a query of the rows' ids. Each piece of them gets its own batch of the feed, in the order of ids. */
async function markDeleted(tx: Transaction, list: ListKey, gone: Prisma.Sql, runId: string | null): Promise<number> {
  let deleted = 0;
  for await (const rows of inPieces<{ id: string }>(tx, Prisma.sql`${gone} ORDER BY id`)) {
    const ids = textArray(rows.map(({ id }) => id));
    const [piece] = await tx.$queryRaw<{ size: number }[]>`
      WITH changed AS (
        UPDATE ${tableOf(list)} SET ${Prisma.raw(assignments('delete'))}
        WHERE ${isOf(list)} AND id = ANY(${ids}::text[]) RETURNING id, data
      ), ${appendToFeed(list, { op: 'delete', runId })}
      SELECT count(*)::int AS size FROM changed`;
    deleted += piece!.size;
  }
  await subtractRecords(tx, list, deleted);
  return deleted;
}

/** Ids of the living rows. */
const livingRows = (list: ListKey) => Prisma.sql`SELECT id FROM ${tableOf(list)} WHERE ${isOf(list)} AND deleted_at IS NULL`;

/**
 * Ids of the living rows that are not in the ledger of the pass. EXCEPT hashes or sorts both sides once, whatever the planner expects; an anti-join may become
 * a loop over all pairs.
 */
const goneRows = (list: ListKey, { walkId, pass }: Pick<VerifiedPass, 'walkId' | 'pass'>) => Prisma.sql`
  (${livingRows(list)} EXCEPT
  SELECT unnest(k.ids) COLLATE "C"
  FROM muster.walk_pages p JOIN muster.page_snapshots s ON s.id = p.snapshot_id JOIN muster.page_keys k ON k.id = s.keys_id
  WHERE p.walk_id = ${walkId}::uuid AND p.pass = ${pass})`;

/** The rows among them that a verified walk under its grant has received. */
const receivedRowsThatAreGone = (list: ListKey, walk: Pick<VerifiedPass, 'walkId' | 'pass'>) =>
  Prisma.sql`${goneRows(list, walk)} EXCEPT ${heldRows(list)}`;

const heldRowsThatAreGone = (list: ListKey, walk: Pick<VerifiedPass, 'walkId' | 'pass'>) =>
  Prisma.sql`${goneRows(list, walk)} INTERSECT ${heldRows(list)}`;
