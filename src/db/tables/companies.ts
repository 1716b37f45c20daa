// mirror.companies: the onboarded companies, and the service's record of each. Onboarding inserts a row after locking the company's
// connection; a sync of the company updates it.
import { type CompanyKey, keyText } from '../../core/company.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { rowsOf } from './connections.js';

/** A company that was there, and removed by the service, is living again. */
export async function addCompany(tx: Transaction, { environment, companyId }: CompanyKey): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO mirror.companies (environment, company_id) VALUES (${environment}, ${companyId}::uuid)
    ON CONFLICT (environment, company_id) DO UPDATE SET deleted_at = NULL`;
}

/** The service's names of these companies, by `keyText`. Companies without a name and removed ones are left out. */
export async function findCompanyNames(db: Database, companies: readonly CompanyKey[]): Promise<ReadonlyMap<string, string>> {
  const asked = [...new Map(companies.map((company) => [keyText(company), company])).values()];
  if (asked.length === 0) return new Map();
  // One look-up per company (docs/internals/planner.md).
  const rows = await db.prisma.$queryRaw<(CompanyKey & { name: string })[]>`
    SELECT environment, company_id::text AS "companyId", m.name FROM ${rowsOf(asked)}
    JOIN LATERAL (SELECT name FROM mirror.companies
      WHERE environment = asked.environment AND company_id = asked.company_id AND name IS NOT NULL LIMIT 1) m ON TRUE`;
  return new Map(rows.map((row) => [keyText(row), row.name]));
}
