// muster.holds: deletions that the mass-deletion guard held back, for a person to decide. A verified walk opens a hold, a later one or a
// decision closes it. Lock order: connections, lists, runs, walks, holds.
import type { Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import type { Hold } from '../../generated/prisma/client.js';
import { newestFirst, type Page, type PageQuery, pageBySeq } from '../cursor.js';
import type { Database } from '../database.js';
import type { Transaction } from '../transaction.js';
import type { ListKey } from './lists.js';

export type HoldStatus = 'open' | 'approved' | 'rejected' | 'superseded';

export interface HoldRow extends Omit<Hold, 'environment' | 'status'> {
  readonly environment: Environment;
  readonly status: HoldStatus;
}

export type HoldFilter = Partial<Pick<HoldRow, 'status' | 'environment'>> & PageQuery;

/** Throws `hold_not_found`. */
export async function findHold({ hold }: Pick<Transaction, 'hold'>, id: string): Promise<HoldRow> {
  const row = await hold.findUnique({ where: { id } });
  if (!row) throw new MusterError('hold_not_found', `There is no hold ${id}: GET /api/holds lists them.`);
  return row as HoldRow;
}

/** Locks a hold that nobody has decided yet. Throws `hold_not_found`, `hold_not_open`. */
export async function lockOpenHold(tx: Transaction, id: string): Promise<void> {
  await tx.$queryRaw`SELECT 1 FROM muster.holds WHERE id = ${id}::uuid FOR UPDATE`;
  const { status } = await findHold(tx, id);
  if (status !== 'open') throw new MusterError('hold_not_open', `The hold ${id} is ${status} already.`);
}

/** Closes one hold, or what is open of a list. Returns whether any was. */
export async function closeHolds(
  tx: Transaction,
  which: { readonly id: string } | ListKey,
  status: Exclude<HoldStatus, 'open'>,
): Promise<boolean> {
  const { count } = await tx.hold.updateMany({ where: { ...which, status: 'open' }, data: { status, closedAt: new Date() } });
  return count > 0;
}

/** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
export async function listHolds(db: Database, filter: HoldFilter): Promise<Page<HoldRow>> {
  const rows = await db.prisma.hold.findMany(newestFirst(filter));
  return pageBySeq(rows as HoldRow[], filter.limit);
}
