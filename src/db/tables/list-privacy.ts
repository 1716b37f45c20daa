// muster.lists: under which privacy rules the rows of a list stand, by which a change of the rules is seen; all else of its row stands in lists.ts.
// `privacy` is what walks write under from now on. No row, change or rejected record holds what it forbids, but at the stage `rewrite`.
//
//   none    -> rewrite   the catalogue has other rules than the list
//   rewrite -> walk      what is stored was treated by the new rules, in one transaction: nothing of the old text is left
//   walk    -> none      a verified walk has made each row what the new rules make of the service's record (lists.ts)
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

/** Puts the lists of a resource that stand under other rules before the sweep. */
export function markOtherRules(
  db: Pick<Database, 'prisma'>,
  { resource, rules }: { readonly resource: string; readonly rules: StoredRules },
): Promise<number> {
  return db.prisma.$executeRaw`
    UPDATE muster.lists SET privacy_stage = 'rewrite'
    WHERE resource = ${resource} AND privacy IS DISTINCT FROM ${asJson(rules)} AND privacy_stage IS DISTINCT FROM 'rewrite'`;
}

/** A list of these resources that waits to be rewritten; undefined where none does. */
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
 * Locks the list, and says under which rules it stands and whether these are the same as `rules`; undefined where there is no such list. The first
 * statement of a transaction, as lockList is.
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

/** From here on the list stands under these rules. Whoever walked it under others is fenced. The caller has locked the list. */
export async function setListRules(tx: Transaction, list: ListKey, rules: StoredRules): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.lists SET epoch = epoch + 1, privacy = ${asJson(rules)}, privacy_stage = 'walk', unmatched_rules = '{}'
    WHERE ${isOfList(list)}`;
}

/** The list was not to be rewritten: its rules are back at what they were. The caller has locked it. */
export async function keepListRules(tx: Transaction, list: ListKey): Promise<void> {
  await tx.$executeRaw`UPDATE muster.lists SET privacy_stage = 'walk' WHERE ${isOfList(list)} AND privacy_stage = 'rewrite'`;
}
