// The ledger and muster.walks (ledger.ts, walks.ts): forgotten records are taken out of them. Pages keep their places and their numbers of records, so
// that what was proved stays proved. The caller has locked the list and fenced its walks.
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import { textArray } from '../statements/array-literals.js';
import type { Placeholders } from './change-erasure.js';
import { isOf } from './connections.js';
import { isOfList, type ListKey } from './lists.js';

/**
 * Replaces keys with placeholders, and the keys' hashes with theirs. Hashes of texts go, and with them the list's baseline: the next walk compares
 * every record. `hashOf`: the two words of a key's hash.
 */
export async function eraseFromLedger(
  tx: Transaction,
  list: ListKey,
  { placeholders, hashOf }: { readonly placeholders: Placeholders; readonly hashOf: (key: string) => Uint32Array },
): Promise<void> {
  await dropBaseline(tx, list);
  const pages = await tx.$queryRaw<{ id: bigint; ids: string[]; keys: Uint8Array }[]>`
    SELECT id, ids, keys FROM muster.page_keys WHERE ${isOfList(list)} AND ids && ${[...placeholders.keys()]}::text[] FOR UPDATE`;
  for (const { id, ids, keys } of pages) {
    const words = new Uint32Array(new Uint8Array(keys).buffer);
    for (const [n, key] of ids.entries()) if (placeholders.has(key)) words.set(hashOf(placeholders.get(key)!), 2 * n);
    await tx.$executeRaw`
      UPDATE muster.page_keys SET ids = ${textArray(ids.map((key) => placeholders.get(key) ?? key))}::text[], keys = ${Buffer.from(words.buffer)}
      WHERE id = ${id}`;
  }
  await tx.$executeRaw`
    UPDATE muster.page_snapshots SET row_hashes = NULL WHERE keys_id = ANY(${pages.map(({ id }) => id)}::bigint[])`;
}

/** The keys with the prefix, in all pages that the ledger has of the list. */
export async function findLedgerKeys(tx: Transaction, list: ListKey, { prefix }: { readonly prefix: string }): Promise<string[]> {
  const rows = await tx.$queryRaw<{ key: string }[]>`
    SELECT DISTINCT key FROM muster.page_keys CROSS JOIN LATERAL unnest(ids) AS key WHERE ${isOfList(list)} AND starts_with(key, ${prefix})`;
  return rows.map(({ key }) => key);
}

/** The next walk uses no earlier walk as its baseline, and compares every record. The answers of pages go: they may name a record. */
export async function dropBaseline(tx: Transaction, list: ListKey): Promise<void> {
  await tx.$executeRaw`UPDATE muster.walks SET reusable = false, keys_digest = NULL WHERE ${isOfList(list)}`;
  await tx.$executeRaw`
    UPDATE muster.walk_pages p SET answer = NULL FROM muster.walks w WHERE w.id = p.walk_id AND ${isOfList(list)} AND p.answer IS NOT NULL`;
}

/**
 * Takes records out of the walks of a list. A walk whose checkpoint names one starts again from the beginning: the name may be a token, or a parent.
 * The service's sentences and the paths in errors may name a record in any walk of the company.
 */
export async function eraseFromWalks(
  tx: Transaction,
  list: ListKey,
  { ids, parent }: { readonly ids: readonly string[]; readonly parent?: string | undefined },
): Promise<void> {
  await tx.$executeRaw`UPDATE muster.walks SET service_says = NULL WHERE ${isOf(list)} AND service_says IS NOT NULL`;
  const names = parent === undefined ? ids : [parent];
  await tx.$executeRaw`
    UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL
    WHERE ${isOfList(list)} AND checkpoint IS NOT NULL
      AND EXISTS (SELECT FROM unnest(${names.map((name) => JSON.stringify(name).slice(1, -1))}::text[]) AS t(name)
        WHERE strpos(checkpoint::text, t.name) > 0)`;
  if (parent === undefined) return;
  const segment = `/${encodeURIComponent(parent)}`;
  for (const end of ['/', ' ']) {
    for (const table of ['walks', 'runs']) {
      await tx.$executeRaw`
        UPDATE ${Prisma.raw(`muster.${table}`)} SET error = replace(error::text, ${segment + end}, ${`/…${end}`})::jsonb
        WHERE ${isOf(list)} AND strpos(error::text, ${segment + end}) > 0`;
    }
  }
}
