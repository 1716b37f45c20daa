// The state of a company's list, as people see it: computed from muster.lists, muster.holds and the newest walk that ended. Reads only, and locks nothing.
//
// The first state that applies counts:
//   unavailable  the company does not have the list: the newest successful walk found so
//   failed       the newest walk failed
//   held         a hold is open
//   never        no walk has proved it complete
//   late         the last proof is too old, and the company is not paused
//   on_time      none of these
import { ENVIRONMENTS } from '../../core/company.js';
import { type List, Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { readByIndex } from '../statements/by-index.js';
import { isOlderThan } from './lists.js';

export const LIST_STATES = ['unavailable', 'failed', 'held', 'never', 'late', 'on_time'] as const;
export type ListState = (typeof LIST_STATES)[number];

export interface ListWithState
  extends Pick<List, 'environment' | 'companyId' | 'resource' | 'records' | 'lastVerifiedAt' | 'lastRunId'> {
  readonly state: ListState;
  readonly since: Date | null;
  /** The code of the error, the cause of the hold, or the reason why the newest walk proved nothing. */
  readonly reason: string | null;
  /** The service's own sentence, where it refused the list. */
  readonly serviceSays: string | null;
}

/** Walks of list `l` of company `c` that ended by themselves, by the index `walks_ended`. */
const ENDED = Prisma.sql`muster.walks w WHERE w.environment = c.environment AND w.company_id = c.company_id AND w.resource = l.resource
  AND w.status IN ('succeeded', 'failed') AND w.kind = 'sync' AND w.finished_at >= c.created_at`;

/** The newest such walk, and the oldest open hold: look-ups (docs/internals/planner.md). */
const NEWEST = Prisma.sql`LATERAL (
    SELECT w.status, w.error->>'code' AS code, w.unverified_reason, w.service_says FROM ${ENDED} ORDER BY w.finished_at DESC LIMIT 1) ended ON TRUE
  LEFT JOIN LATERAL (
    SELECT h.opened_at, h.cause FROM muster.holds h
    WHERE h.environment = c.environment AND h.company_id = c.company_id AND h.resource = l.resource AND h.status = 'open'
    ORDER BY h.opened_at LIMIT 1 OFFSET 0) hold ON TRUE`;

function stateOf(staleAfterHours: number): Prisma.Sql {
  return Prisma.sql`CASE WHEN l.unavailable_since IS NOT NULL THEN 'unavailable' WHEN ended.status = 'failed' THEN 'failed'
    WHEN hold.opened_at IS NOT NULL THEN 'held' WHEN l.last_verified_at IS NULL THEN 'never'
    WHEN NOT c.paused AND ${isOlderThan(staleAfterHours)} THEN 'late' ELSE 'on_time' END`;
}

/** Since when walks of the list have failed: the first failure after the last success. */
const FAILING_SINCE = Prisma.sql`(SELECT min(w.finished_at) FROM ${ENDED} AND w.status = 'failed'
  AND w.finished_at > COALESCE((SELECT max(w.finished_at) FROM ${ENDED} AND w.status = 'succeeded'), c.created_at))`;

/** These resources of these companies, in both environments, by resource name; only lists that were requested at least once. */
export function findListStates(
  db: Pick<Database, 'prisma'>,
  asked: { readonly companyIds: readonly string[]; readonly resources: readonly string[]; readonly staleAfterHours: number },
): Promise<ListWithState[]> {
  const { companyIds, resources, staleAfterHours } = asked;
  if (companyIds.length === 0) return Promise.resolve([]);
  return readByIndex(
    db,
    (tx) => tx.$queryRaw<ListWithState[]>`
      SELECT found.environment, found.company_id AS "companyId", found.resource, found.records, found.last_verified_at AS "lastVerifiedAt",
        found.last_run_id AS "lastRunId", found.state, found.since, found.reason, found.service_says AS "serviceSays"
      FROM (
        SELECT l.*, s.state,
          CASE s.state WHEN 'unavailable' THEN l.unavailable_since WHEN 'failed' THEN ${FAILING_SINCE} WHEN 'held' THEN hold.opened_at
            WHEN 'never' THEN GREATEST(c.created_at, l.begun_at)
            WHEN 'late' THEN l.last_verified_at + ${staleAfterHours}::int * interval '1 hour' ELSE l.last_verified_at END AS since,
          CASE s.state WHEN 'unavailable' THEN NULL WHEN 'failed' THEN COALESCE(ended.code, 'internal_error') WHEN 'held' THEN hold.cause
            ELSE ended.unverified_reason END AS reason,
          CASE WHEN s.state IN ('unavailable', 'failed') THEN ended.service_says END AS service_says
        FROM muster.connections c
        JOIN muster.lists l ON l.environment = c.environment AND l.company_id = c.company_id AND l.resource = ANY(${resources}::text[])
        LEFT JOIN ${NEWEST}
        CROSS JOIN LATERAL (SELECT ${stateOf(staleAfterHours)} AS state) s
        WHERE c.environment = ANY(${[...ENVIRONMENTS]}::text[]) AND c.company_id = ANY(${companyIds}::uuid[])
      ) found ORDER BY found.resource`,
  );
}

/** Selects companies by a list: any of these resources, in this state if one is given. */
export interface ListFilter {
  readonly resources: readonly string[];
  readonly state?: ListState | undefined;
  readonly staleAfterHours: number;
}

/**
 * SQL: company `c` has such a list. A list without a walk was never proved. A value, not EXISTS
 * (docs/internals/planner.md).
 */
export function hasListLike({ resources, state, staleAfterHours }: ListFilter): Prisma.Sql {
  const isLike = state === undefined ? Prisma.sql`l.environment IS NOT NULL` : Prisma.sql`${stateOf(staleAfterHours)} = ${state}`;
  return Prisma.sql`COALESCE((
    SELECT TRUE FROM unnest(${resources}::text[]) AS asked(resource)
    LEFT JOIN muster.lists l ON l.environment = c.environment AND l.company_id = c.company_id AND l.resource = asked.resource
    LEFT JOIN ${NEWEST}
    WHERE ${isLike} LIMIT 1), FALSE)`;
}
