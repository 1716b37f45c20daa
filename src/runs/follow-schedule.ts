import type { CompanyKey } from '../core/company.js';
import type { Database } from '../db/database.js';
import { nextSyncsAfter, type Schedule } from './schedule.js';

interface Planned extends CompanyKey {
  readonly at: Date;
}

/** Companies that one statement moves: it holds their connections until it has ended. */
const BATCH = 500;

/**
 * Moves the next sync of every company to when the schedule has it: it was set under another schedule where the settings have
 * changed since. One that is due stays, or that night would be lost. Returns how many were moved.
 */
export async function followSchedule(db: Database, schedule: Schedule): Promise<number> {
  // By the database's clock, which says what is due: by one that is ahead of it, a sync that is about to begin would be put off.
  const planned = await db.prisma.$queryRaw<(Planned & { now: Date })[]>`
    SELECT environment, company_id AS "companyId", next_sync_at AS at, now() AS now FROM muster.connections
    WHERE next_sync_at > now() ORDER BY environment, company_id`;
  if (!planned[0]) return 0;
  const nextOf = nextSyncsAfter(schedule, planned[0].now.getTime());
  const moves = planned.flatMap(({ environment, companyId, at: before }) => {
    const at = nextOf({ environment, companyId });
    return at.getTime() === before.getTime() ? [] : [{ environment, companyId, at }];
  });
  let moved = 0;
  for (let start = 0; start < moves.length; start += BATCH) moved += await move(db, moves.slice(start, start + BATCH));
  return moved;
}

/** In the order of their keys, so that several workers that start at once wait for one another and never in a circle. */
function move(db: Database, moves: readonly Planned[]): Promise<number> {
  return db.prisma.$executeRaw`
    WITH moved AS (
      SELECT environment, company_id, m.at FROM muster.connections c
      JOIN unnest(${moves.map(({ environment }) => environment)}::text[], ${moves.map(({ companyId }) => companyId)}::uuid[],
        ${moves.map(({ at }) => at)}::timestamptz[]) AS m(environment, company_id, at) USING (environment, company_id)
      WHERE c.next_sync_at > clock_timestamp() AND c.next_sync_at <> m.at
      ORDER BY environment, company_id FOR UPDATE OF c)
    UPDATE muster.connections c SET next_sync_at = moved.at FROM moved
    WHERE c.environment = moved.environment AND c.company_id = moved.company_id`;
}
