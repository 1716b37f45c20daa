// muster.held_rows: living rows that no verified walk under the grant of the list's last proof has received. A person decides on them (holds.ts, cause
// `grant`). The first verified walk under a grant writes them, and later ones remove the rows that they receive, all under the lock of the list (lists.ts).
//
//   none -> held   the first verified walk under a grant lacks the row
//   held -> none   a later one receives it; a person approves its deletion; it is deleted or erased otherwise
//
// Every other living row of the list was received under that grant, which costs no write a night.
import type { CompanyKey } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import { isOf } from './connections.js';
import { isOfList, type ListKey } from './lists.js';

/** The grant under which a verified walk has received its list, compared with that of the list's last proof. */
export interface WalkGrant {
  readonly number: number;
  /** When it began; null where the company has another one now. */
  readonly authorizedAt: Date | null;
  /** No walk was verified under it before. */
  readonly isFirst: boolean;
  /** Rows of the list wait for a person, or were kept by one. */
  readonly hasHeldRows: boolean;
}

/** The caller has locked the list. A walk without a grant, of an earlier version, has that of the list. */
export async function findWalkGrant(tx: Transaction, list: ListKey, { walkId }: { readonly walkId: string }): Promise<WalkGrant> {
  const { environment, companyId, resource } = list;
  const [row] = await tx.$queryRaw<[WalkGrant]>`
    SELECT n.number, CASE WHEN c.grant_number = n.number THEN c.authorized_at END AS "authorizedAt", n.number <> l.grant_number AS "isFirst",
      EXISTS (SELECT FROM muster.held_rows WHERE ${isOfList(list)}) AS "hasHeldRows"
    FROM muster.lists l LEFT JOIN muster.connections c ON c.environment = l.environment AND c.company_id = l.company_id
    CROSS JOIN LATERAL (
      SELECT COALESCE((SELECT grant_number FROM muster.walks WHERE id = ${walkId}::uuid), l.grant_number) AS number) n
    WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource}`;
  return row;
}

/** Ids of the rows of the list that are held. */
export function heldRows(list: ListKey): Prisma.Sql {
  return Prisma.sql`SELECT id FROM muster.held_rows WHERE ${isOfList(list)}`;
}

/** Adds rows. `gone`: a query of their ids. */
export async function insertHeldRows(tx: Transaction, list: ListKey, gone: Prisma.Sql): Promise<void> {
  const { environment, companyId, resource } = list;
  await tx.$executeRaw`
    INSERT INTO muster.held_rows (environment, company_id, resource, id)
    SELECT ${environment}, ${companyId}::uuid, ${resource}, gone.id FROM (${gone}) gone ON CONFLICT DO NOTHING`;
}

/** Removes all rows of the list but these. `gone`: a query of their ids. */
export async function keepHeldRows(tx: Transaction, list: ListKey, gone: Prisma.Sql): Promise<void> {
  await tx.$executeRaw`
    DELETE FROM muster.held_rows WHERE ${isOfList(list)} AND id IN (${heldRows(list)} EXCEPT (${gone}))`;
}

/** Removes all rows of a list, or of a company. */
export async function removeHeldRows(tx: Transaction, of: CompanyKey | ListKey): Promise<void> {
  await tx.$executeRaw`DELETE FROM muster.held_rows WHERE ${'resource' in of ? isOfList(of) : isOf(of)}`;
}

/** Removes these ids, and all with the prefix. */
export async function eraseHeldRows(
  tx: Transaction,
  list: ListKey,
  { ids, prefix }: { readonly ids: readonly string[]; readonly prefix?: string | undefined },
): Promise<void> {
  const isChild = prefix === undefined ? Prisma.sql`FALSE` : Prisma.sql`starts_with(id, ${prefix})`;
  await tx.$executeRaw`DELETE FROM muster.held_rows WHERE ${isOfList(list)} AND (id = ANY(${ids}::text[]) OR ${isChild})`;
}
