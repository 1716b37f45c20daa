import type { Transaction } from '../db/transaction.js';
import type { ListKey } from './list-fence.js';

/**
 * Whether records that both have stand in another order in the pass than in the list's last verified walk. A record's place
 * is the last one where the pass received it: where pages overlap, the later page shows the list as it was by then. Usually every
 * page holds the same records as then, and nothing need be sorted to see it.
 */
export async function movedRecords(
  tx: Pick<Transaction, '$queryRaw'>,
  { environment, companyId, resource }: ListKey,
  { walkId, pass }: { readonly walkId: string; readonly pass: number },
): Promise<boolean> {
  const [row] = await tx.$queryRaw<{ moved: boolean }[]>`
    WITH newer AS (
      SELECT p.page, k.id AS keys_id, k.ids, k.keys
      FROM muster.walk_pages p JOIN muster.page_contents c ON c.id = p.content_id JOIN muster.page_keys k ON k.id = c.keys_id
      WHERE p.walk_id = ${walkId}::uuid AND p.pass = ${pass}
    ), older AS (
      SELECT p.page, k.id AS keys_id, k.ids, k.keys
      FROM muster.lists l JOIN muster.walks w ON w.id = l.verified_walk_id
           JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
           JOIN muster.page_contents c ON c.id = p.content_id JOIN muster.page_keys k ON k.id = c.keys_id
      WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource}
    ), pairs AS (
      SELECT n.place, lag(n.place) OVER (ORDER BY o.place) AS before
      FROM (SELECT u.id, max(page::bigint * 100000 + u.n) AS place FROM newer, unnest(ids) WITH ORDINALITY AS u(id, n) GROUP BY u.id) n
      JOIN (SELECT u.id, max(page::bigint * 100000 + u.n) AS place FROM older, unnest(ids) WITH ORDINALITY AS u(id, n) GROUP BY u.id) o USING (id)
    )
    SELECT CASE
      WHEN NOT EXISTS (
        SELECT 1 FROM newer FULL JOIN older USING (page)
        WHERE newer.keys_id IS DISTINCT FROM older.keys_id AND newer.keys IS DISTINCT FROM older.keys
      ) THEN false
      ELSE EXISTS (SELECT 1 FROM pairs WHERE place < before)
    END AS moved`;
  return row?.moved ?? false;
}
