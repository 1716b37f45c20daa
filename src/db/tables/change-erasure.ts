// muster.change_batches, muster.changes: forgotten records are taken out of the feed. Numbers stay without gaps: an entry becomes a deletion, without
// data, of a placeholder id. The caller has locked the list; batches are locked by id, before their changes (change-batches.ts).
// muster.farewells: erasure notices, which are batches that tell readers of deleted records by their ids. Placeholders replace these once readers had time.

import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { inTransaction, type Transaction } from '../connection/transaction.js';
import { numberArray, textArray } from '../statements/array-literals.js';
import { appendToFeed } from './feed-append.js';
import { isOfList, type ListKey } from './lists.js';

/** Id -> the placeholder that replaces it. */
export type Placeholders = ReadonlyMap<string, string>;

/** A record that is forgotten a second time keeps its first notice. */
const IS_NO_NOTICE = Prisma.sql`NOT EXISTS (SELECT FROM muster.farewells f WHERE f.batch_id = change_batches.id)`;

/** The ids among these, or with the prefix, that the feed has any entry of. */
export async function findChangedIds(
  tx: Transaction,
  list: ListKey,
  { ids, prefix }: { readonly ids: readonly string[]; readonly prefix?: string | undefined },
): Promise<string[]> {
  const rows = await tx.$queryRaw<{ id: string }[]>`
    SELECT DISTINCT c.id FROM muster.change_batches CROSS JOIN LATERAL (
      SELECT record_id AS id FROM muster.changes WHERE batch_id = change_batches.id UNION ALL SELECT unnest(change_batches.ids)) c
    WHERE ${isOfList(list)} AND ${IS_NO_NOTICE} AND (c.id = ANY(${ids}::text[]) OR starts_with(c.id, ${prefix ?? null}::text))`;
  return rows.map(({ id }) => id);
}

/** Makes every entry of these records a deletion of its placeholder, without data. */
export async function eraseChanges(tx: Transaction, list: ListKey, placeholders: Placeholders): Promise<void> {
  const ids = [...placeholders.keys()];
  const batches = await tx.$queryRaw<{ id: bigint; isWhole: boolean }[]>`
    SELECT id, ids && ${ids}::text[] AS "isWhole" FROM muster.change_batches
    WHERE ${isOfList(list)} AND ${IS_NO_NOTICE} AND (ids && ${ids}::text[] OR EXISTS (
      SELECT FROM muster.changes c WHERE c.batch_id = change_batches.id AND c.record_id = ANY(${ids}::text[])))
    ORDER BY id FOR UPDATE`;
  await tx.$executeRaw`
    UPDATE muster.changes c SET record_id = s.placeholder, op = 'delete', data = NULL
    FROM unnest(${ids}::text[], ${[...placeholders.values()]}::text[]) AS s(id, placeholder)
    WHERE c.batch_id = ANY(${batches.map(({ id }) => id)}::bigint[]) AND c.record_id = s.id`;
  for (const { id, isWhole } of batches) if (isWhole) await eraseFromTexts(tx, id, placeholders);
}

interface WholeBatch {
  readonly ids: string[];
  readonly starts: number[];
  readonly lengths: (number | null)[];
  readonly ops: string[] | null;
  readonly texts: Uint8Array | null;
  readonly textsFrom: number;
}

/** Erases from a batch that keeps its changes as the text that was received: blanks replace the texts. */
async function eraseFromTexts(tx: Transaction, id: bigint, placeholders: Placeholders): Promise<void> {
  // JSON, because Prisma reads no array with a null in it.
  const [batch] = await tx.$queryRaw<WholeBatch[]>`
    SELECT to_jsonb(ids) AS ids, to_jsonb(starts) AS starts, to_jsonb(lengths) AS lengths, to_jsonb(ops) AS ops, texts,
      texts_from AS "textsFrom"
    FROM muster.change_batches WHERE id = ${id}`;
  const { ids, starts, lengths, ops, textsFrom, texts } = batch!;
  const isGone = ids.map((each) => placeholders.has(each));
  const blanked = texts && Buffer.from(texts);
  for (const [n, length] of lengths.entries()) {
    const from = starts[n]! - textsFrom;
    if (isGone[n] && length !== null) blanked?.fill(' ', from, from + length);
  }
  await tx.$executeRaw`
    UPDATE muster.change_batches SET ids = ${textArray(ids.map((each) => placeholders.get(each) ?? each))}::text[],
      lengths = ${numberArray(lengths.map((length, n) => (isGone[n] ? null : length)))}::int[],
      ops = ${textArray(ids.map((_, n) => (isGone[n] ? 'delete' : (ops?.[n] ?? 'insert'))))}::text[], texts = ${blanked}::bytea
    WHERE id = ${id}`;
}

/** Appends the erasure notice of these records to the feed. */
export async function publishErasure(tx: Transaction, list: ListKey, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.$executeRaw`
    WITH changed AS (
      SELECT id COLLATE "C" AS id, NULL::jsonb AS data FROM unnest(${ids}::text[]) AS id
    ), ${appendToFeed(list, { op: 'delete' })}
    INSERT INTO muster.farewells (batch_id) SELECT id FROM batch`;
}

/** Replaces the ids in erasure notices of more than `days` ago, in at most `limit` batches. Returns how many batches those were. */
export function deleteExpiredErasureNotices(
  db: Pick<Database, 'prisma'>,
  { days, limit }: { days: number; limit: number },
): Promise<number> {
  return inTransaction(db, async (tx) => {
    const batches = await tx.$queryRaw<{ id: bigint }[]>`
      SELECT b.id FROM muster.change_batches b JOIN muster.farewells f ON f.batch_id = b.id
      WHERE f.told_at < now() - make_interval(days => ${days}::int) AND b.first_seq IS NOT NULL ORDER BY b.id LIMIT ${limit}::int FOR UPDATE OF b`;
    const which = Prisma.sql`batch_id = ANY(${batches.map(({ id }) => id)}::bigint[])`;
    await tx.$executeRaw`UPDATE muster.changes SET record_id = '#' || replace(gen_random_uuid()::text, '-', '') WHERE ${which}`;
    await tx.$executeRaw`DELETE FROM muster.farewells WHERE ${which}`;
    return batches.length;
  });
}
