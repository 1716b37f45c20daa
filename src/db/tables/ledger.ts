// The ledger: which records each committed page of a walk held. muster.walk_pages has a row per page, which refers to a snapshot
// (muster.page_snapshots: the hashes of the records' texts, if they are needed), which refers to its keys (muster.page_keys: the records'
// ids and their hashes). Snapshots and keys never change, and several walks may share one. The page writer (src/mirror) and these
// statements write it, under the lock of the list (lists.ts).
import pg from 'pg';
import type { CompanyKey } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { runStep } from '../connection/step.js';
import type { Transaction } from '../connection/transaction.js';
import { binaryRows } from '../statements/binary-rows.js';
import { inPieces } from '../statements/in-pieces.js';
import { isOf } from './connections.js';
import { isOfList, type ListKey } from './lists.js';

/** Pages of the newest pass of the walk, for COPY, which takes no parameters. */
const pagesOf = (walkId: string) => `
  FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
  JOIN muster.page_snapshots s ON s.id = p.snapshot_id JOIN muster.page_keys k ON k.id = s.keys_id
  WHERE w.id = ${pg.escapeLiteral(walkId)}`;

/** A walk on which another may be based. */
export interface BaselineWalk {
  readonly id: string;
  /** Digest of the received keys, if no hold refers to the walk: then every other row of its list was deleted. */
  readonly keysDigest: string | undefined;
  /** Its pages in their order, where they hold few records; undefined where they must be read (readBaseline). */
  readonly pages: readonly KeptPage[] | undefined;
}

/** A page with all that the ledger has of it. */
export interface KeptPage extends Omit<BaselineRow, 'chunks'> {
  readonly rowHashes: Uint32Array;
}

/** Walks with at most this many records are loaded with their pages: as text, twice the size of COPY, but without another round trip. */
const FEW_RECORDS = 1_000;

/** SQL: the columns of a walk `b` on which another may be based. */
export function baselineColumns(list: ListKey): Prisma.Sql {
  return Prisma.sql`b.id AS baseline_id,
    CASE WHEN NOT EXISTS (SELECT FROM muster.holds WHERE ${isOfList(list)} AND walk_id = b.id) THEN b.keys_digest END AS keys_digest,
    CASE WHEN b.received <= ${FEW_RECORDS}::int THEN (
      SELECT jsonb_agg(jsonb_build_object('snapshotId', s.id::text, 'keysId', k.id::text, 'answer', p.answer::text,
        'keys', encode(k.keys, 'base64'), 'rowHashes', encode(s.row_hashes, 'base64')) ORDER BY p.page)
      FROM muster.walk_pages p JOIN muster.page_snapshots s ON s.id = p.snapshot_id JOIN muster.page_keys k ON k.id = s.keys_id
      WHERE p.walk_id = b.id AND p.pass = b.pass) END AS few_pages`;
}

/** A row of baselineColumns. */
export interface BaselineColumns {
  readonly baseline_id: string | null;
  readonly keys_digest: string | null;
  readonly few_pages: readonly Record<'snapshotId' | 'keysId' | 'answer' | 'keys' | 'rowHashes', string | null>[] | null;
}

export function readBaselineColumns({ baseline_id: id, keys_digest, few_pages }: BaselineColumns): BaselineWalk | null {
  if (id === null) return null;
  const words = (base64: string | null) => wordsIn(Buffer.from(base64 ?? '', 'base64'));
  const pages = few_pages?.map(({ snapshotId, keysId, answer, keys, rowHashes }) => ({
    snapshotId: BigInt(snapshotId!),
    keysId: BigInt(keysId!),
    answer: answer ?? undefined,
    keys: words(keys),
    rowHashes: words(rowHashes),
  }));
  return { id, keysDigest: keys_digest ?? undefined, pages };
}

/** A page of a walk on which another may be based. */
export interface BaselineRow {
  readonly snapshotId: bigint;
  readonly keysId: bigint;
  /** The page's response as JSON; undefined where the service gave no ETag. */
  readonly answer: string | undefined;
  readonly keys: Uint32Array;
  /** The last words of the row hashes: as many as `keys` has chunks of so many records. */
  readonly chunks: Uint32Array;
}

/**
 * The pages in the order received, each with its keys, and the part of its row hashes that belongs to its chunks. `chunk`: records per chunk; `bytes`:
 * bytes per row hash. COPY avoids the hexadecimal digits in which Prisma and the driver read bytes.
 */
export async function* readBaseline(
  { pool }: Pick<Database, 'pool'>,
  walkId: string,
  { bytes }: { readonly bytes: number },
): AsyncGenerator<BaselineRow> {
  const records = 'octet_length(k.keys) / 8';
  const query = `
    SELECT s.id, s.keys_id, p.answer::text, k.keys, substr(s.row_hashes, ${records} * ${bytes} + 1) ${pagesOf(walkId)} ORDER BY p.page`;
  for await (const [snapshotId, keysId, answer, keys, chunks] of binaryRows(pool, query)) {
    yield {
      snapshotId: snapshotId!.readBigInt64BE(),
      keysId: keysId!.readBigInt64BE(),
      answer: answer?.toString(),
      keys: wordsIn(keys!),
      chunks: wordsIn(chunks!),
    };
  }
}

