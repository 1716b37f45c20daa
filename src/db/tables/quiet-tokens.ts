// muster.tokens, the refreshes that are put off to the end of quiet hours: `quiet_until` is that time, and so is `refresh_at`.
import type { CompanyKey } from '../../core/company.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { isQuietWith } from './connections.js';

/** Puts the due refreshes of these companies off, without those that a process is making. Returns how many. */
export function putOffDueRefreshes(
  db: Pick<Database, 'prisma'>,
  companies: readonly (CompanyKey & { readonly quietUntil: Date })[],
): Promise<number> {
  const [environments, ids] = [companies.map(({ environment }) => environment), companies.map(({ companyId }) => companyId)];
  return db.prisma.$executeRaw`
    WITH due AS MATERIALIZED (
      SELECT environment, company_id, asked.until
      FROM muster.tokens t JOIN unnest(${environments}::text[], ${ids}::uuid[], ${companies.map(({ quietUntil }) => quietUntil)}::timestamptz[])
        AS asked(environment, company_id, until) USING (environment, company_id)
      WHERE t.refresh_at <= now() AND (t.lease_until IS NULL OR t.lease_until <= now())
      FOR UPDATE OF t SKIP LOCKED
    )
    UPDATE muster.tokens t SET refresh_at = due.until, quiet_until = due.until
    FROM due WHERE t.environment = due.environment AND t.company_id = due.company_id`;
}

/**
 * Moves put-off refreshes to this time, or makes them due where it is null, since their quiet hours have changed: those of one company, or of all
 * companies that have the quiet hours of the installation. Passes over tokens that another process has locked.
 */
export async function moveQuietRefreshes(
  tx: Pick<Transaction, '$executeRaw'>,
  { company, until }: { company: CompanyKey | undefined; until: Date | null },
): Promise<void> {
  await tx.$executeRaw`
    WITH moved AS MATERIALIZED (
      SELECT environment, company_id FROM muster.tokens
      WHERE refresh_at > now() AND quiet_until = refresh_at AND refresh_at IS DISTINCT FROM ${until}::timestamptz AND ${isQuietWith(company, 'muster.tokens')}
      FOR UPDATE SKIP LOCKED
    )
    UPDATE muster.tokens t SET refresh_at = COALESCE(${until}::timestamptz, now()), quiet_until = ${until}::timestamptz
    FROM moved WHERE t.environment = moved.environment AND t.company_id = moved.company_id`;
}
