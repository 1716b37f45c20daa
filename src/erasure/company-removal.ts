import { type CompanyKey, companyNotFound } from '../core/company.js';
import type { Transaction } from '../db/connection/transaction.js';
import { goByIndex } from '../db/statements/in-pieces.js';
import { type Actor, insertRemoval } from '../db/tables/audit.js';
import { removeUnsigned } from '../db/tables/certificates.js';
import { lockConnection } from '../db/tables/connections.js';
import { removeHeldRowsOf } from '../db/tables/held-rows.js';
import { eraseLedgersOf } from '../db/tables/ledger.js';
import { removeRejectedRecords } from '../db/tables/rejected-records.js';
import { cancelRunsOf } from '../db/tables/runs.js';
import { eraseReadingsOf } from '../db/tables/second-readings.js';
import { eraseWalksOf } from '../db/tables/walks.js';
import { eraseCompany } from './company-erasure.js';

/**
 * Removes a company: everything that was received for it, and the right to receive more. Runs, walks, signed certificates and the audit stay as
 * history, and the entry in the audit tells exchanges and refreshes under way that what they bring must not be stored. The order is the lock order of every writer: the connection, so that no walk begins; the token, so that
 * no refresh is stored; the lists, so that a page being written commits first and the next one finds itself fenced; the runs
 * before their walks; then the rows. Returns the database's time of the removal. Throws `company_not_found`.
 */
export async function removeCompany(tx: Transaction, company: CompanyKey, by: Actor): Promise<string> {
  if (!(await lockConnection(tx, company))) throw companyNotFound(company);
  await goByIndex(tx);
  await tx.token.deleteMany({ where: company });
  await tx.quarantinedToken.deleteMany({ where: company });
  await tx.connectLink.deleteMany({ where: company });
  await tx.list.deleteMany({ where: company });
  await cancelRunsOf(tx, company);
  await eraseLedgersOf(tx, company);
  await removeRejectedRecords(tx, company);
  await eraseWalksOf(tx, company);
  await eraseReadingsOf(tx, company);
  await tx.hold.deleteMany({ where: company });
  await removeHeldRowsOf(tx, company);
  await eraseCompany(tx, company);
  await tx.barrier.deleteMany({ where: company }); // behind the batches, as the sequencer locks them
  await removeUnsigned(tx, company);
  await tx.connection.deleteMany({ where: company });
  return insertRemoval(tx, { company, by });
}
