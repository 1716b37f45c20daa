// The active sync of a company, as conditions of statements that read other tables: by the index `runs_one_active`. Reads muster.runs, and locks nothing.
// A statement that decides by it and then makes a run has locked the company's connection, and looks again after that (lastRunsOf).
import { Prisma } from '../../generated/prisma/client.js';

/**
 * SQL: a sync of the company of a row of `of` is queued or running, and the condition holds for that run `r`. A value, not EXISTS
 * (docs/internals/planner.md).
 */
export function hasActiveRun(of: Prisma.Sql, condition = Prisma.sql`TRUE`): Prisma.Sql {
  return Prisma.sql`COALESCE((SELECT ${condition} FROM muster.runs r WHERE r.environment = ${of}.environment AND r.company_id = ${of}.company_id
    AND r.kind = 'sync' AND r.status IN ('queued', 'running') LIMIT 1), FALSE)`;
}

/** SQL: such a run walks lists by their own schedules, and does not wait to retry. Runs of all lists follow it. */
export function isOnSchedule(of: Prisma.Sql): Prisma.Sql {
  return hasActiveRun(of, Prisma.sql`r.trigger = 'scheduled' AND NOT (r.status = 'queued' AND r.start_after > now())`);
}
