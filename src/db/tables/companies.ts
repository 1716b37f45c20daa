// mirror.companies: the onboarded companies, and the record that the service gives of each. Onboarding inserts a row behind the
// company's connection, the sync of a company writes it.
import type { CompanyKey } from '../../core/company.js';
import type { Transaction } from '../transaction.js';

/** A company that was there, and removed by the service, is living again. */
export async function addCompany(tx: Transaction, { environment, companyId }: CompanyKey): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO mirror.companies (environment, company_id) VALUES (${environment}, ${companyId}::uuid)
    ON CONFLICT (environment, company_id) DO UPDATE SET deleted_at = NULL`;
}
