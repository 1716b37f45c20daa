// muster.tokens: the encrypted token pair of each company.
import type { Database } from '../database.js';

/** Access tokens that are to be refreshed now, and those that expired before they were; without those that only a person can renew. */
export async function countLateTokens(db: Database): Promise<{ due: number; overdue: number }> {
  const [row] = await db.prisma.$queryRaw<[{ due: number; overdue: number }]>`
    SELECT count(*) FILTER (WHERE t.refresh_at <= now())::int AS due, count(*) FILTER (WHERE t.expires_at <= now())::int AS overdue
    FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
    WHERE c.reauthorization_reason IS NULL`;
  return row;
}
