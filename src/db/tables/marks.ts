// muster.marks: the suppressions, which are keyed hashes of records that were forgotten (src/privacy). They are written under the lock of the list, like
// its rows (lists.ts): a walk that was opened before is fenced, so that an open walk knows all suppressions of its list.
// muster.mark_key: the key of these hashes, encrypted. It is made once, and replaced when the encryption key changes.
import type { CompanyKey } from '../../core/company.js';
import type { Suppression } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Reader } from '../connection/read-only.js';
import type { Transaction } from '../connection/transaction.js';
import type { ListKey } from './lists.js';

/** A suppression as walks need it. */
export type SuppressionRow = Pick<Suppression, 'mark' | 'member' | 'person'>;

/** A suppression as copies have it. */
export type StoredSuppression = Omit<Suppression, 'environment'> & Pick<CompanyKey, 'environment'>;

export function findSuppressions({ suppression }: Pick<Transaction, 'suppression'>, list: ListKey): Promise<SuppressionRow[]> {
  const { environment, companyId, resource } = list;
  return suppression.findMany({
    where: { environment, companyId, resource },
    select: { mark: true, member: true, person: true },
  });
}

/** Suppressions that are there stay as they are. The caller has locked the list. */
export async function insertSuppressions(tx: Transaction, list: ListKey, rows: readonly SuppressionRow[]): Promise<void> {
  const { environment, companyId, resource } = list;
  const data = rows.map((each) => ({ ...each, mark: new Uint8Array(each.mark), environment, companyId, resource }));
  await tx.suppression.createMany({ data, skipDuplicates: true });
}

/** Removes the suppressions of these persons. The caller has locked the list. */
export async function deleteSuppressions(tx: Transaction, list: ListKey, persons: readonly string[]): Promise<void> {
  const { environment, companyId, resource } = list;
  await tx.suppression.deleteMany({ where: { environment, companyId, resource, person: { in: [...persons] } } });
}

/** The lists of onboarded companies that have suppressions. */
export function listsWithSuppressions({ prisma }: Pick<Database, 'prisma'>): Promise<ListKey[]> {
  return prisma.$queryRaw<ListKey[]>`
    SELECT DISTINCT m.environment, m.company_id::text AS "companyId", m.resource
    FROM muster.marks m JOIN muster.connections c USING (environment, company_id) ORDER BY 1, 2, 3`;
}

/** Oldest first. */
export function findAllSuppressions({ prisma }: Pick<Database, 'prisma'>): Promise<StoredSuppression[]> {
  return prisma.suppression.findMany({ orderBy: [{ madeAt: 'asc' }, { mark: 'asc' }] }) as Promise<StoredSuppression[]>;
}

/** The key as it is stored; undefined where no record was ever forgotten. */
export async function findMarkKey(tx: Pick<Transaction, 'markKey'>): Promise<string | undefined> {
  return (await tx.markKey.findFirst())?.sealed;
}

/** Reads the key through a connection that can only read. */
export async function readMarkKey(db: Reader): Promise<string | undefined> {
  const { rows } = await db.query<{ sealed: string }>('SELECT sealed FROM muster.mark_key');
  return rows[0]?.sealed;
}

/** Stores the key unless there is one. */
export async function insertMarkKey(tx: Pick<Transaction, 'markKey'>, sealed: string): Promise<void> {
  await tx.markKey.createMany({ data: [{ sealed }], skipDuplicates: true });
}

/** Replaces the key's ciphertext unless it has changed since it was read. */
export async function replaceMarkKey(tx: Pick<Transaction, 'markKey'>, { sealed, again }: { sealed: string; again: string }) {
  return (await tx.markKey.updateMany({ where: { sealed }, data: { sealed: again } })).count;
}
