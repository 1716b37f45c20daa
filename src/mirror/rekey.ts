import { describeCompany } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';
import { closeHolds } from '../db/tables/holds.js';
import { type ListKey, resetList } from '../db/tables/lists.js';
import { dropCheckpoints } from '../db/tables/walks.js';
import { inTransaction } from '../db/transaction.js';
import { mirrorTable } from './mirror-table.js';

/**
 * Gives up the ids under which a list's records are kept, after the catalogue has come to name them by another member. Its
 * rows are marked deleted, with their changes, and it is not verified any more; the next walk takes the records in again under their new
 * ids. Returns how many rows went. Whoever walks the list meanwhile is fenced. Throws unknown_resource for a list that was never walked.
 */
export async function rekeyList(db: Database, list: ListKey): Promise<number> {
  const { environment, companyId, resource } = list;
  return inTransaction(db, async (tx) => {
    if (!(await resetList(tx, list))) {
      throw new MusterError('unknown_resource', `The ${describeCompany(list)} has no list ${resource} that was ever walked.`);
    }
    // A walk that was interrupted has received rows that are about to go: it begins anew.
    await dropCheckpoints(tx, list);
    await closeHolds(tx, list, 'superseded');
    const [row] = await tx.$queryRawUnsafe<{ deleted: number }[]>(
      `WITH marked AS (
         UPDATE ${mirrorTable(resource)} SET deleted_at = now(), changed_at = now()
         WHERE environment = $1 AND company_id = $2::uuid AND deleted_at IS NULL RETURNING id, data
       ), batch AS (
         INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
         SELECT count(*)::int, $1, $2::uuid, $3, now() FROM marked HAVING count(*) > 0 RETURNING id
       ), fed AS (
         INSERT INTO muster.changes (batch_id, position, record_id, op, data)
         SELECT batch.id, row_number() OVER (ORDER BY marked.id) - 1, marked.id, 'delete', marked.data FROM batch, marked
       )
       SELECT count(*)::int AS deleted FROM marked`,
      environment,
      companyId,
      resource,
    );
    return row?.deleted ?? 0;
  });
}
