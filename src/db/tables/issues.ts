// muster.issues holds the trouble that a person should see. A row is one cause (an error code or a state) in an environment, of a resource or of whole
// companies. One sweep at a time writes the table, under the lock of that name. It locks nothing else, and then inserts into notifications.
//
//   none -> ongoing      the first company has the trouble
//   ongoing -> resolved  no company has it any more
//   resolved -> ongoing  it comes back within a day; later it is another issue, with a row of its own
import type { Environment } from '../../core/company.js';
import { ERROR_CODES, MusterError } from '../../core/errors.js';
import { ISSUE_STATES } from '../../core/issue-causes.js';
import { type Issue, Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { inTransaction, type Transaction } from '../connection/transaction.js';
import { BY_INDEX } from '../statements/by-index.js';
import { newestFirst, type Page, type PageQuery, pageBySeq } from '../statements/cursor.js';
import { IS_OURS } from './installation.js';
import { isOlderThan } from './lists.js';
import { failedNightExports } from './night-exports.js';
import { TELL_OF_ISSUES, WAS_TRIED } from './notifications.js';
import { REFRESH_FAILS } from './put-off-tokens.js';
import { UNNAMED } from './quarantined-tokens.js';
import { A_QUEUE_WAS_STOPPED } from './queue-stops.js';
import { IS_OLDER_THAN_OPENING } from './refresh-breakers.js';
import { nearlyFullLists } from './schema-columns.js';
import type { SweepLock } from './sweep-lock.js';
import { lacksFirstProof, REJECTS_ALL } from './unproved-lists.js';
import { NIGHTS_LEFT } from './walks.js';
import { WEBHOOK_FAILS } from './webhook.js';
import { A_WORKER_LIVES } from './workers.js';

export const ISSUE_SEVERITIES = ['action', 'warning'] as const;
export const ISSUE_STATUSES = ['ongoing', 'resolved'] as const;
export type IssueStatus = (typeof ISSUE_STATUSES)[number];

export interface IssueRow extends Omit<Issue, 'environment' | 'severity' | 'status'> {
  readonly environment: Environment;
  /** `action`: it stays until a person acts. `warning`: it may pass. */
  readonly severity: (typeof ISSUE_SEVERITIES)[number];
  readonly status: IssueStatus;
}

/** States and errors that may pass. */
const WARNINGS: readonly string[] = [
  ...Object.entries(ISSUE_STATES).flatMap(([state, { severity }]) => (severity === 'warning' ? [state] : [])),
  ...Object.entries(ERROR_CODES).flatMap(([code, { retryable }]) =>
    retryable && !Object.hasOwn(ISSUE_STATES, code) ? [code] : [],
  ),
];

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
/** An issue that comes back sooner is the same one. */
const REOPENED_WITHIN_DAYS = 1;
const SAMPLE = 5;
/** A notification is repeated once an issue has so many times the companies of the last one: one late list must not hide a thousand. */
const GROWTH_NOTIFIED = 10;
/** Hysteresis: `budget_short` ends only once the estimate is below this share of the time, so that a fluctuating estimate does not reopen it. */
const ENOUGH = 0.8;

export interface IssueSearch {
  /** The lists of the catalogue. Others are no longer walked. */
  readonly resources: readonly string[];
  /** The lists that are exported after each night. */
  readonly exported: readonly string[];
  readonly staleAfterHours: number;
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

/** An issue that has begun or ended, or has grown so much that its notification is repeated. */
export type IssueNews = Pick<IssueRow, 'id' | 'cause' | 'environment' | 'resource' | 'companies' | 'status'>;

/**
 * Looks for every cause in one statement, and opens, renews and resolves the issues accordingly. Returns the news; none where another process holds
 * the lock. The statement uses indexes, with a few lookups a list.
 */
export function reconcileIssues(db: Database, lock: Pick<SweepLock, 'take'>, search: IssueSearch): Promise<IssueNews[]> {
  return inTransaction(db, async (tx) => {
    if (!(await lock.take(tx))) return [];
    await tx.$queryRaw`SELECT ${BY_INDEX}`;
    return tx.$queryRaw<IssueNews[]>(reconciliation(search));
  });
}

/** The lists of active companies, with the error code of those whose newest walk that ended has failed. */
export function listsOf({ resources, staleAfterHours }: IssueSearch): Prisma.Sql {
  return Prisma.sql`
    SELECT c.environment, c.company_id, asked.resource, l.last_verified_at, l.unverified_since, l.unavailable_since, ended.code,
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
export function foundBy({ staleAfterHours, exported, resources, environments, isWorker, hasWebhook }: IssueSearch): Prisma.Sql {
  return Prisma.sql`
    SELECT code AS cause, environment, resource, company_id FROM list WHERE code <> ALL(${SHOWN_OTHERWISE}::text[])
    UNION ALL SELECT 'list_late', environment, resource, company_id FROM list l WHERE ${isOlderThan(staleAfterHours)}
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

/** `short` is materialized: before a night, the statistics know of no runs under way, and the planner would compute it again for each run. */
function reconciliation(search: IssueSearch): Prisma.Sql {
  const isSame = Prisma.sql`i.cause = f.cause AND i.environment = f.environment AND i.resource IS NOT DISTINCT FROM f.resource`;
  return Prisma.sql`
    WITH current AS (
      SELECT id, cause, environment, resource, told FROM muster.issues WHERE status = 'ongoing'
    ), list AS (${listsOf(search)}
    ), short AS MATERIALIZED (${shortBudgets(search)}
    ), found AS (
      SELECT cause, environment, resource, count(DISTINCT company_id)::int AS companies,
        CASE WHEN cause = ANY(${WARNINGS}::text[]) THEN 'warning' ELSE 'action' END AS severity,
        COALESCE((array_agg(DISTINCT company_id::text) FILTER (WHERE company_id <> ${UNNAMED}::uuid))[1:${SAMPLE}::int], '{}') AS sample
      FROM (${foundBy(search)}) each GROUP BY cause, environment, resource
    ), known AS (
      SELECT i.id, i.told, f.* FROM found f JOIN current i ON ${isSame}
    ), past AS (
      SELECT DISTINCT ON (i.cause, i.environment, i.resource) i.id, f.* FROM found f JOIN muster.issues i ON ${isSame}
      WHERE i.status = 'resolved' AND i.resolved_at > now() - ${REOPENED_WITHIN_DAYS}::int * interval '1 day'
        AND NOT EXISTS (SELECT FROM current i WHERE ${isSame})
      ORDER BY i.cause, i.environment, i.resource, i.resolved_at DESC
    ), renewed AS (
      UPDATE muster.issues i SET companies = f.companies, severity = f.severity, sample = f.sample, last_seen_at = now(),
        told = CASE WHEN f.companies >= greatest(f.told, 1) * ${GROWTH_NOTIFIED}::int THEN f.companies ELSE f.told END
      FROM known f WHERE i.id = f.id
      RETURNING i.id, i.cause, i.environment, i.resource, i.companies, i.status, i.told > f.told AS grew
    ), reopened AS (
      UPDATE muster.issues i SET companies = f.companies, severity = f.severity, sample = f.sample, last_seen_at = now(),
        told = f.companies, status = 'ongoing', resolved_at = NULL
      FROM past f WHERE i.id = f.id RETURNING i.id, i.cause, i.environment, i.resource, i.companies, i.status
    ), opened AS (
      INSERT INTO muster.issues (cause, environment, resource, severity, companies, sample, told)
      SELECT cause, environment, resource, severity, companies, sample, companies FROM found f
      WHERE NOT EXISTS (SELECT FROM current i WHERE ${isSame}) AND NOT EXISTS (SELECT FROM past i WHERE ${isSame})
      ORDER BY cause, environment, resource
      ON CONFLICT DO NOTHING RETURNING id, cause, environment, resource, companies, status
    ), resolved AS (
      UPDATE muster.issues i SET status = 'resolved', resolved_at = now()
      FROM current WHERE i.id = current.id AND NOT EXISTS (SELECT FROM found f WHERE ${isSame})
      RETURNING i.id, i.cause, i.environment, i.resource, i.companies, i.status
    ), news AS (
      SELECT id, cause, environment, resource, companies, status FROM renewed WHERE grew
      UNION ALL SELECT * FROM reopened UNION ALL SELECT * FROM opened UNION ALL SELECT * FROM resolved
    ), ${TELL_OF_ISSUES}
    SELECT * FROM news`;
}

export type IssueFilter = Partial<Pick<IssueRow, 'status' | 'environment'>> & PageQuery;

/** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
export async function listIssues(db: Database, filter: IssueFilter): Promise<Page<IssueRow>> {
  return pageBySeq((await db.prisma.issue.findMany(newestFirst(filter))) as IssueRow[], filter);
}

/** Throws `issue_not_found`. */
export async function findIssue(db: Database, { id }: { id: string }): Promise<IssueRow> {
  const row = await db.prisma.issue.findUnique({ where: { id } });
  if (!row) throw new MusterError('issue_not_found', `There is no issue ${id}: GET /api/issues lists them.`);
  return row as IssueRow;
}

export async function countOngoingIssues(
  db: Pick<Transaction, '$queryRaw'>,
  { environment = null }: { environment?: Environment | null | undefined } = {},
): Promise<number> {
  const [row] = await db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM muster.issues
    WHERE status = 'ongoing' AND (${environment}::text IS NULL OR environment = ${environment})`;
  return row!.count;
}

export function countIssuesByCause(
  db: Pick<Transaction, '$queryRaw'>,
): Promise<(Pick<IssueRow, 'severity' | 'cause' | 'environment'> & { readonly count: number })[]> {
  return db.$queryRaw`
    SELECT severity, cause, environment, count(*)::int AS count FROM muster.issues WHERE status = 'ongoing'
    GROUP BY severity, cause, environment`;
}

/** Removes issues that were resolved more than `days` ago, at most `limit` of them. Returns how many. */
export function removeOldIssues(db: Database, { days, limit }: { days: number; limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.issues WHERE id IN (
      SELECT id FROM muster.issues
      WHERE status = 'resolved' AND resolved_at < now() - ${days}::int * interval '1 day' LIMIT ${limit}::int)`;
}
