// Which lists were proved complete since the newest night began, and which lack a proof. Reads muster.connections, muster.lists and what their states are
// made of (list-states.ts), and locks nothing.
//
// A list is due if its company was onboarded before that night, is not paused, and has the list. It lacks a proof until any walk has proved it since,
// nightly or not; a list with a schedule of its own lacks one while it is late by that schedule. Its state says why; a company that must authorize again comes first, since nothing else helps it.
import type { CompanyKey, Environment } from '../../core/company.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { readByIndex } from '../statements/by-index.js';
import { type Page, type PageQuery, pageOf, readCursor } from '../statements/cursor.js';
import { countsFrom, LIST, NEWEST, stateOf } from './list-states.js';

/** `on_time`: the proof before that night is not too old yet. */
export const LACKING_STATES = ['reauthorization_required', 'failed', 'held', 'never', 'late', 'on_time'] as const;
export type LackingState = (typeof LACKING_STATES)[number];

export interface NightAsked {
  readonly resources: readonly string[];
  readonly environment?: Environment | undefined;
  readonly staleAfterHours: StaleAfterHours;
  readonly beganAt: Date;
  readonly lastTurnAt: Date;
  readonly nextAt: Date;
}

export interface LastNight {
  readonly due: number;
  readonly proved: number;
  readonly lacking: readonly { readonly state: LackingState; readonly lists: number }[];
}

/** SQL: the lists `l` of companies `c` that are due, as `asked.resource`. A list that no walk has opened has no row. */
function dueLists({ resources }: NightAsked, join = Prisma.empty): Prisma.Sql {
  return Prisma.sql`muster.connections c CROSS JOIN unnest(${resources}::text[]) AS asked(resource)
    LEFT JOIN ${LIST} ${join}`;
}

const isDue = ({ environment, beganAt }: NightAsked): Prisma.Sql =>
  Prisma.sql`(NOT c.paused AND c.created_at < ${beganAt}::timestamptz AND l.unavailable_since IS NULL
    AND (${environment ?? null}::text IS NULL OR c.environment = ${environment ?? null}))`;

/** SQL: the due lists that lack a proof: environment, company_id, resource, state, last_verified_at, last_run_id. */
function lackingLists(asked: NightAsked): Prisma.Sql {
  return Prisma.sql`
    SELECT c.environment, c.company_id, asked.resource, l.last_verified_at, l.last_run_id,
      CASE WHEN c.status = 'reauthorization_required' THEN c.status ELSE ${stateOf(asked.staleAfterHours)} END AS state
    FROM ${dueLists(asked, Prisma.sql`LEFT JOIN ${NEWEST}`)}
    WHERE ${isDue(asked)} AND (l.last_verified_at IS NULL OR l.last_verified_at < ${countsFrom(asked.beganAt, asked.staleAfterHours)})`;
}

/** Counts the lists of the newest night. */
export function readLastNight(db: Pick<Database, 'prisma'>, asked: NightAsked): Promise<LastNight> {
  return readByIndex(db, async (tx) => {
    const [counts] = await tx.$queryRaw<Pick<LastNight, 'due' | 'proved'>[]>`
      SELECT count(*)::int AS due, count(*) FILTER (WHERE l.last_verified_at >= ${countsFrom(asked.beganAt, asked.staleAfterHours)})::int AS proved
      FROM ${dueLists(asked)} WHERE ${isDue(asked)}`;
    const lacking = await tx.$queryRaw<{ state: LackingState; lists: number }[]>`
      SELECT state, count(*)::int AS lists FROM (${lackingLists(asked)}) lacking GROUP BY state`;
    return {
      ...counts!,
      lacking: lacking.toSorted((one, other) => LACKING_STATES.indexOf(one.state) - LACKING_STATES.indexOf(other.state)),
    };
  });
}

/**
 * Whether runs of the newest night are under way, or still to come. A run that has not ended when the turn of its company comes stands for the night, unless it walks
 * lists by their own schedules. Not while only paused companies have some.
 */
export async function readIsUnderWay(
  db: Pick<Database, 'prisma'>,
  { environment = null as never, lastTurnAt, nextAt }: NightAsked,
): Promise<boolean> {
  const [row] = await readByIndex(
    db,
    (tx) => tx.$queryRaw<[{ is: boolean }]>`
    SELECT EXISTS (
      SELECT FROM muster.runs r JOIN muster.connections c USING (environment, company_id)
      WHERE r.status IN ('queued', 'running') AND r.kind = 'sync' AND NOT c.paused
        AND (r.trigger = 'nightly' OR r.trigger <> 'scheduled' AND r.created_at < ${lastTurnAt}::timestamptz)
        AND (${environment}::text IS NULL OR environment = ${environment})
    ) OR EXISTS (
      SELECT FROM muster.connections
      WHERE status = 'active' AND next_sync_at < ${nextAt}::timestamptz AND (${environment}::text IS NULL OR environment = ${environment})
    ) AS is`,
  );
  return row.is;
}

export interface LackingFilter extends NightAsked, PageQuery {
  readonly companyId?: string | undefined;
  readonly companies?: readonly CompanyKey[] | undefined;
  readonly state?: LackingState | undefined;
}

export interface LackingList extends CompanyKey {
  readonly resource: string;
  readonly state: LackingState;
  readonly lastVerifiedAt: Date | null;
  readonly lastRunId: string | null;
}

const CURSOR = /^(?:production|test)\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\/\w+$/;

/** The due lists that lack a proof, by environment, company and list. */
export async function listLacking(db: Pick<Database, 'prisma'>, filter: LackingFilter): Promise<Page<LackingList>> {
  const { companyId = null, companies, state = null, limit, cursor } = filter;
  const isAmong = companies
    ? Prisma.sql`(environment, company_id) IN (SELECT * FROM unnest(${companies.map(({ environment }) => environment)}::text[], ${companies.map((each) => each.companyId)}::uuid[]))`
    : Prisma.sql`TRUE`;
  const [environment, company, resource] = cursor === undefined ? [null, null, null] : readCursor(cursor, CURSOR).split('/');
  const rows = await readByIndex(
    db,
    (tx) => tx.$queryRaw<LackingList[]>`
      SELECT environment, company_id AS "companyId", resource, state, last_verified_at AS "lastVerifiedAt", last_run_id AS "lastRunId"
      FROM (${lackingLists(filter)}) lacking
      WHERE (${companyId}::uuid IS NULL OR company_id = ${companyId}::uuid) AND ${isAmong} AND (${state}::text IS NULL OR state = ${state})
        AND (${environment}::text IS NULL OR (environment, company_id, resource) > (${environment}, ${company}::uuid, ${resource}))
      ORDER BY environment, company_id, resource LIMIT ${limit + 1}::int`,
  );
  return pageOf(rows, limit, (row) => `${row.environment}/${row.companyId}/${row.resource}`);
}
