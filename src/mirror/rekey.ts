import { describeCompany } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import { goByIndex } from '../db/statements/in-pieces.js';
import { closeHolds } from '../db/tables/holds.js';
import { type ListKey, resetList } from '../db/tables/lists.js';
import { dropCheckpoints } from '../db/tables/walks.js';
import { deleteAllRows } from './reconcile.js';

/**
 * Gives up the ids under which a list's records are kept, after the catalogue has come to name them by another member. Its
 * rows are marked deleted, with their changes, and it is not verified any more; the next walk takes the records in again under their new
 * ids. Returns how many rows went. Whoever walks the list meanwhile is fenced. Throws unknown_resource for a list that was never walked.
 */
export async function rekeyList(db: Database, list: ListKey): Promise<number> {
  const { resource } = list;
  const work = async (tx: Transaction) => {
    if (!(await resetList(tx, list))) {
      throw new MusterError('unknown_resource', `The ${describeCompany(list)} has no list ${resource} that was ever walked.`);
    }
    await goByIndex(tx);
    // A walk that was interrupted has received rows that are about to go: it begins anew.
    await dropCheckpoints(tx, list);
    await closeHolds(tx, list, 'superseded');
    return deleteAllRows(tx, list);
  };
  return inTransaction(db, work, { timeoutMs: WHOLE_LIST_MS });
}
