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
 * Gives up the ids of a list's rows, after the catalogue has named another member as the id. The rows are marked deleted, with their changes, and the list is
 * not verified any more; the next walk inserts the records under their new ids. Returns how many rows went. A walk that is under way is fenced. Throws
 * unknown_resource for a list that was never walked.
 */
export async function rekeyList(db: Database, list: ListKey): Promise<number> {
  const { resource } = list;
  const work = async (tx: Transaction) => {
    if (!(await resetList(tx, list))) {
      throw new MusterError('unknown_resource', `The ${describeCompany(list)} has no list ${resource} that was ever walked.`);
    }
    await goByIndex(tx);
    // An interrupted walk has received rows that are about to go: it starts again from the beginning.
    await dropCheckpoints(tx, list);
    await closeHolds(tx, list, 'superseded');
    return deleteAllRows(tx, list);
  };
  return inTransaction(db, work, { timeoutMs: WHOLE_LIST_MS });
}
