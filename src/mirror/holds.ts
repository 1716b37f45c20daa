import { MusterError } from '../core/errors.js';
import { goByIndex } from '../db/in-pieces.js';
import type { Database } from '../db/database.js';
import { closeHolds, findHold, lockOpenHold } from '../db/tables/holds.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/transaction.js';
import { deleteGoneRows } from './reconcile.js';

/**
 * Deletes what the hold's walk lacked. Only while that walk is the newest of its list: a walk begun since, even one
 * that was cancelled half-way, may have seen some of the rows again. Throws hold_not_found, hold_not_open.
 */
export async function approveHold(db: Database, id: string): Promise<void> {
  const work = async (tx: Transaction) => {
    const { environment, companyId, resource, runId, walkId } = await findHold(tx, id);
    // The list first, as walks do: the other order could deadlock with a walk that closes this hold.
    const [walk] = await tx.$queryRaw<{ pass: number; epoch: bigint; newest: bigint }[]>`
      SELECT w.pass, w.epoch, l.epoch AS newest FROM muster.lists l JOIN muster.walks w ON w.id = ${walkId}::uuid
      WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource} FOR UPDATE OF l`;
    await lockOpenHold(tx, id);
    await goByIndex(tx);
    if (!walk || walk.epoch !== walk.newest) {
      throw new MusterError(
        'hold_not_open',
        `A newer walk of ${resource} has begun: when it ends verified, it replaces or closes this hold. Decide then.`,
      );
    }
    await deleteGoneRows(tx, { list: { environment, companyId, resource }, runId, walkId, pass: walk.pass });
    await closeHolds(tx, { id }, 'approved');
  };
  await inTransaction(db, work, { timeoutMs: WHOLE_LIST_MS });
}

/** Keeps the rows; the next verified walk that still lacks them opens a new hold. Throws hold_not_found, hold_not_open. */
export async function rejectHold(db: Database, id: string): Promise<void> {
  await inTransaction(db, async (tx) => {
    await lockOpenHold(tx, id);
    await closeHolds(tx, { id }, 'rejected');
  });
}
