// Looks for the trouble that issues are made of: a row for each company and cause. Reads many tables, and locks nothing. The sweep (issues.ts) groups
// the rows; the companies of one issue are read by the same statement, so that both agree.
import type { Environment } from '../../core/company.js';
import { ISSUE_STATES, type IssueState } from '../../core/issue-causes.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import { Prisma } from '../../generated/prisma/client.js';
import { IS_OURS } from './installation.js';
import { proofOf } from './list-states.js';
import { failedNightExports } from './night-exports.js';
import { WAS_TRIED } from './notifications.js';
import { REFRESH_FAILS } from './put-off-tokens.js';
import { A_QUEUE_WAS_STOPPED } from './queue-stops.js';
import { IS_OLDER_THAN_OPENING } from './refresh-breakers.js';
import { nearlyFullLists } from './schema-columns.js';
import { lacksFirstProof, REJECTS_ALL } from './unproved-lists.js';
import { NIGHTS_LEFT } from './walks.js';
import { WEBHOOK_FAILS } from './webhook.js';
import { A_WORKER_LIVES } from './workers.js';

/** Errors of walks whose cause is an issue of its own. */
const SHOWN_OTHERWISE = [
  'reauthorization_required',
  'access_token_refused',
  'database_copied',
  'installation_detached',
  'tokens_held',
];

/** A list may go without a proof for a night or two, if it changes a lot. */
const UNVERIFIED_DAYS = 3;
/** An issue of misfits ends by itself: people correct the queries that read the values, and Muster cannot see that. */
const MISFIT_DAYS = 7;
/** The states that say why a list is late. Every error code of a walk says so, too. */
const STATES_THAT_DELAY: ReadonlySet<string> = new Set<IssueState>([
  'deletions_held',
  'list_unverified',
  'token_put_off',
  'tokens_held',
  'database_copied',
  'no_worker',
  'budget_short',
]);
const DELAYS_NOTHING = Object.keys(ISSUE_STATES).filter((state) => !STATES_THAT_DELAY.has(state));

/** Hysteresis: `budget_short` ends only once the estimate is below this share of the time, so that a fluctuating estimate does not reopen it. */
const ENOUGH = 0.8;

export interface IssueSearch {
  /** The lists of the catalogue. Others are no longer walked. */
  readonly resources: readonly string[];
  /** The lists that are exported after each night. */
  readonly exported: readonly string[];
  readonly staleAfterHours: StaleAfterHours;
  /** The configured environments: trouble of the whole installation is an issue of each of them, even without companies. */
  readonly environments: readonly Environment[];
  /** A webhook is set, so that its last deliveries matter. */
  readonly hasWebhook: boolean;
  /** This process works on the queue, so a worker lives, whether or not `muster.workers` has it. */
  readonly isWorker: boolean;
  /** The time until the next night begins. */
  readonly secondsLeft: number;
  /** The night has just begun: the estimate is not good enough yet to say that it is too short. */
  readonly isNightYoung: boolean;
}

/** The lists of active companies, with the error code of those whose newest walk that ended has failed. */
function listsOf({ resources, staleAfterHours }: IssueSearch): Prisma.Sql {
  return Prisma.sql`
    SELECT c.environment, c.company_id, asked.resource, l.unverified_since, l.unavailable_since, ${proofOf(staleAfterHours)} AS proof, ended.code,
      ${lacksFirstProof(staleAfterHours)} OR ${REJECTS_ALL} AS never_worked
    FROM muster.connections c CROSS JOIN unnest(${resources}::text[]) AS asked(resource)
    LEFT JOIN muster.lists l ON l.environment = c.environment AND l.company_id = c.company_id AND l.resource = asked.resource
    LEFT JOIN LATERAL (
      SELECT CASE WHEN w.status = 'failed' THEN COALESCE(w.error->>'code', 'internal_error') END AS code FROM muster.walks w
      WHERE w.environment = c.environment AND w.company_id = c.company_id AND w.resource = asked.resource
        AND w.status IN ('succeeded', 'failed') AND w.kind = 'sync' AND w.finished_at >= c.created_at
      ORDER BY w.finished_at DESC LIMIT 1) ended ON TRUE
    WHERE c.status = 'active'`;
}

