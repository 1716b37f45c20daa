import type { Transaction } from '../db/transaction.js';
import { fenced, type ListKey } from './list-fence.js';
import { mirrorTable } from './mirror-table.js';

/** A walk that writes, and where it stands once the write has taken effect. */
export interface WalkWrite {
  readonly list: ListKey;
  /** The list's epoch under which the walk was opened. */
  readonly epoch: bigint;
  readonly runId: string;
  readonly walkId: string;
  readonly pass: number;
  /** totalRecords, where it is that of the whole walk. */
  readonly total?: number;
  /** The walk's state, and what the pass has counted by then. */
  readonly checkpoint: object;
  readonly received: number;
  readonly duplicates: number;
}

/** A page as the walk hands it over, and what the ledger says of it. */
export interface PageToWrite extends WalkWrite {
  /** Number of the page within its pass, from 0. */
  readonly number: number;
  /** Digest of the token that leads on, for token lists. */
  readonly tokenDigest?: string;
  readonly page: {
    /** The records to compare: their ids, and their JSON texts as received. */
    readonly records: readonly { readonly id: string; readonly text: string }[];
    /** Those that cannot be kept, and why. */
    readonly rejected: readonly { readonly position: number; readonly reason: string; readonly text: string }[];
    /** Keys of all records of the page, in the order received; or the content of an earlier page that has the same. */
    readonly ids: readonly string[] | { readonly id: bigint };
    /** Hashes of the keys, and of the records' texts. */
    readonly keys: { readonly words: Uint32Array };
    readonly texts: Uint32Array;
    readonly digest: Uint8Array;
  };
}

/** A page whose records all stand in the mirror already, and in the ledger of an earlier walk. */
export interface KnownPageToWrite {
  readonly number: number;
  readonly contentId: bigint;
  readonly tokenDigest?: string;
}

/**
 * Writes one page: the rows that are new, differ or had been deleted; their change feed rows; the ledger row; the
 * walk's checkpoint and counts. One statement, so that one round trip and one snapshot serve all of it. The caller
 * has made the transaction and holds the list. Throws `fenced` when the walk was ended meanwhile. Of two records with one id the last one wins.
 *
 * Unchanged rows are not even locked: the difference is taken before the INSERT, by one look-up a record. LATERAL with OFFSET
 * keeps it look-ups: left to the planner, which knows neither the page's length nor, in a new table, the table's, it became a scan
 * of the whole table for every page, and a walk of 50,000 records five times as long. New rows need no ON CONFLICT, which would
 * cost them a quarter more: whoever holds the list is the only one to insert.
 */
export async function writePage(tx: Transaction, write: PageToWrite): Promise<void> {
  const { list, page, walkId, pass, number } = write;
  const ids = page.records.map(({ id }) => id);
  const walks = await tx.$executeRawUnsafe(
    pageStatement(mirrorTable(list.resource), new Set(ids).size === ids.length),
    list.environment,
    list.companyId,
    ids,
    `[${page.records.map(({ text }) => text).join(',')}]`,
    walkId,
    write.runId,
    list.resource,
    pass,
    number,
    'id' in page.ids || page.ids.length === ids.length ? null : page.ids,
    write.tokenDigest ?? null,
    JSON.stringify(write.checkpoint),
    write.received,
    write.duplicates,
    write.total ?? null,
    page.rejected.length,
    write.epoch,
    page.digest,
    bytesOf(page.keys.words),
    bytesOf(page.texts),
    'id' in page.ids ? page.ids.id : null,
  );
  if (walks === 0) throw fenced(list, 'the walk has ended');
  if (page.rejected.length === 0) return;
  await tx.rejectedRecord.createMany({
    data: page.rejected.map(({ position, reason, text }) => ({
      walkId,
      pass,
      page: number,
      position,
      reason,
      text: Buffer.from(text, 'utf8').toString('base64'),
    })),
  });
}

