import { z } from 'zod';
import { ENVIRONMENTS } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import { shareConnection } from '../db/tables/connections.js';
import { fenceList, type ListKey } from '../db/tables/lists.js';
import {
  findAllSuppressions,
  findMarkKey,
  insertMarkKey,
  insertSuppressions,
  listsWithSuppressions,
  type SuppressionRow,
} from '../db/tables/marks.js';
import type { MarkKeyCipher } from '../privacy/suppressions.js';
import { type ForgetDependencies, forgetAgain } from './forget.js';

// Suppressions must survive a restore: a backup from before knows nothing of them. A copy holds no id, only hashes and their key, which is encrypted as in
// the database.

const CopiedSuppression = z.strictObject({
  environment: z.enum(ENVIRONMENTS),
  company_id: z.guid(),
  resource: z.string().regex(/^[a-z][a-z0-9_]*$/),
  member: z.string(),
  person: z.guid(),
  mark: z.base64(),
  made_at: z.iso.datetime(),
});
const SuppressionCopy = z.strictObject({ key: z.string().nullable(), marks: z.array(CopiedSuppression) });
export type SuppressionCopy = z.output<typeof SuppressionCopy>;

/** All suppressions of a database, and their key. */
export async function copySuppressions(db: Database): Promise<SuppressionCopy> {
  return {
    key: (await findMarkKey(db.prisma)) ?? null,
    marks: (await findAllSuppressions(db)).map(({ companyId, mark, madeAt, ...each }) => ({
      ...each,
      company_id: companyId,
      mark: Buffer.from(mark).toString('base64'),
      made_at: madeAt.toISOString(),
    })),
  };
}

/** Adds the suppressions of a copy. Returns how many lists they are of. Throws `invalid_request`, `mark_key_unreadable`. */
export async function restoreSuppressions(db: Database, cipher: MarkKeyCipher, copy: unknown): Promise<number> {
  const parsed = SuppressionCopy.safeParse(copy);
  if (!parsed.success) throw refused('This is no copy that `muster marks export` has made');
  const { key, marks } = parsed.data;
  if (key === null) return 0;
  const lists = new Map<string, { list: ListKey; rows: SuppressionRow[] }>();
  for (const { environment, company_id: companyId, resource, mark, member, person } of marks) {
    const name = JSON.stringify([environment, companyId, resource]);
    const of = lists.get(name) ?? { list: { environment, companyId, resource }, rows: [] };
    of.rows.push({ mark: new Uint8Array(Buffer.from(mark, 'base64')), member, person });
    lists.set(name, of);
  }
  await inTransaction(db, async (tx) => {
    await takeKey(tx, cipher, key);
    for (const name of [...lists.keys()].toSorted()) {
      const { list, rows } = lists.get(name)!;
      // The lists of other companies read theirs once these are onboarded.
      if (await shareConnection(tx, list)) await fenceList(tx, list, true);
      await insertSuppressions(tx, list, rows);
    }
  });
  return lists.size;
}

async function takeKey(tx: Transaction, cipher: MarkKeyCipher, sealed: string): Promise<void> {
  const key = cipher.openMarkKey(sealed).reveal();
  await insertMarkKey(tx, sealed);
  if (cipher.openMarkKey((await findMarkKey(tx))!).reveal() === key) return;
  throw refused('The marks of this database were made with another key: restore a copy before a record is forgotten');
}

/** Erases all suppressed records that the mirror still holds. Returns how many rows went. */
export async function applySuppressions(db: Database, deps: ForgetDependencies): Promise<number> {
  let erased = 0;
  for (const list of await listsWithSuppressions(db))
    if (deps.catalogue.get(list.resource))
      erased += await inTransaction(db, (tx) => forgetAgain(tx, deps, list), { timeoutMs: WHOLE_LIST_MS });
  return erased;
}

function refused(problem: string): MusterError {
  return new MusterError('invalid_request', `${problem}. Nothing was restored.`);
}
