import type { CompanyKey } from '../core/company.js';
import type { Transaction } from '../db/transaction.js';

/** The walk that proved which parents there are. */
export interface ProvedParents {
  readonly walkId: string;
  readonly verifiedAt: Date;
}

/** The newest walk of the parent list, if it was verified: only then are all of the parents known. */
export async function provedParents(
  tx: Transaction,
  { environment, companyId }: CompanyKey,
  parent: string,
): Promise<ProvedParents | undefined> {
  const [row] = await tx.$queryRaw<ProvedParents[]>`
    SELECT w.id AS "walkId", l.last_verified_at AS "verifiedAt"
    FROM muster.lists l JOIN muster.walks w ON w.id = l.verified_walk_id AND w.epoch = l.epoch
    WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${parent}`;
  return row;
}
