// muster.runs as people see them: by id, or newest first in pages. Reads only, and locks nothing.
import { ENVIRONMENTS } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { cursorAt, type Page, type PageQuery, pageBySeq, readNumberedStart } from '../statements/cursor.js';
import { isGiven, newestRows, type OfCompanies } from '../statements/newest-page.js';
import { RUN_TRIGGERS, type RunRow } from './runs.js';
import { readShownWalk, type ShownWalk, type ShownWalkJson, WALK_STATUSES, WALKS_OF_RUN } from './walks.js';

/** A run as people see it, with its walks in order. */
export type ShownRun = Pick<
  RunRow,
  | 'id'
  | 'environment'
  | 'companyId'
  | 'trigger'
  | 'kind'
  | 'mode'
  | 'status'
  | 'attempts'
  | 'startAfter'
  | 'quietUntil'
  | 'error'
  | 'createdAt'
  | 'startedAt'
  | 'finishedAt'
> & {
  readonly isCompanyRemoved?: boolean | undefined;
  readonly walks: readonly ShownWalk[];
};

/** These runs, in any order; missing ones are left out. One statement, whose text is the same for any number. */
export async function findRuns(db: Database, { ids }: { ids: readonly string[] }): Promise<ShownRun[]> {
  const rows = await db.prisma.$queryRaw<(Omit<ShownRun, 'walks'> & { walks: ShownWalkJson[] })[]>`
    SELECT id, environment, company_id AS "companyId", trigger, kind, mode, status, attempts, start_after AS "startAfter", quiet_until AS "quietUntil", error,
      created_at AS "createdAt", started_at AS "startedAt", finished_at AS "finishedAt",
      -- A value, not EXISTS (docs/internals/planner.md).
      (SELECT TRUE FROM muster.connections c WHERE c.environment = runs.environment AND c.company_id = runs.company_id) IS NULL AS "isCompanyRemoved",
      ${WALKS_OF_RUN} AS walks
    FROM muster.runs WHERE id = ANY(${ids}::uuid[])`;
  return rows.map((row) => ({ ...row, walks: row.walks.map(readShownWalk) }));
}

export type RunFilter = Partial<Pick<RunRow, 'companyId' | 'environment' | 'status' | 'trigger'>> &
  PageQuery &
  OfCompanies & {
    /** Runs requested at `since` or later, and before `until`. */
    readonly since?: Date | undefined;
    readonly until?: Date | undefined;
    /** Runs with a walk of this list. No index finds them: a page examines `LOOKED_THROUGH` runs, and may be short or empty. */
    readonly resource?: string | undefined;
  };

const LOOKED_THROUGH = 2_000;

/** Newest first. Throws `invalid_request` for a cursor that no response gave. */
export async function listRuns(db: Database, filter: RunFilter): Promise<Page<ShownRun>> {
  const { limit, resource } = filter;
  const looked = runsOf(filter, resource === undefined ? limit + 1 : LOOKED_THROUGH);
  // A value, not EXISTS (docs/internals/planner.md).
  const walks =
    resource && Prisma.sql`WHERE (SELECT TRUE FROM muster.walks w WHERE w.run_id = r.id AND w.resource = ${resource} LIMIT 1)`;
  const isBefore = readNumberedStart(filter.cursor)?.isBefore === true;
  const [order, last] = isBefore ? [Prisma.raw('ASC'), Prisma.raw('max')] : [Prisma.raw('DESC'), Prisma.raw('min')];
  const found = await db.prisma.$queryRaw<{ id: string; seq: bigint }[]>`
    SELECT id, seq FROM (${looked}) r ${walks || Prisma.empty} ORDER BY seq ${order} LIMIT ${limit + 1}::int`;
  const ids = pageBySeq(found, filter);
  const runs = new Map((await findRuns(db, { ids: ids.data.map(({ id }) => id) })).map((run) => [run.id, run]));
  // Retention may have removed a run since its id was read.
  const page = { ...ids, data: ids.data.flatMap(({ id }) => runs.get(id) ?? []) };
  if (!walks || found.length > limit) return page;
  const [end] = await db.prisma.$queryRaw<{ seq: bigint | null; count: number }[]>`
    SELECT ${last}(seq) AS seq, count(*)::int AS count FROM (${looked}) r`;
  if (end?.count !== LOOKED_THROUGH) return page;
  return { ...page, ...(isBefore ? { previousCursor: cursorAt(`<${end.seq}`) } : { nextCursor: cursorAt(String(end.seq)) }) };
}

function runsOf(
  { companyId, companies, environment, status, trigger, since, until, cursor }: RunFilter,
  limit: number,
): Prisma.Sql {
  const given = [...isGiven('environment', environment), ...isGiven('status', status), ...isGiven('trigger', trigger)];
  const { conditions, ...bounds } = askedBetween(since, until);
  const page = { table: 'runs', companies, ...bounds, limit, cursor } as const;
  // A company has few enough runs to scan.
  if (companyId !== undefined)
    return newestRows({ ...page, conditions: [...isGiven('company_id', companyId, 'uuid'), ...given, ...conditions] });
  const choices = given.length > 0 && {
    environment: environment ? [environment] : ENVIRONMENTS,
    trigger: trigger ? [trigger] : RUN_TRIGGERS,
    status: status ? [status] : WALK_STATUSES,
  };
  return newestRows({ ...page, conditions, ...(choices && { choices }) });
}

/**
 * Runs requested from one time on and before another. Pages follow `seq`, which grows with the time except for transactions that overlap; none
 * lasts five minutes. So a run that is older or younger by more than that bounds `seq`, by an index. `IS TRUE` keeps the planner from using the exact
 * condition to find the rows, which it would then sort, however many there are.
 */
function askedBetween(since: Date | undefined, until: Date | undefined) {
  return {
    conditions: [
      ...(since ? [Prisma.sql`(t.created_at >= ${since}::timestamptz) IS TRUE`] : []),
      ...(until ? [Prisma.sql`(t.created_at < ${until}::timestamptz) IS TRUE`] : []),
    ],
    above: since && [seqBefore(since)],
    below: until && [
      Prisma.sql`COALESCE((SELECT b.seq FROM muster.runs b WHERE b.created_at >= ${until}::timestamptz + interval '5 minutes'
        ORDER BY b.created_at LIMIT 1), 9223372036854775807)`,
    ],
  };
}

/** A `seq` below that of every run requested at `since` or later. */
export function seqBefore(since: Date): Prisma.Sql {
  return Prisma.sql`COALESCE((SELECT b.seq FROM muster.runs b WHERE b.created_at < ${since}::timestamptz - interval '5 minutes'
    ORDER BY b.created_at DESC LIMIT 1), 0)`;
}
