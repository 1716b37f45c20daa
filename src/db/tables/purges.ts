// muster.purges: when the data of a list's changes was last purged. The instants and numbers before are not answered any more (warehouse.as_of_limits). A row
// says how far the list went then by its last batch, which may have no number yet. Retention removes the row with that batch.
import type { CompanyKey } from '../../core/company.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { isOf } from './connections.js';
import { isOfList, type ListKey } from './lists.js';

export type PurgeCause = 'rules' | 'removal';

/** Records the purge of a list, or of all lists of a company. The caller has locked the lists, and appended what readers are told of it. */
export async function recordPurge(tx: Transaction, of: CompanyKey | ListKey, cause: PurgeCause): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO muster.purges (environment, company_id, resource, cause, purged_at, batch_id)
    SELECT environment, company_id, resource, ${cause}, clock_timestamp(), max(id) FROM muster.change_batches
    WHERE ${'resource' in of ? isOfList(of) : isOf(of)} GROUP BY environment, company_id, resource
    ON CONFLICT (environment, company_id, resource, cause) DO UPDATE SET purged_at = EXCLUDED.purged_at, batch_id = EXCLUDED.batch_id`;
}

/** Removes what retention has made void: the past before these purges is not kept any more. */
export async function removeVoidPurges(db: Pick<Database, 'prisma'>): Promise<void> {
  await db.prisma.$executeRaw`
    DELETE FROM muster.purges p WHERE NOT EXISTS (SELECT FROM muster.change_batches b WHERE b.id = p.batch_id)`;
}
