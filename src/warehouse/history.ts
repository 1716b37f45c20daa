import { mirrorTable } from '../mirror/mirror-table.js';

/**
 * A query of the versions of a resource's records, out of the change feed: `environment, company_id, id, data`, how long each was valid
 * (`_valid_from` up to and without `_valid_to`), `_is_current`, `_op`, `_seq`, the change's number, and `_next_seq`, that of the change that ended it.
 *
 * Changes of a record are ordered by their numbers, which follow the list's commits. Their times are the beginnings of transactions, and may be in
 * another order where a transaction waited: a version never begins before an earlier one. A deletion is a version of no duration. Conditions on the
 * environment, the company and the id reach the index of batches, since the window is partitioned by these.
 *
 * Where retention has removed the beginning of the feed, a living record without a kept change has the mirror's data, valid since its last change. Earlier
 * versions of other records are missing.
 */
export function versionsQuery(resource: string): string {
  const table = mirrorTable(resource);
  return `
SELECT environment, company_id, id,
  d.data, valid_from AS _valid_from,
  CASE WHEN op = 'delete' THEN valid_from WHEN next_at IS NOT NULL THEN greatest(valid_from, next_at) END AS _valid_to,
  op <> 'delete' AND next_at IS NULL AS _is_current, op AS _op, seq AS _seq, next_seq AS _next_seq
FROM (
  SELECT c.*, max(changed_at) OVER record AS valid_from, row_number() OVER record AS n,
    lead(CASE WHEN seq IS NOT NULL THEN changed_at END) OVER record AS next_at, lead(seq) OVER record AS next_seq
  FROM (
    SELECT b.environment, b.company_id, r.record_id COLLATE "C" AS id, b.first_seq + r.position AS seq, r.op, b.changed_at,
      r.data, NULL::bytea AS texts, NULL::integer AS texts_from, NULL::integer AS start, NULL::integer AS length
    FROM muster.change_batches b JOIN muster.changes r ON r.batch_id = b.id
    WHERE b.resource = '${resource}' AND b.first_seq IS NOT NULL
    UNION ALL
    SELECT b.environment, b.company_id, w.id COLLATE "C", b.first_seq + w.n - 1, COALESCE(w.op, 'insert'), b.changed_at,
      NULL, b.texts, b.texts_from, w.start, w.length
    FROM muster.change_batches b
    CROSS JOIN LATERAL unnest(b.ids, b.starts, b.lengths, b.ops) WITH ORDINALITY AS w(id, start, length, op, n)
    WHERE b.resource = '${resource}' AND b.first_seq IS NOT NULL
    UNION ALL
    SELECT m.environment, m.company_id, m.id COLLATE "C", NULL, CASE WHEN m.changed_at = m.first_seen_at THEN 'insert' ELSE 'update' END,
      m.changed_at, m.data, NULL, NULL, NULL, NULL
    FROM ${table} m WHERE m.deleted_at IS NULL AND (SELECT first_seq > 1 FROM warehouse.feed)
  ) c
  WINDOW record AS (PARTITION BY environment, company_id, id ORDER BY seq NULLS LAST)
) v
CROSS JOIN LATERAL (
  SELECT CASE WHEN start IS NULL THEN v.data ELSE convert_from(substr(texts, start - texts_from + 1, length), 'UTF8')::jsonb END AS data OFFSET 0
) d
WHERE seq IS NOT NULL OR n = 1`;
}

/** The quoted name of a resource's typed view. Throws on a name that the catalogue refuses. */
export function typedView(resource: string): string {
  return mirrorTable(resource).replace('mirror.', 'warehouse.');
}

/** The quoted name of the view of a resource's versions, with the columns of its keys. */
export function historyView(resource: string): string {
  return typedView(`${resource}_history`);
}

/**
 * The functions that answer as of an instant and as of a number: the quoted name of each with its parameter, and the text that makes it. They return
 * the versions that were valid then, or fail where these are not all known.
 */
export function asOfFunctions(resource: string): readonly { readonly signature: string; readonly text: string }[] {
  return [
    functionOf(resource, {
      signature: `${typedView(`${resource}_as_of`)}(timestamptz)`,
      // PostgreSQL would answer no rows for no instant, without a call of the check.
      condition: `(v._valid_from <= $1 OR $1 IS NULL) AND (v._valid_to > $1 OR v._valid_to IS NULL) AND warehouse.require_kept('${resource}', $1)`,
    }),
    functionOf(resource, {
      signature: `${typedView(`${resource}_as_of_seq`)}(bigint)`,
      condition: `v._op <> 'delete' AND (v._seq <= $1 OR v._seq IS NULL) AND (v._next_seq > $1 OR v._next_seq IS NULL)
    AND warehouse.require_kept_seq('${resource}', $1)`,
    }),
  ];
}

function functionOf(resource: string, { signature, condition }: { readonly signature: string; readonly condition: string }) {
  const view = historyView(resource);
  const text = `
CREATE OR REPLACE FUNCTION ${signature} RETURNS SETOF ${view} LANGUAGE sql STABLE AS $$
  SELECT v.* FROM ${view} v
  WHERE ${condition}
$$`;
  return { signature, text };
}
