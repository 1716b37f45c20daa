// muster.lists, muster.walks, the ledger (ledger.ts) and muster.rejected_records: what a commit of pages writes there. These are parts of the
// statement of src/mirror/page-writer.ts, whose parameters they name.
import { MOST_KEPT } from './rejected-records.js';

/** The parts `list` and `walk`: both have no row where another worker has taken the list, or the walk has ended or stands at another page. */
export const LOCK_WALK = `list AS (
  SELECT FROM muster.lists
  WHERE environment = :environment AND company_id = :companyId::uuid AND resource = :resource AND epoch = :epoch::bigint FOR UPDATE
), walk AS (
  SELECT w.id, w.rejected FROM list CROSS JOIN muster.walks w
  WHERE w.id = :walkId::uuid AND w.epoch = :epoch::bigint AND w.status = 'running' AND w.pages = :pagesBefore::int FOR UPDATE OF w
)`;

/**
 * The parts that write the ledger and the rejected records, and what the list's row says of them. They read `walk` and `counted` (risen: rows that
 * were not living before).
 */
export const RECORD_PAGES = `page AS (
  SELECT p.page, p.next_token, p.answer, p.first_id, p.last_id, p.snapshot_id IS NULL AS is_new,
         COALESCE(p.snapshot_id, nextval('muster.page_snapshots_id_seq')) AS snapshot_id,
         CASE WHEN p.keys_size IS NULL THEN p.keys_id ELSE nextval('muster.page_keys_id_seq') END AS keys_id,
         substr(:hashes::bytea, p.keys_at, p.keys_size) AS keys, substr(:hashes::bytea, p.rows_at, p.rows_size) AS row_hashes
  FROM walk CROSS JOIN unnest(:pages::int[], :tokenDigests::text[], :answers::jsonb[], :snapshotIds::bigint[], :keysIds::bigint[], :firstIds::int[],
              :lastIds::int[], :keysAt::int[], :keysSizes::int[], :rowsAt::int[], :rowsSizes::int[])
       AS p(page, next_token, answer, snapshot_id, keys_id, first_id, last_id, keys_at, keys_size, rows_at, rows_size)
), keys AS (
  INSERT INTO muster.page_keys (id, environment, company_id, resource, ids, keys)
  SELECT keys_id, :environment, :companyId::uuid, :resource, (COALESCE(:keys::text[], :ids::text[]))[first_id : last_id], keys
  FROM page WHERE keys IS NOT NULL
), snapshot AS (
  INSERT INTO muster.page_snapshots (id, environment, company_id, resource, keys_id, row_hashes)
  SELECT snapshot_id, :environment, :companyId::uuid, :resource, keys_id, row_hashes FROM page WHERE is_new
), ledger AS (
  INSERT INTO muster.walk_pages (walk_id, pass, page, snapshot_id, next_token, answer)
  SELECT :walkId::uuid, :pass, page, snapshot_id, next_token, answer FROM page
), rejects AS (
  INSERT INTO muster.rejected_records (walk_id, pass, page, position, reason, text)
  SELECT walk.id, :pass::int, r.page, r.position, r.reason, r.text
  FROM walk CROSS JOIN
    unnest(:rejectedPages::int[], :rejectedPositions::int[], :rejectedReasons::text[], :rejectedTexts::text[])
      WITH ORDINALITY AS r(page, position, reason, text, n)
  WHERE walk.rejected + r.n <= ${MOST_KEPT}
), known AS (
  UPDATE muster.lists l SET records = l.records + counted.risen, id_field = COALESCE(:idField::text, l.id_field)
  FROM walk CROSS JOIN counted
  WHERE (counted.risen > 0 OR :idField::text IS NOT NULL)
    AND l.environment = :environment AND l.company_id = :companyId::uuid AND l.resource = :resource
)`;

/** The end of the statement: the walk's checkpoint and counts. The commit is taken back unless every row that differs was written (`rewritten`). */
export const COUNT_PAGES = `UPDATE muster.walks w
SET checkpoint = :checkpoint::jsonb, checkpoint_at = now(), pages = w.pages + cardinality(:pages), received = :received,
  duplicates = :duplicates, total_records = COALESCE(:total::int, w.total_records),
  rejected = w.rejected + :rejected::int,
  inserted = w.inserted + counted.inserted, updated = w.updated + counted.updated,
  unchanged = GREATEST(0, :received - w.inserted - counted.inserted - w.updated - counted.updated
    - w.rejected - :rejected::int)
FROM walk CROSS JOIN counted
WHERE w.id = walk.id AND muster.require(counted.updated = (SELECT count(*) FROM rewritten))
RETURNING counted.inserted, counted.updated`;
