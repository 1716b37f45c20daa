// muster.run_requests: companies for which a run was requested together with many others, and is not made yet. The request for many inserts rows;
// the transaction that makes a company's run, or finds that it cannot be made, deletes the company's rows. No foreign key: it would lock every
// connection for the length of the request, and delay the opening of walks. Lock order: connections, run_requests.
import type { CompanyKey, Environment } from '../../core/company.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { rowsOf } from './connections.js';

/**
 * Requests a run for each active company: of one environment, or whose last run has that status, if given. Returns the number of
 * companies, including those with an earlier request. Inserts in key order: otherwise two requests at once could wait for each other.
 */
export async function insertRunRequests(
  db: Database,
  { environment = null, lastRun = null }: { environment?: Environment | null | undefined; lastRun?: string | null | undefined },
): Promise<number> {
  const [row] = await db.prisma.$queryRaw<{ chosen: number }[]>`
    WITH chosen AS (
      SELECT c.environment, c.company_id FROM muster.connections c
      WHERE c.status = 'active' AND (${environment}::text IS NULL OR c.environment = ${environment})
        AND (${lastRun}::text IS NULL OR ${lastRun} = (
          SELECT r.status FROM muster.runs r WHERE r.environment = c.environment AND r.company_id = c.company_id AND r.kind = 'sync'
          ORDER BY r.seq DESC LIMIT 1))
    ), added AS (
      INSERT INTO muster.run_requests (environment, company_id) SELECT environment, company_id FROM chosen ORDER BY environment, company_id
      ON CONFLICT DO NOTHING
    )
    SELECT count(*)::int AS chosen FROM chosen`;
  return row!.chosen;
}

/** Companies for which requests wait, in the order of their keys. */
export function findRunRequests(db: Database, { limit }: { limit: number }): Promise<CompanyKey[]> {
  return db.prisma.$queryRaw`
    SELECT environment, company_id AS "companyId" FROM muster.run_requests ORDER BY environment, company_id LIMIT ${limit}::int`;
}

/**
 * Deletes the requests for these companies, and returns the companies that had one. `unlocked`: companies whose connections the caller could
 * not lock. Their requests are deleted only if the company is gone.
 */
export function takeRunRequests(
  tx: Transaction,
  { companies, unlocked }: { companies: readonly CompanyKey[]; unlocked: readonly CompanyKey[] },
): Promise<CompanyKey[]> {
  return tx.$queryRaw`
    DELETE FROM muster.run_requests r USING ${rowsOf(companies)}
    WHERE r.environment = asked.environment AND r.company_id = asked.company_id AND NOT EXISTS (
      SELECT FROM muster.connections c JOIN ${rowsOf(unlocked)} USING (environment, company_id)
      WHERE c.environment = r.environment AND c.company_id = r.company_id)
    RETURNING r.environment, r.company_id AS "companyId"`;
}
