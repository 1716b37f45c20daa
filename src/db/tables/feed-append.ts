// muster.change_batches and muster.changes: how changes come into the feed. A transaction that changes mirrored rows appends them with one of
// these parts of its statement, under the lock of the list. The sequencer numbers the batch after the commit (change-batches.ts).
import { Prisma } from '../../generated/prisma/client.js';
import type { ListKey } from './lists.js';

export type FeedOp = 'insert' | 'update' | 'restore' | 'delete';

/**
 * The parts `batch` and `fed` of a statement: they append one batch with a change for each row of the part `changed` (id, data), in the order of
 * ids. They append nothing where it has no row.
 */
export function appendToFeed(
  { environment, companyId, resource }: ListKey,
  { op, runId = null }: { readonly op: FeedOp; readonly runId?: string | null },
): Prisma.Sql {
  return Prisma.sql`batch AS (
    INSERT INTO muster.change_batches (size, environment, company_id, resource, run_id, changed_at)
    SELECT count(*)::int, ${environment}, ${companyId}::uuid, ${resource}, ${runId}::uuid, now() FROM changed HAVING count(*) > 0 RETURNING id
  ), fed AS (
    INSERT INTO muster.changes (batch_id, position, record_id, op, data)
    SELECT batch.id, row_number() OVER (ORDER BY c.id) - 1, c.id, ${op}, c.data FROM batch, changed c
  )`;
}

/**
 * Changes that share a batch where it keeps them as the text that was received. A reader of one of them reads the places of all of
 * them, and each batch costs a row.
 */
const BATCH = 250;

/**
 * The parts of a page's statement that append the page's changes. They read `difference` (id, data, start, length, n, op) and `counted` (size, inserted).
 * Where most of what was compared has changed, each batch keeps its changes as the text that was received (decision 0004).
 */
export const APPEND_PAGE = `part AS (
  SELECT at, LEAST(${BATCH}, size - at) AS size, (:starts::int[])[at + 1] AS first, (:ids::text[])[at + 1 : at + ${BATCH}] AS ids,
         (:starts::int[])[at + 1 : at + ${BATCH}] AS starts, (:lengths::int[])[at + 1 : at + ${BATCH}] AS lengths, NULL::text[] AS ops
  FROM counted, generate_series(0, size - 1, ${BATCH}) AS at
  WHERE inserted = cardinality(:ids)
  UNION ALL
  SELECT (d.n - 1) / ${BATCH}, count(*)::int, min(start), array_agg(id), array_agg(start), array_agg(length),
         CASE WHEN bool_or(op <> 'insert') THEN array_agg(op) END
  FROM counted, (SELECT * FROM difference ORDER BY n) d
  WHERE inserted < cardinality(:ids) AND 2 * size >= cardinality(:ids)
  GROUP BY (d.n - 1) / ${BATCH}
  UNION ALL
  SELECT 0, size, NULL, NULL, NULL, NULL, NULL FROM counted WHERE size > 0 AND 2 * size < cardinality(:ids)
), batch AS (
  INSERT INTO muster.change_batches
    (size, environment, company_id, resource, run_id, changed_at, texts, texts_from, ids, starts, lengths, ops)
  SELECT size, :environment, :companyId::uuid, :resource, :runId::uuid, now(),
         substr(:texts::bytea, first, starts[size] + lengths[size] - first), COALESCE(first, 1), ids, starts, lengths, ops
  FROM part ORDER BY at
  RETURNING id, texts IS NOT NULL AS is_whole
), fed AS (
  INSERT INTO muster.changes (batch_id, position, record_id, op, data)
  SELECT batch.id, row_number() OVER (ORDER BY d.n) - 1, d.id, d.op, d.data FROM batch, difference d WHERE NOT batch.is_whole
)`;
