// muster.marks: who was forgotten, by keyed hashes (src/privacy). Written under the lock of the list, like its rows (lists.ts): a walk that
// was opened before a mark was made or lifted is fenced, so that one that is open knows all marks of its list.
// muster.mark_key: the key of these hashes, encrypted. Made once, and replaced when the encryption key changes.
import type { CompanyKey } from '../../core/company.js';
import type { Mark } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Reader } from '../connection/read-only.js';
import type { Transaction } from '../connection/transaction.js';
import type { ListKey } from './lists.js';

/** A mark as walks need it. */
export type MarkRow = Pick<Mark, 'mark' | 'member' | 'person'>;

/** A mark that is written down elsewhere. */
export type KeptMark = Omit<Mark, 'environment'> & Pick<CompanyKey, 'environment'>;

export function findMarks({ mark }: Pick<Transaction, 'mark'>, list: ListKey): Promise<MarkRow[]> {
  const { environment, companyId, resource } = list;
  return mark.findMany({ where: { environment, companyId, resource }, select: { mark: true, member: true, person: true } });
}

/** Marks that are there stay as they are. The caller has locked the list. */
export async function insertMarks(tx: Transaction, list: ListKey, marks: readonly MarkRow[]): Promise<void> {
  const { environment, companyId, resource } = list;
  const data = marks.map((each) => ({ ...each, mark: new Uint8Array(each.mark), environment, companyId, resource }));
  await tx.mark.createMany({ data, skipDuplicates: true });
}

/** Removes the marks of these persons. The caller has locked the list. */
export async function deleteMarks(tx: Transaction, list: ListKey, persons: readonly string[]): Promise<void> {
  const { environment, companyId, resource } = list;
  await tx.mark.deleteMany({ where: { environment, companyId, resource, person: { in: [...persons] } } });
}

/** The lists of onboarded companies that have marks. */
export function listsWithMarks({ prisma }: Pick<Database, 'prisma'>): Promise<ListKey[]> {
  return prisma.$queryRaw<ListKey[]>`
    SELECT DISTINCT m.environment, m.company_id::text AS "companyId", m.resource
    FROM muster.marks m JOIN muster.connections c USING (environment, company_id) ORDER BY 1, 2, 3`;
}

/** All marks, oldest first. */
export function findAllMarks({ prisma }: Pick<Database, 'prisma'>): Promise<KeptMark[]> {
  return prisma.mark.findMany({ orderBy: [{ madeAt: 'asc' }, { mark: 'asc' }] }) as Promise<KeptMark[]>;
}

/** The key as it is stored; undefined where nobody was ever forgotten. */
export async function findMarkKey(tx: Pick<Transaction, 'markKey'>): Promise<string | undefined> {
  return (await tx.markKey.findFirst())?.sealed;
}

/** The same for whoever only looks. */
export async function readMarkKey(db: Reader): Promise<string | undefined> {
  const { rows } = await db.query<{ sealed: string }>('SELECT sealed FROM muster.mark_key');
  return rows[0]?.sealed;
}

/** Stores the key unless there is one. */
export async function insertMarkKey(tx: Pick<Transaction, 'markKey'>, sealed: string): Promise<void> {
  await tx.markKey.createMany({ data: [{ sealed }], skipDuplicates: true });
}

/** Replaces the key's ciphertext unless it has changed meanwhile. */
export async function replaceMarkKey(tx: Pick<Transaction, 'markKey'>, { sealed, again }: { sealed: string; again: string }) {
  return (await tx.markKey.updateMany({ where: { sealed }, data: { sealed: again } })).count;
}
