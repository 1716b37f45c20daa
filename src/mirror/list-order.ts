import type { Transaction } from '../db/transaction.js';
import type { ListKey } from './list-fence.js';

/**
 * Whether records that both have stand in another order in the pass than in the list's last verified walk. A record's place
 * is the last one where the pass received it: where pages overlap, the later page shows the list as it was by then.
 */
export async function movedRecords(
  tx: Transaction,
  { environment, companyId, resource }: ListKey,
  { walkId, pass }: { readonly walkId: string; readonly pass: number },
): Promise<boolean> {
  const [row] = await tx.$queryRaw<{ moved: boolean }[]>`
    WITH newer AS (
      SELECT u.id, max(p.page::bigint * 100000 + u.n) AS place
      FROM muster.walk_pages p, unnest(p.ids) WITH ORDINALITY AS u(id, n) WHERE p.walk_id = ${walkId}::uuid AND p.pass = ${pass} GROUP BY u.id
    ), older AS (
      SELECT u.id, max(p.page::bigint * 100000 + u.n) AS place
      FROM muster.lists l JOIN muster.walks w ON w.id = l.verified_walk_id JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass,
           unnest(p.ids) WITH ORDINALITY AS u(id, n)
      WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource} GROUP BY u.id
    ), pairs AS (
      SELECT newer.place, lag(newer.place) OVER (ORDER BY older.place) AS before FROM newer JOIN older USING (id)
    )
    SELECT EXISTS (SELECT 1 FROM pairs WHERE place < before) AS moved`;
  return row?.moved ?? false;
}
