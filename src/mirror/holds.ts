import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import { readByIndex } from '../db/statements/by-index.js';
import { goByIndex } from '../db/statements/in-pieces.js';
import { closeHolds, type Decision, findHold, type HoldRow, lockOpenHold, requireOpenHold } from '../db/tables/holds.js';
import { Prisma } from '../generated/prisma/client.js';
import { deleteGoneRows, deleteHeldRows, rowsThatWait } from './reconcile.js';

/** The walk that opened or renewed a hold, with its list as it is now. */
interface WalkOfHold {
  readonly pass: number;
  readonly epoch: bigint;
  readonly newest: bigint;
  readonly isOfGrant: boolean;
}

export interface Approval extends Decision {
  /** The run of the hold as the person has seen it. A walk that renews the hold may lack other rows. */
  readonly ofRun?: string | undefined;
}

/**
 * Deletes the rows that the hold's walk lacked: of cause `grant`, the rows that its grant never received, else the others. This is allowed only while that walk is
 * the newest of its list, since a later walk, even a cancelled one, may have seen some of the rows again; and while its grant is the company's, since
 * another person may see them. Returns how many rows it marked deleted. Throws hold_not_found, hold_not_open.
 */
export async function approveHold(db: Database, id: string, { ofRun, ...decision }: Approval = {}): Promise<number> {
  const work = async (tx: Transaction) => {
    const hold = await findHold(tx, id);
    const { environment, companyId, resource, runId, walkId, cause } = hold;
    // Locks the list first, as walks do: the other order could deadlock with a walk that closes this hold.
    const walk = await findWalk(tx, hold, Prisma.sql`FOR UPDATE OF l`);
    await lockOpenHold(tx, id);
    await goByIndex(tx);
    requireNewest(hold, walk);
    if (ofRun !== undefined && ofRun !== runId)
      throw new MusterError('hold_not_open', `A newer walk of ${resource} has renewed this hold: look at its rows again.`);
    const deleteRows = cause === 'grant' ? deleteHeldRows : deleteGoneRows;
    const deleted = await deleteRows(tx, { list: { environment, companyId, resource }, runId, walkId, pass: walk.pass });
    await closeHolds(tx, { id }, 'approved', decision);
    return deleted;
  };
  return inTransaction(db, work, { timeoutMs: WHOLE_LIST_MS });
}

/**
 * Ids of the rows that `approveHold` would mark deleted now, in their order: at most `limit`, from the first one after `after`. Throws what it
 * throws: the rows of a decided hold, and those of an older walk, cannot be told from its ledger.
 */
export function readRowsOfHold(
  db: Database,
  { id, after, limit }: { readonly id: string; readonly after: string | undefined; readonly limit: number },
): Promise<{ readonly hold: HoldRow; readonly ids: readonly string[] }> {
  return readByIndex(db, async (tx) => {
    const hold = await findHold(tx, id);
    requireOpenHold(hold);
    const { environment, companyId, resource, walkId, cause } = hold;
    const walk = await findWalk(tx, hold);
    requireNewest(hold, walk);
    const waiting = rowsThatWait({ list: { environment, companyId, resource }, walkId, pass: walk.pass }, cause);
    const rows = await tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM (${waiting}) waiting WHERE ${after ?? null}::text IS NULL OR id > ${after ?? ''} COLLATE "C"
      ORDER BY id COLLATE "C" LIMIT ${limit}::int`;
    return { hold, ids: rows.map((row) => row.id) };
  });
}

async function findWalk(
  tx: Transaction,
  { environment, companyId, resource, walkId }: HoldRow,
  locking = Prisma.empty,
): Promise<WalkOfHold | undefined> {
  const [walk] = await tx.$queryRaw<WalkOfHold[]>`
    SELECT w.pass, w.epoch, l.epoch AS newest, c.grant_number = COALESCE(w.grant_number, l.grant_number) AS "isOfGrant"
    FROM muster.lists l JOIN muster.walks w ON w.id = ${walkId}::uuid
    JOIN muster.connections c ON c.environment = l.environment AND c.company_id = l.company_id
    WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource} ${locking}`;
  return walk;
}

/** Throws hold_not_open unless the walk is the newest of its list, and of the company's grant where the hold is about that. */
function requireNewest({ resource, cause }: HoldRow, walk: WalkOfHold | undefined): asserts walk is WalkOfHold {
  if (!walk || walk.epoch !== walk.newest) {
    throw new MusterError(
      'hold_not_open',
      `A newer walk of ${resource} has begun: when it ends verified, it replaces or closes this hold. Decide then.`,
    );
  }
  if (cause === 'grant' && !walk.isOfGrant) {
    throw new MusterError(
      'hold_not_open',
      `The company was authorized again since: the next verified walk of ${resource} says what that grant may see. Decide then.`,
    );
  }
}

/**
 * Keeps the rows. The next verified walk that still lacks them opens a new hold; for cause `grant`, the first one under another grant does. Throws
 * hold_not_found, hold_not_open.
 */
export async function rejectHold(db: Database, id: string, decision: Decision = {}): Promise<void> {
  await inTransaction(db, async (tx) => {
    await lockOpenHold(tx, id);
    await closeHolds(tx, { id }, 'rejected', decision);
  });
}