/** Finds a row for each company and cause: cause, environment, resource, company_id. Reads the CTEs `list` and `short`. */
function foundBy({ exported, resources, environments, isWorker, hasWebhook }: IssueSearch): Prisma.Sql {
  return Prisma.sql`
    SELECT code AS cause, environment, resource, company_id FROM list WHERE code <> ALL(${SHOWN_OTHERWISE}::text[])
    UNION ALL SELECT 'list_late', environment, resource, company_id FROM list l
    WHERE proof = 'late'
    UNION ALL SELECT 'never_proved', environment, resource, company_id FROM list WHERE never_worked
    UNION ALL SELECT 'list_unverified', environment, resource, company_id FROM list
    WHERE unverified_since < now() - ${UNVERIFIED_DAYS}::int * interval '1 day'
    UNION ALL SELECT 'list_unavailable', environment, resource, company_id FROM list JOIN (
      SELECT environment, resource FROM list GROUP BY environment, resource
      HAVING count(*) > 1 AND bool_and(unavailable_since IS NOT NULL)) nowhere USING (environment, resource)
    UNION ALL SELECT 'reauthorization_required', environment, NULL, company_id FROM muster.connections
    WHERE status = 'reauthorization_required'
    UNION ALL SELECT 'database_copied', environment, NULL, company_id FROM muster.connections
    WHERE NOT ${IS_OURS} AND NOT (SELECT is_detached FROM muster.installation)
    UNION ALL SELECT 'tokens_held', environment, NULL, company_id FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
    JOIN muster.refresh_breakers b USING (environment) WHERE ${IS_OLDER_THAN_OPENING} AND c.reauthorization_reason IS NULL
    UNION ALL SELECT 'token_put_off', environment, NULL, company_id FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
    WHERE ${REFRESH_FAILS} AND c.reauthorization_reason IS NULL
    UNION ALL SELECT 'deletions_held', environment, resource, company_id FROM muster.holds WHERE status = 'open'
    UNION ALL SELECT 'token_quarantined', environment, NULL, company_id FROM muster.quarantined_tokens
    UNION ALL SELECT 'schema_misfit', environment, resource, company_id FROM muster.schema_misfits
    WHERE last_seen_at > now() - ${MISFIT_DAYS}::int * interval '1 day'
    UNION ALL SELECT 'many_keys', environment, resource, company_id FROM muster.schema_resources JOIN muster.lists USING (resource)
    WHERE keys_left_out_at > now() - ${MISFIT_DAYS}::int * interval '1 day' OR resource IN (${nearlyFullLists()})
    UNION ALL SELECT 'export_failed', environment, resource, company_id FROM (${failedNightExports(exported)}) export
    UNION ALL SELECT 'privacy_rewrite_pending', environment, resource, company_id
    FROM muster.lists JOIN muster.connections c USING (environment, company_id)
    WHERE privacy_stage IS NOT NULL AND (privacy_stage = 'rewrite' OR c.status = 'active') AND resource = ANY(${resources}::text[])
    UNION ALL SELECT 'privacy_rule_unmatched', environment, resource, company_id FROM muster.lists
    WHERE unmatched_rules <> '{}' AND resource = ANY(${resources}::text[])
    UNION ALL SELECT 'mirror_differs', environment, resource, company_id FROM muster.second_readings WHERE faults > 0
    UNION ALL SELECT 'budget_short', environment, NULL, company_id FROM muster.runs JOIN short USING (environment)
    WHERE status IN ('queued', 'running')
    UNION ALL SELECT 'no_worker', environment, NULL, company_id FROM ${everywhere(environments)}
    WHERE NOT ${isWorker}::boolean AND NOT ${A_WORKER_LIVES}
    UNION ALL SELECT 'queue_stopped', environment, NULL, company_id FROM ${everywhere(environments)} WHERE ${A_QUEUE_WAS_STOPPED}
    UNION ALL SELECT 'webhook_failing', environment, NULL, company_id FROM muster.notifications
    WHERE ${hasWebhook}::boolean AND ${WEBHOOK_FAILS} AND status IN ('pending', 'failed') AND ${WAS_TRIED}`;
}

/** Every company, and each configured environment that has none. */
function everywhere(environments: readonly Environment[]): Prisma.Sql {
  return Prisma.sql`unnest(${environments}::text[]) AS configured(environment) FULL JOIN muster.connections USING (environment)`;
}

/** Environments whose runs will not end before the next night begins. An unknown estimate changes nothing. */
function shortBudgets({ secondsLeft, isNightYoung }: IssueSearch): Prisma.Sql {
  return Prisma.sql`
    SELECT night.environment FROM ${NIGHTS_LEFT}
    LEFT JOIN current ON current.environment = night.environment AND current.cause = 'budget_short'
    WHERE CASE WHEN current.id IS NULL THEN NOT ${isNightYoung}::boolean AND night.seconds > ${secondsLeft}::float8
      ELSE COALESCE(night.seconds > ${secondsLeft * ENOUGH}::float8, TRUE) END`;
}

/**
 * SQL: the CTE `each`, a row for each company and cause, and the CTEs that it reads. A late list belongs to `list_late` only where no other issue of the
 * list or of its company says why; `delays` marks the rows whose companies have a list that is late for their reason. Windows and no joins: the planner
 * knows no sizes of CTEs.
 */
export function eachCompanyWithTrouble(search: IssueSearch): Prisma.Sql {
  return Prisma.sql`
    current AS (
      SELECT id, cause, environment, resource, told, late_told, late AS was_late FROM muster.issues WHERE status = 'ongoing'
    ), list AS (${listsOf(search)}
    ), short AS MATERIALIZED (${shortBudgets(search)}
    ), trouble AS (
      SELECT f.*, cause <> ALL(${DELAYS_NOTHING}::text[]) AS may_delay FROM (${foundBy(search)}) f
    ), weighed AS (
      SELECT *, bool_or(cause = 'list_late') OVER of_list AS list_is_late, bool_or(cause = 'list_late') OVER of_company AS one_is_late,
        bool_or(may_delay) OVER of_list OR bool_or(may_delay AND resource IS NULL) OVER of_company AS is_explained
      FROM trouble WINDOW of_list AS (PARTITION BY environment, company_id, resource), of_company AS (PARTITION BY environment, company_id)
    ), each AS (
      SELECT cause, environment, resource, company_id, may_delay AND CASE WHEN resource IS NULL THEN one_is_late ELSE list_is_late END AS delays
      FROM weighed WHERE cause <> 'list_late' OR NOT is_explained
    )`;
}