/** The row hashes of the same pages, in the same order. */
export async function* readRowHashes({ pool }: Pick<Database, 'pool'>, walkId: string): AsyncGenerator<Uint32Array> {
  for await (const [rowHashes] of binaryRows(pool, `SELECT s.row_hashes ${pagesOf(walkId)} ORDER BY p.page`))
    yield wordsIn(rowHashes!);
}

/** The last pages that a pass has committed, newest first. */
export async function* readRecentPages(
  { pool }: Pick<Database, 'pool'>,
  walkId: string,
  count: number,
): AsyncGenerator<{ readonly snapshotId: bigint; readonly keys: Uint32Array; readonly rowHashes: Uint32Array | undefined }> {
  const query = `SELECT s.id, k.keys, s.row_hashes ${pagesOf(walkId)} ORDER BY p.page DESC LIMIT ${count}`;
  for await (const [snapshotId, keys, rowHashes] of binaryRows(pool, query)) {
    yield {
      snapshotId: snapshotId!.readBigInt64BE(),
      keys: wordsIn(keys!),
      rowHashes: rowHashes ? wordsIn(rowHashes) : undefined,
    };
  }
}

/** Whether the ledger of the pass lacks the row hashes of any page. */
export async function lacksRowHashes({ prisma }: Pick<Database, 'prisma'>, walkId: string): Promise<boolean> {
  const [row] = await prisma.$queryRaw<{ lacks: boolean }[]>`
    SELECT EXISTS (
      SELECT 1 FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass JOIN muster.page_snapshots s ON s.id = p.snapshot_id
      WHERE w.id = ${walkId}::uuid AND s.row_hashes IS NULL) AS lacks`;
  return row!.lacks;
}

/** The pages that a pass has received from page `first` on, in their order: the keys of each, and the digest of the token that it gave. */
export async function* readReceived(
  { pool }: Pick<Database, 'pool'>,
  walkId: string,
  first: number,
): AsyncGenerator<{ readonly keys: Uint32Array; readonly nextToken: string | undefined }> {
  const query = `SELECT k.keys, p.next_token ${pagesOf(walkId)} AND p.page >= ${Math.trunc(first)} ORDER BY p.page`;
  for await (const [keys, nextToken] of binaryRows(pool, query)) yield { keys: wordsIn(keys!), nextToken: nextToken?.toString() };
}

/**
 * Records that the ETags of the list are false, if its last verified walk received a page with this tag and other texts: `records` records with
 * these row hashes have it now. Pages from which hashes were removed are not compared. Returns whether that is new.
 */
export async function recordFalseEtag(
  db: Pick<Database, 'steps'>,
  list: ListKey,
  now: { readonly etag: string; readonly records: number; readonly rowHashes: Buffer },
): Promise<boolean> {
  const noted = Prisma.sql`
    UPDATE muster.lists l SET etags_false_since = now()
    WHERE ${isOfList(list)} AND l.etags_false_since IS NULL AND NOT l.has_marks AND EXISTS (
      SELECT FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
      JOIN muster.page_snapshots s ON s.id = p.snapshot_id JOIN muster.page_keys k ON k.id = s.keys_id
      WHERE w.id = l.verified_walk_id AND p.answer ->> 'etag' = ${now.etag} AND s.row_hashes IS NOT NULL
        AND (octet_length(k.keys) / 8 <> ${now.records}::int OR substr(s.row_hashes, 1, ${now.rowHashes.length}::int) <> ${now.rowHashes}))
    RETURNING l.resource`;
  return (await runStep(db, noted)).length > 0;
}

/** Copies the words: the bytes share their memory with others, and may begin at any offset. */
function wordsIn(bytes: Buffer): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}

/** Deletes what the walk has received and rejected: everything, everything before a pass, or everything from a page on. */
export async function forgetPages(
  tx: Transaction,
  walkId: string,
  which: { readonly beforePass: number } | { readonly fromPage: number } | 'all',
): Promise<void> {
  if (which !== 'all' && 'fromPage' in which) {
    await tx.walkPage.deleteMany({ where: { walkId, page: { gte: which.fromPage } } });
    return;
  }
  const where = which === 'all' ? { walkId } : { walkId, pass: { lt: which.beforePass } };
  await tx.walkPage.deleteMany({ where });
  await tx.rejectedRecord.deleteMany({ where });
}

/** Deletes the row hashes of the list, so that no later walk takes rows for unchanged because of them. The caller has locked the list. */
export async function forgetRowHashes(tx: Transaction, list: ListKey): Promise<void> {
  const query = Prisma.sql`SELECT id FROM muster.page_snapshots WHERE ${isOfList(list)} AND row_hashes IS NOT NULL`;
  for await (const rows of inPieces<{ id: bigint }>(tx, query))
    await tx.$executeRaw`UPDATE muster.page_snapshots SET row_hashes = NULL WHERE id = ANY(${idsOf(rows)}::bigint[])`;
}

