// muster.lists as a consumer of its records sees it: the proof of each list, and its walk. Reads only, and locks nothing.
import type pg from 'pg';
import type { Environment } from '../../core/company.js';
import { type List, Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import type { ListKey } from './lists.js';

/** The proof of a list, as a consumer of its records sees it. */
export interface ListProof {
  readonly environment: string;
  readonly companyId: string;
  /** Null where the list was never proved complete. */
  readonly verifiedAt: Date | null;
  /** Equals the value in `warehouse.lists`; a list without a walk is not late. */
  readonly isLate: boolean;
  /** The company does not have the list, as the service says. */
  readonly isUnavailable: boolean;
  readonly proof: string | null;
  readonly records: number;
  /** The newest signed certificate; null where there is none. */
  readonly certificate: string | null;
}

/** The lists of a resource, for every onboarded company or for these, in the snapshot of the caller's transaction. */
export async function listProofs(
  client: Pick<pg.ClientBase, 'query'>,
  {
    resource,
    environment = null,
    companyId = null,
  }: {
    readonly resource: string;
    readonly environment?: Environment | null | undefined;
    readonly companyId?: string | null | undefined;
  },
): Promise<ListProof[]> {
  const { rows } = await client.query<ListProof>(
    Prisma.sql`SELECT c.environment, c.company_id AS "companyId", l.last_verified_at AS "verifiedAt",
       l.resource IS NOT NULL AND NOT c.paused AND l.unavailable_since IS NULL AND COALESCE(l.last_verified_at, GREATEST(c.created_at, l.begun_at))
         < now() - make_interval(mins => COALESCE((s.list_minutes ->> ${resource})::int, s.stale_after_hours * 60)) AS "isLate", l.unavailable_since IS NOT NULL AS "isUnavailable", w.proof, COALESCE(l.records, 0) AS records,
       newest.jws AS certificate
     FROM muster.connections c CROSS JOIN muster.warehouse_settings s
     LEFT JOIN muster.lists l ON l.environment = c.environment AND l.company_id = c.company_id AND l.resource = ${resource}
     LEFT JOIN muster.walks w ON w.id = l.verified_walk_id
     LEFT JOIN LATERAL (
       SELECT n.jws FROM muster.certificates n
       WHERE n.environment = c.environment AND n.company_id = c.company_id AND n.resource = ${resource} AND n.jws IS NOT NULL
       ORDER BY n.id DESC LIMIT 1
     ) newest ON true
     WHERE (${environment}::text IS NULL OR c.environment = ${environment})
       AND (${companyId}::uuid IS NULL OR c.company_id = ${companyId})
     ORDER BY c.environment, c.company_id`,
  );
  return rows;
}

/** A list's proof and its number of living records; null where no walk of it was ever begun. */
export function findList(
  { list }: Pick<Transaction, 'list'>,
  { environment, companyId, resource }: ListKey,
): Promise<Pick<List, 'records' | 'lastVerifiedAt' | 'lastRunId'> | null> {
  return list.findUnique({
    where: { environment_companyId_resource: { environment, companyId, resource } },
    select: { records: true, lastVerifiedAt: true, lastRunId: true },
  });
}
