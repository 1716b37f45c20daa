// The ledger: which records each committed page of a walk held. muster.walk_pages has a row a page, which refers to a snapshot
// (muster.page_snapshots: the hashes of the records' texts, if anybody wants them), which refers to its keys (muster.page_keys: the records'
// ids and their hashes). Snapshots and keys never change, and several walks may share one. Written by the page writer (src/mirror) and
// by these statements, under the lock of the list (lists.ts).
import pg from 'pg';
import { binaryRows } from '../binary-rows.js';
import type { Database } from '../database.js';
import type { Transaction } from '../transaction.js';
import type { ListKey } from './lists.js';

/** Pages of the newest pass of the walk. */
const pagesOf = (walkId: string) => `
  FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
  JOIN muster.page_snapshots s ON s.id = p.snapshot_id JOIN muster.page_keys k ON k.id = s.keys_id
  WHERE w.id = ${pg.escapeLiteral(walkId)}`;

/** A page of a walk that another may go by. */
export interface BaselineRow {
  readonly snapshotId: bigint;
  readonly keysId: bigint;
  /** What the page's answer was, as JSON; undefined where the service gave no ETag. */
  readonly answer: string | undefined;
  readonly keys: Uint32Array;
  /** The last words of the row hashes: as many as `keys` has chunks of so many records. */
  readonly chunks: Uint32Array;
}

/**
 * The pages in the order received, each with its keys and, of its row hashes, those of its chunks. `chunk`: records a chunk; `bytes`:
 * bytes of one row hash. Past Prisma and the driver, which read bytes as hexadecimal digits.
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
export async function lacksRowHashes({ pool }: Pick<Database, 'pool'>, walkId: string): Promise<boolean> {
  const { rows } = await pool.query<{ lacks: boolean }>(
    `SELECT EXISTS (SELECT 1 ${pagesOf(walkId)} AND s.row_hashes IS NULL) AS lacks`,
  );
  return rows[0]!.lacks;
}

/** What a pass has received from page `first` on: of each page the keys, and the digest of the token that it gave. */
export async function* readReceived(
  { pool }: Pick<Database, 'pool'>,
  walkId: string,
  first: number,
): AsyncGenerator<{ readonly keys: Uint32Array; readonly nextToken: string | undefined }> {
  const query = `SELECT k.keys, p.next_token ${pagesOf(walkId)} AND p.page >= ${Math.trunc(first)}`;
  for await (const [keys, nextToken] of binaryRows(pool, query)) yield { keys: wordsIn(keys!), nextToken: nextToken?.toString() };
}

/** Apart from the memory that the bytes share with others, and where words may begin. */
function wordsIn(bytes: Buffer): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}

/** Forgets what the walk has received, and what it rejected: all of it, what came before a pass, or from a page on. */
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

/**
 * Removes the ledgers of the list, but for that of its last verified walk, to which holds and the next walk refer. No part of the
 * statement sees what another deletes, and so each asks for what is kept. By NOT IN, for which PostgreSQL makes a hash table: of NOT
 * EXISTS it may make a comparison of each row with each that is kept, as long as it does not know how many these are.
 */
export async function clearLedgers(tx: Transaction, { environment, companyId, resource }: ListKey): Promise<void> {
  await tx.$executeRaw`
    WITH verified AS (
      SELECT verified_walk_id AS id FROM muster.lists
      WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}
    ), kept AS MATERIALIZED (
      SELECT DISTINCT s.id, s.keys_id
      FROM verified v JOIN muster.walk_pages p ON p.walk_id = v.id JOIN muster.page_snapshots s ON s.id = p.snapshot_id
    ), pages AS (
      DELETE FROM muster.walk_pages p USING muster.walks w, verified v
      WHERE p.walk_id = w.id AND w.environment = ${environment} AND w.company_id = ${companyId}::uuid AND w.resource = ${resource}
        AND p.walk_id IS DISTINCT FROM v.id
    ), snapshots AS (
      DELETE FROM muster.page_snapshots s
      WHERE s.environment = ${environment} AND s.company_id = ${companyId}::uuid AND s.resource = ${resource}
        AND s.id NOT IN (SELECT id FROM kept)
    )
    DELETE FROM muster.page_keys k
    WHERE k.environment = ${environment} AND k.company_id = ${companyId}::uuid AND k.resource = ${resource}
      AND k.id NOT IN (SELECT keys_id FROM kept)`;
}

/**
 * Whether records that both have stand in another order in the pass than in the list's last verified walk. A record's place
 * is the last one where the pass received it: where pages overlap, the later page shows the list as it was by then. Usually every
 * page holds the same records as then, and nothing need be sorted to see it.
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

/** The ledger of one walk becomes that of another, and so do its rejected records. */
export async function moveLedger(tx: Transaction, { from, to }: { from: string; to: string }): Promise<void> {
  await tx.$executeRaw`UPDATE muster.walk_pages SET walk_id = ${to}::uuid WHERE walk_id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.rejected_records SET walk_id = ${to}::uuid WHERE walk_id = ${from}::uuid`;
}
