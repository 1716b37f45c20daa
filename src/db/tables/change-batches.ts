// muster.change_batches: one commit's worth of a list's changes. Whoever commits a change of mirrored rows adds a batch, and src/mirror
// numbers it after the commit (`first_seq`). The view muster.stamped_changes shows the changes of numbered batches, one a row.
import type { Environment } from '../../core/company.js';
import type { Database } from '../database.js';

export interface ChangeRow {
  /** A bigint in decimal. */
  readonly seq: string;
  readonly resource: string;
  readonly environment: string;
  readonly companyId: string;
  readonly id: string;
  readonly op: string;
  /** JSON as text, with every digit of its numbers; null where the change has no record. */
  readonly data: string | null;
  readonly changedAt: Date;
  readonly runId: string | null;
}

/**
 * The numbered changes after `after`, in their order: what the view mirror.changes shows, from the batch on that holds `after`. That
 * view's number is a sum that no index knows, and a consumer at the end of a long feed must not read all of it again.
 */
export async function readChanges(
  db: Database,
  {
    after,
    resource,
    environment,
    limit,
  }: { readonly after: string; readonly resource?: string; readonly environment?: Environment; readonly limit: number },
): Promise<ChangeRow[]> {
  const { rows } = await db.pool.query<ChangeRow>(
    `SELECT first_seq + position AS seq, resource, environment, company_id AS "companyId", record_id AS id, op, data::text AS data,
       changed_at AS "changedAt", run_id AS "runId"
     FROM muster.stamped_changes
     WHERE first_seq >= COALESCE((SELECT max(first_seq) FROM muster.change_batches WHERE first_seq <= $1), 0)
       AND first_seq + position > $1 AND ($2::text IS NULL OR resource = $2) AND ($3::text IS NULL OR environment = $3)
     ORDER BY first_seq, position LIMIT $4`,
    [after, resource ?? null, environment ?? null, limit],
  );
  return rows;
}
