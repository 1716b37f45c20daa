import { inTurns } from '../core/turns.js';
import type { Database } from '../db/connection/database.js';
import { runStep, wasRolledBack } from '../db/connection/step.js';
import { named } from '../db/statements/named-parameters.js';
import { fenced, type ListKey } from '../db/tables/lists.js';
import { MOST_KEPT } from '../db/tables/rejected-records.js';
import { mirrorTable } from './mirror-table.js';
import { type PageParameter, pageParameters, type WalkWrite } from './page-parameters.js';
import type { PageToWrite } from './page-values.js';

/**
 * Writes pages that follow each other: the rows that are new, differ or had been deleted; their change feed rows; the ledger rows;
 * the walk's checkpoint and counts. One step: all of it or nothing. Throws `fenced` when somebody else has taken the list, or the walk was
 * ended meanwhile, and an error that is worth another attempt when a row that differs was changed by hand in this very moment. Of two
 * records with one id the last one wins.
 *
 * Unchanged rows are not even locked: the difference is taken first, by one look-up a record. LATERAL with OFFSET keeps it
 * look-ups: the planner, which knows neither the page's length nor, in a new table, the table's, may choose a scan of the whole
 * table for every page. The first OFFSET keeps a text from being parsed wherever its data is named. Rows that differ are
 * updated where the look-up found them. Records that are known to be new are not looked up; one that somebody else has put
 * there meanwhile fails the statement with SQLSTATE 23505. New rows need no ON CONFLICT, which would cost them a quarter more:
 * whoever holds the list is the only one to insert.
 *
 * Data is compared by its bytes (`record_image_ne`): as values, 1.5 and 1.50 are equal.
 */
export async function writePages(db: Pick<Database, 'steps'>, write: WalkWrite, pages: readonly PageToWrite[]): Promise<void> {
  const { list } = write;
  const statement = pageStatement(mirrorTable(list.resource));
  const parameters = await inTurns(pageParameters(write, pages));
  try {
    const walks = await runStep(db, statement(parameters));
    if (walks.length === 0) throw fenced(list, 'another worker has taken it over, or the walk has ended or stands elsewhere');
  } catch (error) {
    throw wasRolledBack(error) ? changedByHand(list) : error;
  }
}

function changedByHand({ resource }: ListKey): Error {
  return new Error(
    `Not every row of ${resource} that differs could be updated: somebody, or a trigger, changes them at the same time.`,
  );
}

type PageStatement = ReturnType<typeof named<PageParameter>>;

const STATEMENTS = new Map<string, PageStatement>();

/** One statement a table, made once: its text is what connections know its plan by. */
function pageStatement(table: string): PageStatement {
  const statement = STATEMENTS.get(table) ?? named<PageParameter>(pageText(table));
  STATEMENTS.set(table, statement);
  return statement;
}

/**
 * Changes that share a batch of the feed where it keeps them as the text that was received: whoever reads one of them reads what says where
 * the others stand, and each batch is a row of its own.
 */
const BATCH = 250;

const pageText = (table: string) => `
WITH list AS (
  SELECT FROM muster.lists
  WHERE environment = :environment AND company_id = :companyId::uuid AND resource = :resource AND epoch = :epoch::bigint FOR UPDATE
), walk AS (
  SELECT w.id, w.rejected FROM list CROSS JOIN muster.walks w
  WHERE w.id = :walkId::uuid AND w.epoch = :epoch::bigint AND w.status = 'running' AND w.pages = :pagesBefore::int FOR UPDATE OF w
), incoming AS (
  SELECT i.id, convert_from(substr(:texts::bytea, i.start, i.length), 'UTF8')::jsonb AS data, i.start, i.length, i.n
  FROM walk CROSS JOIN unnest(:ids::text[], :starts::int[], :lengths::int[]) WITH ORDINALITY AS i(id, start, length, n)
  OFFSET 0
), difference AS (
  SELECT s.id, s.data, s.start, s.length, s.n, t.place,
         CASE WHEN t.id IS NULL THEN 'insert' WHEN t.deleted_at IS NOT NULL THEN 'restore' ELSE 'update' END AS op
  FROM incoming s
  LEFT JOIN LATERAL (
    SELECT t.id, t.data, t.deleted_at, t.ctid AS place FROM ${table} t
    WHERE t.environment = :environment AND t.company_id = :companyId::uuid AND t.id = s.id AND s.n <= :lookUps OFFSET 0
  ) t ON true
  WHERE t.id IS NULL OR t.deleted_at IS NOT NULL OR record_image_ne(ROW(t.data), ROW(s.data))
), inserted AS (
  INSERT INTO ${table} (environment, company_id, id, data, first_seen_at, changed_at)
  SELECT :environment, :companyId::uuid, id, data, now(), now() FROM difference WHERE op = 'insert'
), rewritten AS (
  UPDATE ${table} t SET data = d.data, changed_at = now(), deleted_at = NULL
  FROM difference d WHERE t.ctid = d.place AND d.op <> 'insert'
  RETURNING 1
), counted AS (
  SELECT count(*)::int AS size, (count(*) FILTER (WHERE op = 'insert'))::int AS inserted,
         (count(*) FILTER (WHERE op <> 'insert'))::int AS updated, (count(*) FILTER (WHERE op <> 'update'))::int AS risen
  FROM difference
), part AS (
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
), page AS (
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
)
UPDATE muster.walks w
SET checkpoint = :checkpoint::jsonb, checkpoint_at = now(), pages = w.pages + cardinality(:pages), received = :received,
  duplicates = :duplicates, total_records = COALESCE(:total::int, w.total_records),
  rejected = w.rejected + :rejected::int,
  inserted = w.inserted + counted.inserted, updated = w.updated + counted.updated,
  unchanged = GREATEST(0, :received - w.inserted - counted.inserted - w.updated - counted.updated
    - w.rejected - :rejected::int)
FROM walk CROSS JOIN counted
WHERE w.id = walk.id AND muster.require(counted.updated = (SELECT count(*) FROM rewritten))
RETURNING w.id`;
