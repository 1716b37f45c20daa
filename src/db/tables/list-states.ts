// How complete and how fresh a company's list is, as people see it: computed from muster.connections, muster.lists, muster.holds and the newest walk that
// ended. Every count and filter of lists uses these definitions, so that all numbers agree. Reads only, and locks nothing.
//
// A list of the catalogue has one proof for each company, whatever its walks did since:
//   unavailable  the company does not have the list: the newest successful walk found so
//   never        no walk has proved it complete, however long ago the first walk was; nor was it requested
//   late         the last proof is too old, by the schedule of the list, and the company is not paused
//   verified     none of these
//
// It also has one state. The first that applies counts:
//   unavailable  as above
//   failed       the newest walk failed
//   held         a hold is open
//   never, late  as above
//   on_time      none of these
import { ENVIRONMENTS } from '../../core/company.js';
import { ownHours, type StaleAfterHours } from '../../core/stale-after.js';
import { type List, Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { readByIndex } from '../statements/by-index.js';
import type { HoldRow } from './holds.js';
import { isTooOld, staleAfter } from './lists.js';

export const LIST_STATES = ['unavailable', 'failed', 'held', 'never', 'late', 'on_time'] as const;
export type ListState = (typeof LIST_STATES)[number];

export const LIST_PROOFS = ['verified', 'late', 'never', 'unavailable'] as const;
export type ListProofState = (typeof LIST_PROOFS)[number];

export interface ListWithState
  extends Pick<List, 'environment' | 'companyId' | 'resource' | 'records' | 'lastVerifiedAt' | 'lastRunId'> {
  readonly state: ListState;
  /** When the state began. Null for a list that is new in the catalogue: no table knows since when. */
  readonly since: Date | null;
  /** The code of the error, the cause of the hold, the status of the company, or the reason why there is no newer proof. */
  readonly reason: string | null;
  /** The oldest open hold, whatever the state. */
  readonly hold: Pick<HoldRow, 'id' | 'cause' | 'count'> | null;
  /** The service's own sentence, where it refused the list. */
  readonly serviceSays: string | null;
}

/** Walks of the list `asked` of company `c` that ended by themselves, by the index `walks_ended`. */
const ENDED = Prisma.sql`muster.walks w WHERE w.environment = c.environment AND w.company_id = c.company_id AND w.resource = asked.resource
  AND w.status IN ('succeeded', 'failed') AND w.kind = 'sync' AND w.finished_at >= c.created_at`;

/** The list `asked` of company `c`: its row `l`, if it was ever requested. */
export const LIST = Prisma.sql`muster.lists l ON l.environment = c.environment AND l.company_id = c.company_id AND l.resource = asked.resource`;

/** The newest such walk, and the oldest open hold: look-ups (docs/internals/planner.md). */
export const NEWEST = Prisma.sql`LATERAL (
    SELECT w.status, w.error->>'code' AS code, w.unverified_reason, w.service_says FROM ${ENDED} ORDER BY w.finished_at DESC LIMIT 1) ended ON TRUE
  LEFT JOIN LATERAL (
    SELECT h.id, h.opened_at, h.cause, h.count FROM muster.holds h
    WHERE h.environment = c.environment AND h.company_id = c.company_id AND h.resource = asked.resource AND h.status = 'open'
    ORDER BY h.opened_at LIMIT 1 OFFSET 0) hold ON TRUE`;

/** SQL: the proof of list `l` of company `c`. */
export function proofOf(staleAfterHours: StaleAfterHours): Prisma.Sql {
  return Prisma.sql`CASE WHEN l.unavailable_since IS NOT NULL THEN 'unavailable' WHEN l.last_verified_at IS NULL THEN 'never'
    WHEN NOT c.paused AND ${isTooOld(staleAfterHours)} THEN 'late' ELSE 'verified' END`;
}

/** SQL: from when on a proof of list `asked` counts for the night that began `since`: a list with a schedule of its own has to be on time by that schedule. */
export function countsFrom(since: Date, staleAfterHours: StaleAfterHours): Prisma.Sql {
  const own = Object.keys(ownHours(staleAfterHours));
  const began = Prisma.sql`${since}::timestamptz`;
  if (own.length === 0) return began;
  return Prisma.sql`CASE WHEN asked.resource = ANY(${own}::text[]) THEN now() - ${staleAfter(staleAfterHours)} ELSE ${began} END`;
}

/** SQL: the state of list `asked` of company `c`. Reads `NEWEST`. */
export function stateOf(staleAfterHours: StaleAfterHours): Prisma.Sql {
  return Prisma.sql`CASE WHEN l.unavailable_since IS NOT NULL THEN 'unavailable' WHEN ended.status = 'failed' THEN 'failed'
    WHEN hold.opened_at IS NOT NULL THEN 'held' ELSE replace(${proofOf(staleAfterHours)}, 'verified', 'on_time') END`;
}

/** Since when walks of the list have failed: the first failure after the last success. */
const FAILING_SINCE = Prisma.sql`(SELECT min(w.finished_at) FROM ${ENDED} AND w.status = 'failed'
  AND w.finished_at > COALESCE((SELECT max(w.finished_at) FROM ${ENDED} AND w.status = 'succeeded'), c.created_at))`;

/** A list that was not requested while others of its company were is new in the catalogue. */
const NEVER_SINCE = Prisma.sql`CASE WHEN l.resource IS NULL AND EXISTS (
  SELECT FROM muster.lists o WHERE o.environment = c.environment AND o.company_id = c.company_id) THEN NULL ELSE GREATEST(c.created_at, l.begun_at) END`;

/** A company that is not synced says more than its last walk. */
const NO_NEWER_PROOF = Prisma.sql`CASE WHEN s.state = 'on_time' THEN ended.unverified_reason
  WHEN c.status = 'reauthorization_required' THEN c.status WHEN c.paused THEN 'company_paused'
  ELSE COALESCE(ended.unverified_reason, CASE WHEN s.state = 'late' THEN 'no_walk_since' WHEN ended.status IS NULL THEN 'no_walk_yet' END) END`;

/** These resources of these companies, in both environments, by resource name, whether they were requested or not. */
export async function findListStates(
  db: Pick<Database, 'prisma'>,
  asked: {
    readonly companyIds: readonly string[];
    readonly resources: readonly string[];
    readonly staleAfterHours: StaleAfterHours;
  },
): Promise<ListWithState[]> {
  const { companyIds, resources, staleAfterHours } = asked;
  if (companyIds.length === 0) return [];
  return readByIndex(
    db,
    (tx) => tx.$queryRaw<ListWithState[]>`
      SELECT c.environment, c.company_id AS "companyId", asked.resource, COALESCE(l.records, 0) AS records, l.last_verified_at AS "lastVerifiedAt",
        l.last_run_id AS "lastRunId", s.state,
        CASE s.state WHEN 'unavailable' THEN l.unavailable_since WHEN 'failed' THEN ${FAILING_SINCE} WHEN 'held' THEN hold.opened_at
          WHEN 'never' THEN ${NEVER_SINCE}
          WHEN 'late' THEN l.last_verified_at + ${staleAfter(staleAfterHours)} ELSE l.last_verified_at END AS since,
        CASE s.state WHEN 'unavailable' THEN s.state WHEN 'failed' THEN COALESCE(ended.code, 'internal_error') WHEN 'held' THEN hold.cause
          ELSE ${NO_NEWER_PROOF} END AS reason,
        CASE WHEN s.state IN ('unavailable', 'failed') THEN ended.service_says END AS "serviceSays",
        CASE WHEN hold.id IS NOT NULL THEN jsonb_build_object('id', hold.id, 'cause', hold.cause, 'count', hold.count) END AS hold
      FROM muster.connections c CROSS JOIN unnest(${resources}::text[]) AS asked(resource)
      LEFT JOIN ${LIST}
      LEFT JOIN ${NEWEST}
      CROSS JOIN LATERAL (SELECT ${stateOf(staleAfterHours)} AS state) s
      WHERE c.environment = ANY(${[...ENVIRONMENTS]}::text[]) AND c.company_id = ANY(${companyIds}::uuid[])
      ORDER BY asked.resource`,
  );
}

/** Selects companies by a list: any of these resources, in this state and with this proof where they are given. */
export interface ListFilter {
  readonly resources: readonly string[];
  readonly state?: ListState | undefined;
  readonly proof?: ListProofState | undefined;
  readonly staleAfterHours: StaleAfterHours;
}

/**
 * SQL: company `c` has such a list. A list without a walk was never proved. A value, not EXISTS
 * (docs/internals/planner.md).
 */
export function hasListLike({ resources, state, proof, staleAfterHours }: ListFilter): Prisma.Sql {
  const conditions = [
    ...(state === undefined ? [] : [Prisma.sql`${stateOf(staleAfterHours)} = ${state}`]),
    ...(proof === undefined ? [] : [Prisma.sql`${proofOf(staleAfterHours)} = ${proof}`]),
  ];
  const isLike = conditions.length === 0 ? Prisma.sql`l.environment IS NOT NULL` : Prisma.join(conditions, ' AND ');
  return Prisma.sql`COALESCE((
    SELECT TRUE FROM unnest(${resources}::text[]) AS asked(resource)
    LEFT JOIN ${LIST}
    LEFT JOIN ${NEWEST}
    WHERE ${isLike} LIMIT 1), FALSE)`;
}
