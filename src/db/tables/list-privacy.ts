// muster.lists: the privacy rules of a list's stored rows, which show a change of the rules. lists.ts has the rest of the row.
// `privacy` are the rules that walks apply from now on. Except at stage `rewrite`, no row, change or rejected record holds what they forbid.
//
//   none    -> rewrite   the catalogue has other rules than the list
//   rewrite -> walk      one transaction has redacted everything stored by the new rules: nothing of the old text is left
//   walk    -> none      a verified walk has rewritten each row from the service's record by the new rules (lists.ts)
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { BY_INDEX } from '../statements/by-index.js';
import { isOfList, type ListKey } from './lists.js';

/** Rules and the key's id, as src/privacy has them; null = none. */
export type StoredRules = { readonly rules: Readonly<Record<string, string>>; readonly keyId?: string } | null;

/** The rules in a statement. */
export function asJson(rules: StoredRules): Prisma.Sql {
  return Prisma.sql`${rules === null ? null : JSON.stringify(rules)}::jsonb`;
}

/** Queues the lists of a resource with other rules for the sweep. */
export function markOtherRules(
  db: Pick<Database, 'prisma'>,
  { resource, rules }: { readonly resource: string; readonly rules: StoredRules },
): Promise<number> {
  return db.prisma.$executeRaw`
    UPDATE muster.lists SET privacy_stage = 'rewrite'
    WHERE resource = ${resource} AND privacy IS DISTINCT FROM ${asJson(rules)} AND privacy_stage IS DISTINCT FROM 'rewrite'`;
}

/** A list of these resources that waits to be rewritten; undefined if none does. */
export async function findListToRewrite(
  db: Pick<Database, 'prisma'>,
  { resources }: { readonly resources: readonly string[] },
): Promise<ListKey | undefined> {
  const [row] = await db.prisma.$queryRaw<ListKey[]>`
    SELECT environment, company_id::text AS "companyId", resource FROM muster.lists
    WHERE privacy_stage IS NOT NULL AND privacy_stage = 'rewrite' AND resource = ANY(${resources}::text[]) LIMIT 1`;
  return row;
}

/**
 * Locks the list, and tells its rules and whether they equal `rules`; undefined where there is no such list. It is the first
 * statement of a transaction, like lockList.
 */
export async function lockListRules(
  tx: Transaction,
  list: ListKey,
  rules: StoredRules,
): Promise<{ readonly rules: StoredRules; readonly isSame: boolean } | undefined> {
  const [row] = await tx.$queryRaw<{ rules: StoredRules; isSame: boolean }[]>`
    SELECT privacy AS rules, privacy IS NOT DISTINCT FROM ${asJson(rules)} AS "isSame", ${BY_INDEX}
    FROM muster.lists WHERE ${isOfList(list)} FOR UPDATE`;
  return row;
}

/** Stores new rules of the list and fences a walk under the old ones. The caller has locked the list. */
export async function setListRules(tx: Transaction, list: ListKey, rules: StoredRules): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.lists SET epoch = epoch + 1, privacy = ${asJson(rules)}, privacy_stage = 'walk', unmatched_rules = '{}'
    WHERE ${isOfList(list)}`;
}

/** Takes the list from the sweep: its stored rules are the present ones again. The caller has locked it. */
export async function keepListRules(tx: Transaction, list: ListKey): Promise<void> {
  await tx.$executeRaw`UPDATE muster.lists SET privacy_stage = 'walk' WHERE ${isOfList(list)} AND privacy_stage = 'rewrite'`;
}