/** Removes the ledgers of a company. The caller has locked its lists. */
export async function eraseLedgersOf(tx: Transaction, company: CompanyKey): Promise<void> {
  const snapshots = Prisma.sql`SELECT id FROM muster.page_snapshots WHERE ${isOf(company)}`;
  for await (const rows of inPieces<{ id: bigint }>(tx, snapshots)) {
    await tx.$executeRaw`DELETE FROM muster.walk_pages WHERE snapshot_id = ANY(${idsOf(rows)}::bigint[])`;
    await tx.$executeRaw`DELETE FROM muster.page_snapshots WHERE id = ANY(${idsOf(rows)}::bigint[])`;
  }
  const keys = Prisma.sql`SELECT id FROM muster.page_keys WHERE ${isOf(company)}`;
  for await (const rows of inPieces<{ id: bigint }>(tx, keys))
    await tx.$executeRaw`DELETE FROM muster.page_keys WHERE id = ANY(${idsOf(rows)}::bigint[])`;
}

function idsOf(rows: readonly { readonly id: bigint }[]): bigint[] {
  return rows.map(({ id }) => id);
}

/**
 * SQL: parts that remove the ledgers of the list of `walk`, except that of the walk `keeps`: its last verified one, to which
 * holds and the next walk refer. No part of the statement sees what another deletes, so each names the kept rows: sets, not
 * anti-joins (docs/internals/planner.md).
 */
export function clearLedgers(list: ListKey, keeps: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`kept AS MATERIALIZED (
    SELECT DISTINCT s.id, s.keys_id
    FROM walk JOIN muster.walk_pages p ON p.walk_id = ${keeps} JOIN muster.page_snapshots s ON s.id = p.snapshot_id
  ), pages AS (
    DELETE FROM muster.walk_pages p USING muster.walks w, walk
    WHERE p.walk_id = w.id AND ${isOfList(list)} AND p.walk_id IS DISTINCT FROM ${keeps}
  ), snapshots AS (
    DELETE FROM muster.page_snapshots s USING walk WHERE ${isOfList(list)} AND s.id NOT IN (SELECT id FROM kept)
  ), keys AS (
    DELETE FROM muster.page_keys k USING walk WHERE ${isOfList(list)} AND k.id NOT IN (SELECT keys_id FROM kept)
  )`;
}

/**
 * Whether any two records have another order in the pass than in the list's last verified walk. A record's position
 * is the last one at which the pass received it: where pages overlap, the later page shows the later state of the list. Usually every
 * page holds the same records as before, and nothing needs sorting.
 */
export async function hasMovedRecords(
  tx: Pick<Transaction, '$queryRaw'>,
  { environment, companyId, resource }: ListKey,
  { walkId, pass }: { readonly walkId: string; readonly pass: number },
): Promise<boolean> {
  const [row] = await tx.$queryRaw<{ moved: boolean }[]>`
    WITH newer AS (
      SELECT p.page, k.id AS keys_id, k.ids, k.keys
      FROM muster.walk_pages p JOIN muster.page_snapshots s ON s.id = p.snapshot_id JOIN muster.page_keys k ON k.id = s.keys_id
      WHERE p.walk_id = ${walkId}::uuid AND p.pass = ${pass}
    ), older AS (
      SELECT p.page, k.id AS keys_id, k.ids, k.keys
      FROM muster.lists l JOIN muster.walks w ON w.id = l.verified_walk_id
           JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
           JOIN muster.page_snapshots s ON s.id = p.snapshot_id JOIN muster.page_keys k ON k.id = s.keys_id
      WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource}
    ), pairs AS (
      SELECT n.place, lag(n.place) OVER (ORDER BY o.place) AS before
      FROM (SELECT u.id, max(page::bigint * 100000 + u.n) AS place FROM newer, unnest(ids) WITH ORDINALITY AS u(id, n) GROUP BY u.id) n
      JOIN (SELECT u.id, max(page::bigint * 100000 + u.n) AS place FROM older, unnest(ids) WITH ORDINALITY AS u(id, n) GROUP BY u.id) o USING (id)
    )
    SELECT CASE
      WHEN NOT EXISTS (
        SELECT 1 FROM newer FULL JOIN older USING (page)
        WHERE newer.keys_id IS DISTINCT FROM older.keys_id AND newer.keys IS DISTINCT FROM older.keys
      ) THEN false
      ELSE EXISTS (SELECT 1 FROM pairs WHERE place < before)
    END AS moved`;
  return row?.moved ?? false;
}

/** Moves the ledger of one walk, with its rejected records, to another. */
export async function moveLedger(tx: Transaction, { from, to }: { from: string; to: string }): Promise<void> {
  await tx.$executeRaw`UPDATE muster.walk_pages SET walk_id = ${to}::uuid WHERE walk_id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.rejected_records SET walk_id = ${to}::uuid WHERE walk_id = ${from}::uuid`;
}
