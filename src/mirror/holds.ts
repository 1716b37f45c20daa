import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import { goByIndex } from '../db/statements/in-pieces.js';
import { closeHolds, findHold, lockOpenHold } from '../db/tables/holds.js';
import { deleteGoneRows, deleteHeldRows } from './reconcile.js';

/**
 * Deletes the rows that the hold's walk lacked: of cause `grant`, the rows that its grant never received, else the others. This is allowed only while that walk is
 * the newest of its list, since a later walk, even a cancelled one, may have seen some of the rows again; and while its grant is the company's, since
 * another person may see them. Throws hold_not_found, hold_not_open.
 */
export async function approveHold(db: Database, id: string): Promise<void> {
  const work = async (tx: Transaction) => {
    const { environment, companyId, resource, runId, walkId, cause } = await findHold(tx, id);
    // Locks the list first, as walks do: the other order could deadlock with a walk that closes this hold.
    const [walk] = await tx.$queryRaw<{ pass: number; epoch: bigint; newest: bigint; isOfGrant: boolean }[]>`
      SELECT w.pass, w.epoch, l.epoch AS newest, c.grant_number = COALESCE(w.grant_number, l.grant_number) AS "isOfGrant"
      FROM muster.lists l JOIN muster.walks w ON w.id = ${walkId}::uuid
      JOIN muster.connections c ON c.environment = l.environment AND c.company_id = l.company_id
      WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource} FOR UPDATE OF l`;
    await lockOpenHold(tx, id);
    await goByIndex(tx);
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
    const deleteRows = cause === 'grant' ? deleteHeldRows : deleteGoneRows;
    await deleteRows(tx, { list: { environment, companyId, resource }, runId, walkId, pass: walk.pass });
    await closeHolds(tx, { id }, 'approved');
  };
  await inTransaction(db, work, { timeoutMs: WHOLE_LIST_MS });
}

/**
 * Keeps the rows. The next verified walk that still lacks them opens a new hold; for cause `grant`, the first one under another grant does. Throws
 * hold_not_found, hold_not_open.
 */
export async function rejectHold(db: Database, id: string): Promise<void> {
  await inTransaction(db, async (tx) => {
    await lockOpenHold(tx, id);
    await closeHolds(tx, { id }, 'rejected');
  });
}
