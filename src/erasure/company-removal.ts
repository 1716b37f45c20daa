import { type CompanyKey, companyNotFound } from '../core/company.js';
import type { Transaction } from '../db/connection/transaction.js';
import { goByIndex } from '../db/statements/in-pieces.js';
import { type Actor, insertRemoval } from '../db/tables/audit.js';
import { lockConnection } from '../db/tables/connections.js';
import { HOLDERS } from './holders.js';

/**
 * Removes a company: everything that was received for it, and the right to receive more. Runs, walks, signed certificates and the audit stay as
 * history. The entry in the audit tells exchanges and refreshes that are under way that what they bring must not be stored. The connection is locked
 * first, so that no walk begins. Returns the database's time of the removal. Throws `company_not_found`.
 */
export async function removeCompany(tx: Transaction, company: CompanyKey, by: Actor): Promise<string> {
  if (!(await lockConnection(tx, company))) throw companyNotFound(company);
  await goByIndex(tx);
  for (const { byCompany } of HOLDERS) if (typeof byCompany === 'function') await byCompany(tx, company);
  return insertRemoval(tx, { company, by });
}
