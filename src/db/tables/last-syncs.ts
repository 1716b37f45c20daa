// The last sync of a company where its outcome counts for the company: whether it has failed, and whether the night has been there. Reads muster.runs, and
// locks nothing.
import { Prisma } from '../../generated/prisma/client.js';

/** SQL: without runs by the schedules of lists, by the index `runs_without_schedules`, however many of them there are. */
const UNSCHEDULED = Prisma.sql`AND r.trigger <> 'scheduled'`;

/**
 * SQL: a value of the last sync `r` of the row `c` of muster.connections, or NULL without one; `among` restricts its runs, and begins with AND. A run by the
 * schedules of lists is not that sync: it walks some lists every few minutes, and would hide how the night ended. Where every list has a schedule, there
 * is no night (`next_sync_at` is NULL), and all runs count.
 */
export function ofLastSync(value: Prisma.Sql, among = Prisma.empty): Prisma.Sql {
  const last = (more: Prisma.Sql) => Prisma.sql`(SELECT ${value} FROM muster.runs r
    WHERE r.environment = c.environment AND r.company_id = c.company_id AND r.kind = 'sync' ${more} ${among} ORDER BY r.seq DESC LIMIT 1)`;
  return Prisma.sql`(CASE
    WHEN c.next_sync_at IS NULL THEN ${last(Prisma.empty)}
    ELSE ${last(UNSCHEDULED)}
  END)`;
}
