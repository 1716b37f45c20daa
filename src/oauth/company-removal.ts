import { type CompanyKey, companyNotFound } from '../core/company.js';
import type { Transaction } from '../db/transaction.js';
import { Prisma } from '../generated/prisma/client.js';
import { eraseCompany } from '../mirror/company-erasure.js';
import { lockConnection } from './lease.js';

/**
 * Removes a company: everything that was received for it, and the right to receive more; what was done stays on record
 * (runs, audit). The order is the lock order of every writer: the connection, so that no walk begins; the token, so that
 * no refresh is stored; the lists, so that a page being written commits first and the next one finds itself fenced;
 * then the rows. Throws `company_not_found`.
 */
export async function removeCompany(tx: Transaction, company: CompanyKey, actor: string): Promise<void> {
  const { environment, companyId } = company;
  const theirs = Prisma.sql`environment = ${environment} AND company_id = ${companyId}::uuid`;
  if (!(await lockConnection(tx, company))) throw companyNotFound(company);

  await tx.$executeRaw`DELETE FROM muster.tokens WHERE ${theirs}`;
  await tx.$executeRaw`DELETE FROM muster.quarantined_tokens WHERE ${theirs}`;
  await tx.$executeRaw`DELETE FROM muster.connect_links WHERE ${theirs}`;
  await tx.$executeRaw`DELETE FROM muster.lists WHERE ${theirs}`;
  await endRuns(tx, theirs);
  await tx.$executeRaw`DELETE FROM muster.holds WHERE ${theirs}`;
  await eraseCompany(tx, company);
  await tx.$executeRaw`DELETE FROM muster.connections WHERE ${theirs}`;
  await tx.$executeRaw`
    INSERT INTO muster.audit (actor, action, environment, company_id)
    VALUES (${actor}, 'company.remove', ${environment}, ${companyId}::uuid)`;
}

/**
 * The rows of runs and walks stay as history; checkpoints, ledger and rejected records held the company's data. The run
 * before its walks, as everybody locks them.
 */
async function endRuns(tx: Transaction, theirs: Prisma.Sql): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.runs SET status = 'cancelled', cancel_requested = TRUE, epoch = epoch + 1, finished_at = now()
    WHERE ${theirs} AND status IN ('queued', 'running')`;
  const walks = Prisma.sql`SELECT id FROM muster.walks WHERE ${theirs}`;
  await tx.$executeRaw`DELETE FROM muster.walk_pages WHERE walk_id IN (${walks})`;
  await tx.$executeRaw`DELETE FROM muster.page_snapshots WHERE ${theirs}`;
  await tx.$executeRaw`DELETE FROM muster.page_keys WHERE ${theirs}`;
  await tx.$executeRaw`DELETE FROM muster.rejected_records WHERE walk_id IN (${walks})`;
  await tx.$executeRaw`
    UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL,
      status = CASE WHEN status IN ('queued', 'running') THEN 'cancelled' ELSE status END, finished_at = COALESCE(finished_at, now())
    WHERE ${theirs}`;
}
