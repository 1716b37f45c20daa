// muster.holds: deletions that the mass-deletion guard held back, for a person to decide. A verified walk opens a hold, a later one or a
// decision closes it. Lock order: connections, lists, runs, walks, holds.
import type { Environment } from '../../core/company.js';
import type { Hold } from '../../generated/prisma/client.js';
import { type Page, pageBySeq, readSeqCursor } from '../cursor.js';
import type { Database } from '../database.js';

export type HoldStatus = 'open' | 'approved' | 'rejected' | 'superseded';

export interface HoldRow extends Omit<Hold, 'environment' | 'status'> {
  readonly environment: Environment;
  readonly status: HoldStatus;
}

export interface HoldFilter {
  readonly status?: HoldStatus;
  readonly environment?: Environment;
  readonly limit: number;
  readonly cursor?: string;
}

export async function findHold(db: Database, { id }: { readonly id: string }): Promise<HoldRow | undefined> {
  return ((await db.prisma.hold.findUnique({ where: { id } })) ?? undefined) as HoldRow | undefined;
}

/** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
export async function listHolds(db: Database, { cursor, limit, ...filter }: HoldFilter): Promise<Page<HoldRow>> {
  const before = readSeqCursor(cursor);
  const rows = await db.prisma.hold.findMany({
    where: { ...filter, ...(before !== undefined && { seq: { lt: before } }) },
    orderBy: { seq: 'desc' },
    take: limit + 1,
  });
  return pageBySeq(rows as HoldRow[], limit);
}

export async function countOpenHolds(db: Database): Promise<number> {
  const [row] = await db.prisma.$queryRaw<
    [{ count: number }]
  >`SELECT count(*)::int AS count FROM muster.holds WHERE status = 'open'`;
  return row.count;
}
