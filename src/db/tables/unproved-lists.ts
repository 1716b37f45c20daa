// Lists that were never proved: since when their first proof is due, and the records that their newest walk rejected. Reads muster.lists, muster.walks and
// muster.rejected_records, and locks nothing.
import type { Environment } from '../../core/company.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { staleAfter } from './lists.js';

/**
 * SQL: the list `asked`, `l` of a company `c`, was not proved within these hours after its first walk and the company's onboarding. A list without
 * a walk has no row, and the onboarding counts, unless other lists of the company were walked: then the list is new in the catalogue. A list
 * that the company does not have needs no proof.
 */
export function lacksFirstProof(hours: StaleAfterHours): Prisma.Sql {
  return Prisma.sql`(l.last_verified_at IS NULL AND l.unavailable_since IS NULL AND GREATEST(c.created_at, l.begun_at) < now() - ${staleAfter(hours)}
    AND (l.resource IS NOT NULL OR NOT EXISTS (
      SELECT FROM muster.lists o WHERE o.environment = c.environment AND o.company_id = c.company_id)))`;
}

/**
 * SQL: a list `l` of a company `c` was never proved and has no row, because the newest walk that read it to its end rejected every record. The walk's
 * counts do not show it: a record that is in two pages is rejected twice.
 */
export const REJECTS_ALL = Prisma.sql`(l.last_verified_at IS NULL AND l.records = 0 AND COALESCE((
    SELECT w.rejected > 0 FROM muster.walks w
    WHERE w.environment = l.environment AND w.company_id = l.company_id AND w.resource = l.resource
      AND w.status = 'succeeded' AND w.kind = 'sync' AND w.finished_at >= c.created_at
    ORDER BY w.finished_at DESC LIMIT 1), FALSE))`;

/** A rejected record: why, and the beginning of its text. */
export interface RejectedSample {
  readonly reason: string;
  readonly text: Buffer;
}

/** How many rejected records are searched for the names of their members. */
const LOOKED_AT = 20;

/** Some records that the newest walks of these companies' lists rejected, in page order. */
export async function sampleRejected(
  db: Pick<Database, 'prisma'>,
  {
    environment,
    resource,
    companyIds,
  }: { readonly environment: Environment; readonly resource: string; readonly companyIds: readonly string[] },
): Promise<RejectedSample[]> {
  const rows = await db.prisma.$queryRaw<{ reason: string; text: string }[]>`
    SELECT r.reason, r.text FROM unnest(${companyIds}::uuid[]) WITH ORDINALITY AS asked(company_id, n)
    JOIN muster.lists l ON l.environment = ${environment} AND l.company_id = asked.company_id AND l.resource = ${resource}
    JOIN muster.walks w ON w.environment = l.environment AND w.company_id = l.company_id AND w.resource = l.resource
      AND w.run_id = l.last_run_id AND w.rejected > 0
    CROSS JOIN LATERAL (
      SELECT r.id, r.reason, r.text FROM muster.rejected_records r WHERE r.walk_id = w.id ORDER BY r.id LIMIT ${LOOKED_AT}::int) r
    ORDER BY asked.n, r.id LIMIT ${LOOKED_AT}::int`;
  return rows.map(({ reason, text }) => ({ reason, text: Buffer.from(text, 'base64') }));
}