/** Writes pages without looking at their records: their ledger rows, the walk's checkpoint and counts. As writePage otherwise. */
export async function writeKnownPages(tx: Transaction, write: WalkWrite, pages: readonly KnownPageToWrite[]): Promise<void> {
  const walks = await tx.$executeRaw`
    WITH ledger AS (
      INSERT INTO muster.walk_pages (walk_id, pass, page, content_id, next_token)
      SELECT ${write.walkId}::uuid, ${write.pass}, u.* FROM unnest(
        ${pages.map(({ number }) => number)}::int[], ${pages.map(({ contentId }) => contentId)}::bigint[],
        ${pages.map(({ tokenDigest }) => tokenDigest ?? null)}::text[]) u
    )
    UPDATE muster.walks w
    SET checkpoint = ${JSON.stringify(write.checkpoint)}::jsonb, checkpoint_at = now(), pages = w.pages + ${pages.length},
        received = ${write.received}, duplicates = ${write.duplicates}, total_records = COALESCE(${write.total ?? null}::int, w.total_records),
        unchanged = GREATEST(0, ${write.received} - w.inserted - w.updated - w.rejected)
    WHERE w.id = ${write.walkId}::uuid AND w.epoch = ${write.epoch} AND w.status = 'running'`;
  if (walks === 0) throw fenced(write.list, 'the walk has ended');
}

function bytesOf({ buffer, byteOffset, byteLength }: Uint32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

const pageStatement = (table: string, idsAreDistinct: boolean) => `
WITH incoming AS (
  SELECT ${idsAreDistinct ? '' : 'DISTINCT ON (i.id)'} i.id, r.data, i.n
  FROM unnest($3::text[]) WITH ORDINALITY AS i(id, n)
  JOIN jsonb_array_elements($4::jsonb) WITH ORDINALITY AS r(data, n) ON r.n = i.n
  ${idsAreDistinct ? '' : 'ORDER BY i.id, i.n DESC'}
), difference AS (
  SELECT s.id, s.data, s.n,
         CASE WHEN t.id IS NULL THEN 'insert' WHEN t.deleted_at IS NOT NULL THEN 'restore' ELSE 'update' END AS op
  FROM incoming s
  LEFT JOIN LATERAL (
    SELECT t.id, t.data, t.deleted_at FROM ${table} t WHERE t.environment = $1 AND t.company_id = $2::uuid AND t.id = s.id OFFSET 0
  ) t ON true
  WHERE t.id IS NULL OR t.deleted_at IS NOT NULL OR t.data <> s.data
), inserted AS (
  INSERT INTO ${table} (environment, company_id, id, data, first_seen_at, changed_at)
  SELECT $1, $2::uuid, id, data, now(), now() FROM difference WHERE op = 'insert'
), rewritten AS (
  INSERT INTO ${table} AS t (environment, company_id, id, data, first_seen_at, changed_at)
  SELECT $1, $2::uuid, id, data, now(), now() FROM difference WHERE op <> 'insert'
  ON CONFLICT (environment, company_id, id) DO UPDATE
  SET data = EXCLUDED.data, changed_at = EXCLUDED.changed_at, deleted_at = NULL
), counted AS (
  SELECT count(*)::int AS size, (count(*) FILTER (WHERE op = 'insert'))::int AS inserted,
         (count(*) FILTER (WHERE op <> 'insert'))::int AS updated, (count(*) FILTER (WHERE op <> 'update'))::int AS risen
  FROM difference
), batch AS (
  INSERT INTO muster.change_batches (size) SELECT size FROM counted WHERE size > 0 RETURNING id
), fed AS (
  INSERT INTO muster.changes (batch_id, position, resource, environment, company_id, record_id, op, data, changed_at, run_id)
  SELECT batch.id, row_number() OVER (ORDER BY d.n) - 1, $7, $1, $2::uuid, d.id, d.op, d.data, now(), $6::uuid
  FROM batch, difference d
), content AS (
  INSERT INTO muster.page_contents (environment, company_id, resource, digest, ids, keys, texts)
  VALUES ($1, $2::uuid, $7, $18, COALESCE($10::text[], (SELECT ids FROM muster.page_contents WHERE id = $21::bigint), $3::text[]), $19, $20) RETURNING id
), ledger AS (
  INSERT INTO muster.walk_pages (walk_id, pass, page, content_id, next_token) SELECT $5::uuid, $8, $9, content.id, $11 FROM content
), living AS (
  UPDATE muster.lists l SET records = l.records + counted.risen FROM counted
  WHERE counted.risen > 0 AND l.environment = $1 AND l.company_id = $2::uuid AND l.resource = $7
)
UPDATE muster.walks w
SET checkpoint = $12::jsonb, checkpoint_at = now(), pages = w.pages + 1, received = $13, duplicates = $14,
    total_records = COALESCE($15::int, w.total_records), rejected = w.rejected + $16,
    inserted = w.inserted + counted.inserted, updated = w.updated + counted.updated,
    unchanged = GREATEST(0, $13 - w.inserted - counted.inserted - w.updated - counted.updated - w.rejected - $16)
FROM counted
WHERE w.id = $5::uuid AND w.epoch = $17 AND w.status = 'running'`;
