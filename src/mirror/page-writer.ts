import { bytesOf } from '../core/text-slice.js';
import { executeBulk, numberArray, textArray } from '../db/bulk-statement.js';
import type { Transaction } from '../db/transaction.js';
import { joinTexts } from './joined-texts.js';
import { LedgerColumns } from './ledger-columns.js';
import { fenced, type ListKey } from './list-fence.js';
import { mirrorTable } from './mirror-table.js';
import { type PageToWrite, recordsOf } from './page-values.js';

/** A walk that writes, and where it stands once the write has taken effect. */
export interface WalkWrite {
  readonly list: ListKey;
  /** The list's epoch under which the walk was opened. */
  readonly epoch: bigint;
  readonly runId: string;
  readonly walkId: string;
  /** Pages that the walk has committed so far, as the writer knows it: fewer in the database mean that it has lost some. */
  readonly pagesBefore: number;
  readonly pass: number;
  /** totalRecords, where it is that of the whole walk. */
  readonly total?: number;
  /** The walk's state, and what the pass has counted by then. */
  readonly checkpoint: object;
  readonly received: number;
  readonly duplicates: number;
}

/** What the column holds. Some services say that they do not know their total by the largest number that they have. */
const MOST_RECORDS = 2 ** 31 - 1;

/**
 * Writes pages that follow each other: the rows that are new, differ or had been deleted; their change feed rows; the ledger rows;
 * the walk's checkpoint and counts. One statement, so that one round trip and one snapshot serve all of it. The caller has made the
 * transaction and holds the list. Throws `fenced` when the walk was ended meanwhile, and an error that is worth another attempt when a
 * row that differs was changed by hand in this very moment. Of two records with one id the last one wins.
 *
 * Unchanged rows are not even locked: the difference is taken first, by one look-up a record. LATERAL with OFFSET keeps it
 * look-ups: the planner, which knows neither the page's length nor, in a new table, the table's, may choose a scan of the whole
 * table for every page. The first OFFSET keeps a text from being parsed wherever its data is named. Rows that differ are
 * updated where the look-up found them. Records that are known to be new are not looked up; one that somebody else has put
 * there meanwhile fails the statement with SQLSTATE 23505. New rows need no ON CONFLICT, which would cost them a quarter more:
 * whoever holds the list is the only one to insert.
 *
 * Data is compared by its bytes (`record_image_ne`): as values, 1.5 and 1.50 are equal.
 *
 * `onSent` is called when the statement is on its way to the database.
 */
export async function writePages(
  tx: Transaction,
  write: WalkWrite,
  pages: readonly PageToWrite[],
  onSent?: () => void,
): Promise<void> {
  const { list, walkId, pass } = write;
  const { records, lookUps } = recordsOf(pages);
  const texts = joinTexts(records);
  const ids = records.map(({ id }) => id);
  const ledger = new LedgerColumns(pages);
  const rejected = rejectedOf(pages);
  const statement = pageStatement(mirrorTable(list.resource));
  const values = [
    list.environment,
    list.companyId,
    textArray(ids),
    texts.bytes,
    walkId,
    write.runId,
    list.resource,
    pass,
    ledger.numbers,
    ledger.tokenDigests,
    ledger.contents,
    ledger.likes,
    ledger.areChanges,
    ledger.hashes,
    ledger.keysAt,
    isSame(ledger.ids, ids) ? null : textArray(ledger.ids),
    JSON.stringify(write.checkpoint),
    write.received,
    write.duplicates,
    write.total === undefined ? null : Math.min(write.total, MOST_RECORDS),
    rejected.length,
    write.epoch,
    numberArray(texts.starts),
    numberArray(texts.lengths),
    lookUps,
    write.pagesBefore,
    ledger.answers,
    ledger.firstIds,
    ledger.lastIds,
    ledger.keysSizes,
    ledger.textsAt,
    ledger.textsSizes,
  ];
  const walks = await executeBulk(tx, statement, values, onSent);
  if (walks === 0) throw (await stands(tx, write)) ? changedByHand(list) : fenced(list, 'the walk has ended or stands elsewhere');
  if (rejected.length === 0) return;
  await executeBulk(tx, REJECTED, [
    walkId,
    pass,
    numberArray(rejected.map(({ page }) => page)),
    numberArray(rejected.map(({ position }) => position)),
    textArray(rejected.map(({ reason }) => reason)),
    textArray(rejected.map((record) => bytesOf(record).toString('base64'))),
  ]);
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((each, n) => each === others[n]);
}

function rejectedOf(pages: readonly PageToWrite[]) {
  const rejected: (PageToWrite['page']['rejected'][number] & { readonly page: number })[] = [];
  for (const { page, number } of pages) for (const record of page.rejected) rejected.push({ page: number, ...record });
  return rejected;
}

