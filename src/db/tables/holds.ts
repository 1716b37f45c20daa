// muster.holds: deletions that the mass-deletion guard held back, for a person to decide.
import type { Database } from '../database.js';

export async function countOpenHolds(db: Database): Promise<number> {
  const [row] = await db.prisma.$queryRaw<
    [{ count: number }]
  >`SELECT count(*)::int AS count FROM muster.holds WHERE status = 'open'`;
  return row.count;
}
