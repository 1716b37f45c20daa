import type { Transaction } from '../db/transaction.js';
import { fenced, type ListKey } from './list-fence.js';
import { mirrorTable } from './mirror-table.js';

/** A page as the walk hands it over, and what the ledger and the checkpoint say of it. */
export interface PageToWrite {
  readonly list: ListKey;
  /** The list's epoch under which the walk was opened. */
  readonly epoch: bigint;
  readonly runId: string;
  readonly walkId: string;
  readonly pass: number;
  /** Number of the page within its pass, from 0. */
  readonly number: number;
  readonly page: {
    /** The records to keep: their ids, and their JSON texts as received. */
    readonly records: readonly { readonly id: string; readonly text: string }[];
    /** Those that cannot be kept, and why. */
    readonly rejected: readonly { readonly position: number; readonly reason: string; readonly text: string }[];
    /** Keys of all of them, in the order received. */
    readonly keys: readonly string[];
  };
  /** totalRecords, where it is that of the whole walk. */
  readonly total?: number;
  /** Digest of the token that leads on, for token lists. */
  readonly tokenDigest?: string;
  /** The walk's state after this page, and what the pass has counted by then. */
  readonly checkpoint: object;
  readonly received: number;
  readonly duplicates: number;
}

/**
 * Writes one page: the rows that are new, differ or had been deleted; their change feed rows; the ledger row; the
 * walk's checkpoint and counts. One statement, so that one round trip and one snapshot serve all of it. The caller
 * has made the transaction and holds the list. Throws `fenced` when the walk was ended meanwhile. Of two records with one id the last one wins.
 *
 * Unchanged rows are not even locked: the difference is taken before the INSERT, by one look-up a record. LATERAL with OFFSET
 * keeps it look-ups: left to the planner, which knows neither the page's length nor, in a new table, the table's, it became a scan
 * of the whole table for every page, and a walk of 50,000 records five times as long.
 */
export async function writePage(tx: Transaction, write: PageToWrite): Promise<void> {
  const { list, page, walkId, pass, number } = write;
  const walks = await tx.$executeRawUnsafe(
    pageStatement(mirrorTable(list.resource)),
    list.environment,
    list.companyId,
    page.records.map(({ id }) => id),
    `[${page.records.map(({ text }) => text).join(',')}]`,
    walkId,
    write.runId,
    list.resource,
    pass,
    number,
    page.keys,
    write.tokenDigest ?? null,
    JSON.stringify(write.checkpoint),
    write.received,
    write.duplicates,
    write.total ?? null,
    page.rejected.length,
    write.epoch,
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

const pageStatement = (table: string) => `
WITH incoming AS (
  SELECT DISTINCT ON (i.id) i.id, r.data, i.n
  FROM unnest($3::text[]) WITH ORDINALITY AS i(id, n)
  JOIN jsonb_array_elements($4::jsonb) WITH ORDINALITY AS r(data, n) ON r.n = i.n
  ORDER BY i.id, i.n DESC
), difference AS (
  SELECT s.id, s.data, s.n,
         CASE WHEN t.id IS NULL THEN 'insert' WHEN t.deleted_at IS NOT NULL THEN 'restore' ELSE 'update' END AS op
  FROM incoming s
  LEFT JOIN LATERAL (
    SELECT t.id, t.data, t.deleted_at FROM ${table} t WHERE t.environment = $1 AND t.company_id = $2::uuid AND t.id = s.id OFFSET 0
  ) t ON true
  WHERE t.id IS NULL OR t.deleted_at IS NOT NULL OR t.data <> s.data
), written AS (
  INSERT INTO ${table} AS t (environment, company_id, id, data, first_seen_at, changed_at)
  SELECT $1, $2::uuid, id, data, now(), now() FROM difference
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
), ledger AS (
  INSERT INTO muster.walk_pages (walk_id, pass, page, ids, next_token) VALUES ($5::uuid, $8, $9, $10::text[], $11)
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
