import { describeCompany } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';
import { inTransaction } from '../db/transaction.js';
import { Prisma } from '../generated/prisma/client.js';
import type { ListKey } from './list-fence.js';
import { mirrorTable } from './mirror-table.js';

/**
 * Gives up the ids under which a list's records are kept, after the catalogue has come to name them by another member. Its
 * rows are marked deleted, with their changes, and it is not verified any more; the next walk takes the records in again under their new
 * ids. Returns how many rows went. Whoever walks the list meanwhile is fenced. Throws unknown_resource for a list that was never walked.
 */
export async function rekeyList(db: Database, list: ListKey): Promise<number> {
  const { environment, companyId, resource } = list;
  return inTransaction(db, async (tx) => {
    const lists = await tx.$executeRaw`
      UPDATE muster.lists SET epoch = epoch + 1, id_field = NULL, verified_walk_id = NULL, last_verified_at = NULL, unstable_since = NULL, records = 0
      WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}`;
    if (lists === 0) {
      throw new MusterError('unknown_resource', `The ${describeCompany(list)} has no list ${resource} that was ever walked.`);
    }
    await tx.$executeRaw`
      UPDATE mirror.companies SET verified_at = verified_at - ${resource}::text
      WHERE environment = ${environment} AND company_id = ${companyId}::uuid`;
    // A walk that was interrupted has received rows that are about to go: it begins anew.
    await tx.walk.updateMany({ where: list, data: { checkpoint: Prisma.DbNull, checkpointAt: null } });
    await tx.hold.updateMany({ where: { ...list, status: 'open' }, data: { status: 'superseded', closedAt: new Date() } });
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
