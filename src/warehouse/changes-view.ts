import pg from 'pg';
import { typedView } from './history.js';

/**
 * A query of a resource's changes by their numbers: `_seq, _op, _changed_at, environment, company_id, id, data`. A deletion has no data.
 *
 * It begins with the numbers, of which an index knows those of the resource (decision 0021). All else is looked up for each number, however many the
 * planner expects: for `_seq > (SELECT max(…) …)` it expects a third of the feed. Each look-up is a left join of one row at most, which DISTINCT ON and HAVING
 * tell the planner, so that it leaves out what a query does not ask for: max(_seq) reads the numbers alone. GROUP BY of a primary key would tell it, too, but a view
 * that depends on a key cannot be replaced by `pg_restore --clean` once it has more columns. HAVING also has a record's text parsed once
 * for all of its columns. `[:]` reads the arrays of a batch whole; the planner keeps them for the numbers that follow.
 */
export function changesQuery(resource: string): string {
  const at = 'n.seq - b.first_seq';
  return `
SELECT n.seq AS _seq, c.op AS _op, b.changed_at AS _changed_at, b.environment, b.company_id, c.id, c.data
FROM muster.change_numbers n
LEFT JOIN LATERAL (
  SELECT DISTINCT ON (g.id) g.id, g.first_seq, g.environment, g.company_id, g.changed_at, g.texts, g.texts_from,
    g.ids[:] AS ids, g.ops[:] AS ops, g.starts[:] AS starts, g.lengths[:] AS lengths
  FROM muster.change_batches g WHERE g.id = n.batch_id
) b ON b.id = n.batch_id
LEFT JOIN LATERAL (
  SELECT DISTINCT ON (s.batch_id, s.position) s.batch_id, s.position, s.record_id, s.op, s.data
  FROM muster.changes s WHERE b.ids IS NULL AND s.batch_id = n.batch_id AND s.position = ${at}
) r ON r.batch_id = n.batch_id AND r.position = ${at}
LEFT JOIN LATERAL (
  SELECT CASE WHEN b.ids IS NULL THEN r.record_id ELSE b.ids[${at} + 1] END COLLATE "C" AS id,
    CASE WHEN b.ids IS NULL THEN r.op ELSE COALESCE(b.ops[${at} + 1], 'insert') END AS op,
    CASE WHEN b.ids IS NULL THEN CASE WHEN r.op <> 'delete' THEN r.data END
      WHEN b.ops[${at} + 1] = 'delete' THEN NULL
      ELSE convert_from(substr(b.texts, b.starts[${at} + 1] - b.texts_from + 1, b.lengths[${at} + 1]), 'UTF8')::jsonb END AS data
  HAVING true
) c ON true
WHERE muster.read_by_index(n.seq) AND n.resource = ${pg.escapeLiteral(resource)}`;
}

/** The quoted name of the view of a resource's changes, with the columns of its keys. */
export function changesView(resource: string): string {
  return typedView(`${resource}_changes`);
}
