// muster.connections: the onboarded companies. The first table that a writer locks.
import type { CompanyKey } from '../../core/company.js';
import type { Database } from '../database.js';
import type { Transaction } from '../transaction.js';

export function countCompanies(db: Database): Promise<{ status: string; count: number }[]> {
  return db.prisma.$queryRaw`SELECT status, count(*)::int AS count FROM muster.connections GROUP BY status`;
}

/** Names the authorization that the company has now: by its connection, and by the fence of its token, which every stored pair moves. */
export async function authorizationOf(tx: Transaction, { environment, companyId }: CompanyKey): Promise<string | undefined> {
  const [row] = await tx.$queryRaw<{ name: string }[]>`
    SELECT concat_ws(' ', c.id, t.fence) AS name FROM muster.connections c LEFT JOIN muster.tokens t USING (environment, company_id)
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid`;
  return row?.name;
}