async function stands(tx: Transaction, { walkId, epoch, pagesBefore }: WalkWrite): Promise<boolean> {
  const walks = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM muster.walks WHERE id = ${walkId}::uuid AND epoch = ${epoch} AND status = 'running' AND pages = ${pagesBefore}`;
  return walks.length > 0;
}

function changedByHand({ resource }: ListKey): Error {
  return new Error(
    `Not every row of ${resource} that differs could be updated: somebody, or a trigger, changes them at the same time.`,
  );
}

const REJECTED = `
INSERT INTO muster.rejected_records (walk_id, pass, page, position, reason, text)
SELECT $1::uuid, $2, r.* FROM unnest($3::int[], $4::int[], $5::text[], $6::text[]) AS r`;

const pageStatement = (table: string) => `
WITH incoming AS (
  SELECT i.id, convert_from(substr($4::bytea, i.start, i.length), 'UTF8')::jsonb AS data, i.start, i.length, i.n
  FROM unnest($3::text[], $23::int[], $24::int[]) WITH ORDINALITY AS i(id, start, length, n)
  OFFSET 0
), difference AS (
  SELECT s.id, s.data, s.start, s.length, s.n, t.place,
         CASE WHEN t.id IS NULL THEN 'insert' WHEN t.deleted_at IS NOT NULL THEN 'restore' ELSE 'update' END AS op
  FROM incoming s
  LEFT JOIN LATERAL (
    SELECT t.id, t.data, t.deleted_at, t.ctid AS place FROM ${table} t WHERE t.environment = $1 AND t.company_id = $2::uuid AND t.id = s.id AND s.n <= $25 OFFSET 0
  ) t ON true
  WHERE t.id IS NULL OR t.deleted_at IS NOT NULL OR record_image_ne(ROW(t.data), ROW(s.data))
), inserted AS (
  INSERT INTO ${table} (environment, company_id, id, data, first_seen_at, changed_at)
  SELECT $1, $2::uuid, id, data, now(), now() FROM difference WHERE op = 'insert'
), rewritten AS (
  UPDATE ${table} t SET data = d.data, changed_at = now(), deleted_at = NULL
  FROM difference d WHERE t.ctid = d.place AND d.op <> 'insert'
  RETURNING 1
), counted AS (
  SELECT count(*)::int AS size, (count(*) FILTER (WHERE op = 'insert'))::int AS inserted,
         (count(*) FILTER (WHERE op <> 'insert'))::int AS updated, (count(*) FILTER (WHERE op <> 'update'))::int AS risen
  FROM difference
), batch AS (
  INSERT INTO muster.change_batches
    (size, environment, company_id, resource, run_id, changed_at, texts, ids, starts, lengths, ops)
  SELECT size, $1, $2::uuid, $7, $6::uuid, now(), whole.*
  FROM counted
  LEFT JOIN LATERAL (
    SELECT $4::bytea, array_agg(id), array_agg(start), array_agg(length), CASE WHEN inserted < size THEN array_agg(op) END
    FROM (SELECT * FROM difference ORDER BY n) d
    HAVING 2 * size >= cardinality($3)
  ) whole ON true
  WHERE size > 0
  RETURNING id, texts IS NOT NULL AS is_whole
), fed AS (
  INSERT INTO muster.changes (batch_id, position, record_id, op, data)
  SELECT batch.id, row_number() OVER (ORDER BY d.n) - 1, d.id, d.op, d.data FROM batch, difference d WHERE NOT batch.is_whole
), received AS (
  SELECT page, next_token, content_id, like_id, is_changed, answer, first_id, last_id,
         substr($14::bytea, keys_at, keys_size) AS keys, substr($14::bytea, texts_at, texts_size) AS texts
  FROM unnest($9::int[], $10::text[], $11::bigint[], $12::bigint[], $13::bool[], $27::jsonb[], $28::int[], $29::int[],
              $15::int[], $30::int[], $31::int[], $32::int[])
       AS p(page, next_token, content_id, like_id, is_changed, answer, first_id, last_id, keys_at, keys_size, texts_at, texts_size)
), page AS (
  SELECT p.*, p.content_id IS NULL AS is_new, COALESCE(p.content_id, nextval('muster.page_contents_id_seq')) AS own_content_id,
         CASE WHEN p.keys IS NULL THEN l.keys_id ELSE nextval('muster.page_keys_id_seq') END AS keys_id,
         CASE WHEN p.is_changed THEN COALESCE(l.base_id, l.id) END AS base_id,
         CASE WHEN p.is_changed AND l.base_id IS NOT NULL THEN l.texts || p.texts ELSE p.texts END AS own_texts
  FROM received p
  LEFT JOIN LATERAL (
    SELECT id, keys_id, base_id, texts FROM muster.page_contents WHERE id = p.like_id AND p.content_id IS NULL OFFSET 0
  ) l ON true
), keys AS (
  INSERT INTO muster.page_keys (id, environment, company_id, resource, ids, keys)
  SELECT keys_id, $1, $2::uuid, $7, (COALESCE($16::text[], $3::text[]))[first_id:last_id], keys FROM page WHERE keys IS NOT NULL
), content AS (
  INSERT INTO muster.page_contents (id, environment, company_id, resource, keys_id, base_id, texts)
  SELECT own_content_id, $1, $2::uuid, $7, keys_id, base_id, own_texts FROM page WHERE is_new
), ledger AS (
  INSERT INTO muster.walk_pages (walk_id, pass, page, content_id, next_token, answer)
  SELECT $5::uuid, $8, page, own_content_id, next_token, answer FROM page
), living AS (
  UPDATE muster.lists l SET records = l.records + counted.risen FROM counted
  WHERE counted.risen > 0 AND l.environment = $1 AND l.company_id = $2::uuid AND l.resource = $7
)
UPDATE muster.walks w
SET checkpoint = $17::jsonb, checkpoint_at = now(), pages = w.pages + cardinality($9), received = $18, duplicates = $19,
    total_records = COALESCE($20::int, w.total_records), rejected = w.rejected + $21,
    inserted = w.inserted + counted.inserted, updated = w.updated + counted.updated,
    unchanged = GREATEST(0, $18 - w.inserted - counted.inserted - w.updated - counted.updated - w.rejected - $21)
FROM counted
WHERE w.id = $5::uuid AND w.epoch = $22 AND w.status = 'running' AND w.pages = $26
  AND counted.updated = (SELECT count(*) FROM rewritten)`;
