import type { CompanyKey } from '../core/company.js';
import type { Transaction } from '../db/transaction.js';
import type { EventType } from './record-event.js';

/**
 * The newest event of these types since the company was onboarded: what was before does not concern it. A recovery is told
 * only of what was told to be wrong, and what is told to be wrong is not told again.
 */
export async function lastTold(
  tx: Transaction,
  { environment, companyId }: CompanyKey,
  types: readonly EventType[],
): Promise<{ id: string; type: EventType } | undefined> {
  const [last] = await tx.$queryRaw<{ id: string; type: EventType }[]>`
    SELECT n.id, n.type FROM muster.notifications n LEFT JOIN muster.connections c USING (environment, company_id)
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND n.type = ANY(${types}::text[])
      AND (c.created_at IS NULL OR n.occurred_at >= c.created_at)
    ORDER BY n.seq DESC LIMIT 1`;
  return last;
}
