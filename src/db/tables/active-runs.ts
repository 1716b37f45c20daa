// Whether a company has an active run, and whether a run has to wait, as conditions of statements: by the index `runs_one_active`. Reads muster.runs and
// muster.connections, and locks nothing.
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

/**
 * SQL: a row `run` of muster.runs waits to retry: its last attempt failed, and the next one is not due yet. A run that only waits for the end of quiet hours is
 * as good as under way.
 */
export function waitsToRetry(run: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`(${run}.status = 'queued' AND ${run}.start_after > now()
    AND (${run}.error IS NOT NULL OR ${run}.quiet_until IS DISTINCT FROM ${run}.start_after))`;
}

/**
 * SQL: such a run walks lists by their own schedules, and does not wait to retry. Runs of all lists follow it, also where it waits for the end of quiet
 * hours, as lastRunsOf has it: no request replaces that one.
 */
export function isOnSchedule(of: Prisma.Sql): Prisma.Sql {
  return hasActiveRun(of, Prisma.sql`r.trigger = 'scheduled' AND NOT ${waitsToRetry(Prisma.sql`r`)}`);
}

/**
 * SQL: the company of a row of muster.runs is paused, and nothing is requested from the service for it. A value, not EXISTS
 * (docs/internals/planner.md).
 */
export const IS_PAUSED = Prisma.sql`(COALESCE((
  SELECT c.status FROM muster.connections c WHERE c.environment = runs.environment AND c.company_id = runs.company_id), '') = 'paused')`;

/**
 * SQL: a row of muster.runs is a verification while its company is being synced. It waits for the end of the sync, to read a mirror at rest. No
 * sync waits for a verification.
 */
export const WAITS_FOR_SYNC = Prisma.sql`(runs.kind = 'verify' AND COALESCE((
  SELECT TRUE FROM muster.runs s WHERE s.environment = runs.environment AND s.company_id = runs.company_id AND s.kind = 'sync'
    AND s.status IN ('queued', 'running') LIMIT 1), FALSE))`;
