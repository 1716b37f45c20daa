import type { Pool } from 'pg';

/** Ids of the records that the run's walk of the list received in its last pass, in order. */
export async function ledgerIds(pool: Pool, runId: string, resource: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT DISTINCT unnest(k.ids) AS id FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
     JOIN muster.page_snapshots c ON c.id = p.snapshot_id JOIN muster.page_keys k ON k.id = c.keys_id
     WHERE w.run_id = $1 AND w.resource = $2`,
    [runId, resource],
  );
  return rows.map(({ id }) => id).toSorted();
}
