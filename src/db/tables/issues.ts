// muster.issues holds the trouble that a person should see. A row is one cause (an error code or a state) in an environment, of a resource or of whole
// companies. One sweep at a time writes the table, under the lock of that name. It locks nothing else, and then inserts into notifications.
//
//   none -> ongoing      the first company has the trouble
//   ongoing -> resolved  no company has it any more
//   resolved -> ongoing  it comes back within a day; later it is another issue, with a row of its own
//
// A person may snooze an ongoing issue: it stays ongoing, and is only shown elsewhere.
import type { Environment } from '../../core/company.js';
import { ERROR_CODES, MusterError } from '../../core/errors.js';
import { ISSUE_STATES } from '../../core/issue-causes.js';
import { type Issue, Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { inTransaction, type Transaction } from '../connection/transaction.js';
import { BY_INDEX } from '../statements/by-index.js';
import { newestFirst, type Page, type PageQuery, pageBySeq } from '../statements/cursor.js';
import { eachCompanyWithTrouble, type IssueSearch } from './issue-search.js';
import { TELL_OF_ISSUES } from './notifications.js';
import { UNNAMED } from './quarantined-tokens.js';
import type { SweepLock } from './sweep-lock.js';

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

/** An issue that comes back sooner is the same one. */
const REOPENED_WITHIN_DAYS = 1;
const SAMPLE = 5;
/** A notification is repeated once an issue has so many times the companies of the last one: one late list must not hide a thousand. */
const GROWTH_NOTIFIED = 10;
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

/**
 * Everything in one statement. `short` is materialized: before a night, the statistics know of no runs under way, and the planner would compute it again
 * for each run. The snooze is judged by the row as it is when it is updated, since a person may set it during the statement.
 */
function reconciliation(search: IssueSearch): Prisma.Sql {
  const isSame = Prisma.sql`i.cause = f.cause AND i.environment = f.environment AND i.resource IS NOT DISTINCT FROM f.resource`;
  const columns = Prisma.sql`i.id, i.cause, i.environment, i.resource, i.companies, i.status, i.late`;
  const facts = Prisma.sql`companies = f.companies, severity = f.severity, sample = f.sample, late = f.late, last_seen_at = now()`;
  const ofSnooze = (column: string) =>
    Prisma.sql`${Prisma.raw(column)} = CASE WHEN ${STAYS_SNOOZED} THEN i.${Prisma.raw(column)} END`;
  return Prisma.sql`
    WITH ${eachCompanyWithTrouble(search)}, found AS (
      SELECT cause, environment, resource, count(DISTINCT company_id)::int AS companies,
        count(DISTINCT company_id) FILTER (WHERE delays)::int AS late,
        CASE WHEN cause = ANY(${WARNINGS}::text[]) THEN 'warning' ELSE 'action' END AS severity,
        COALESCE((array_agg(DISTINCT company_id::text) FILTER (WHERE company_id <> ${UNNAMED}::uuid))[1:${SAMPLE}::int], '{}') AS sample
      FROM each GROUP BY cause, environment, resource
    ), known AS (
      SELECT i.id, i.told, i.late_told, i.was_late, f.* FROM found f JOIN current i ON ${isSame}
    ), past AS (
      SELECT DISTINCT ON (i.cause, i.environment, i.resource) i.id, f.* FROM found f JOIN muster.issues i ON ${isSame}
      WHERE i.status = 'resolved' AND i.resolved_at > now() - ${REOPENED_WITHIN_DAYS}::int * interval '1 day'
        AND NOT EXISTS (SELECT FROM current i WHERE ${isSame})
      ORDER BY i.cause, i.environment, i.resource, i.resolved_at DESC
    ), renewed AS (
      UPDATE muster.issues i SET ${facts},
        told = CASE WHEN ${STAYS_SNOOZED} OR f.companies < greatest(f.told, 1) * ${GROWTH_NOTIFIED}::int THEN f.told ELSE f.companies END,
        late_told = CASE WHEN f.late = 0 THEN 0 WHEN f.late_told = 0 OR f.late >= f.late_told * ${GROWTH_NOTIFIED}::int THEN f.late
          ELSE f.late_told END,
        ${ofSnooze('snoozed_until')}, ${ofSnooze('snooze_reason')}, ${ofSnooze('snoozed_by')}, ${ofSnooze('snoozed_companies')}
      FROM known f WHERE i.id = f.id
      RETURNING ${columns}, i.told > f.told AS grew, i.late_told > f.late_told AS late_grew, f.late_told > 0 AND i.late_told = 0 AS late_ended,
        f.was_late
    ), reopened AS (
      UPDATE muster.issues i SET ${facts}, told = f.companies, late_told = f.late, status = 'ongoing', resolved_at = NULL
      FROM past f WHERE i.id = f.id RETURNING ${columns}
    ), opened AS (
      INSERT INTO muster.issues AS i (cause, environment, resource, severity, companies, sample, told, late, late_told)
      SELECT cause, environment, resource, severity, companies, sample, companies, late, late FROM found f
      WHERE NOT EXISTS (SELECT FROM current i WHERE ${isSame}) AND NOT EXISTS (SELECT FROM past i WHERE ${isSame})
      ORDER BY cause, environment, resource
      ON CONFLICT DO NOTHING RETURNING ${columns}
    ), resolved AS (
      UPDATE muster.issues i SET status = 'resolved', resolved_at = now(), late = 0, late_told = 0
      FROM current WHERE i.id = current.id AND NOT EXISTS (SELECT FROM found f WHERE ${isSame})
      RETURNING ${columns}, current.late_told > 0 AS late_ended, current.was_late
    ), begun AS (
      SELECT * FROM reopened UNION ALL SELECT * FROM opened
    ), news AS (
      SELECT id, cause, environment, resource, companies, status, cause AS event FROM renewed WHERE grew
      UNION ALL SELECT id, cause, environment, resource, companies, status, cause FROM begun
      UNION ALL SELECT id, cause, environment, resource, companies, status, cause FROM resolved
      UNION ALL SELECT id, cause, environment, resource, late, status, 'list_late' FROM renewed WHERE late_grew
      UNION ALL SELECT id, cause, environment, resource, late, status, 'list_late' FROM begun WHERE late > 0
      UNION ALL SELECT id, cause, environment, resource, was_late, 'resolved', 'list_late' FROM renewed WHERE late_ended
      UNION ALL SELECT id, cause, environment, resource, was_late, status, 'list_late' FROM resolved WHERE late_ended
    ), ${TELL_OF_ISSUES}
    SELECT id, cause, environment, resource, companies, status FROM news WHERE event = cause`;
}

/** SQL: a snooze of issue `i` goes on, now that the issue is found as `f`. It ends by its time, or once the issue has become worse. */
const STAYS_SNOOZED = Prisma.sql`COALESCE(i.snoozed_until > now() AND f.companies < greatest(i.snoozed_companies, 1) * ${GROWTH_NOTIFIED}::int
  AND NOT (i.severity = 'warning' AND f.severity = 'action'), FALSE)`;

export interface IssueFilter extends Partial<Pick<IssueRow, 'status' | 'environment'>>, PageQuery {
  /** Unset: both. */
  readonly isSnoozed?: boolean | undefined;
}

/** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
export async function listIssues(db: Database, { isSnoozed, ...filter }: IssueFilter): Promise<Page<IssueRow>> {
  const { where, ...order } = newestFirst(filter);
  const now = new Date();
  const snooze = isSnoozed
    ? { status: 'ongoing', snoozedUntil: { gt: now } }
    : isSnoozed === false && { OR: [{ snoozedUntil: null }, { snoozedUntil: { lte: now } }] };
  return pageBySeq((await db.prisma.issue.findMany({ where: { ...where, ...snooze }, ...order })) as IssueRow[], filter);
}

export interface Snooze {
  readonly until: Date;
  readonly reason: string;
  readonly by: string;
}

/** Snoozes an ongoing issue, or ends its snooze. Throws `issue_not_found`, and `issue_resolved` for an issue that has ended. */
export async function setSnooze(db: Database, id: string, snooze: Snooze | undefined): Promise<IssueRow> {
  const { until = null, reason = null, by = null } = snooze ?? {};
  const changed = await db.prisma.$executeRaw`
    UPDATE muster.issues SET snoozed_until = ${until}::timestamptz, snooze_reason = ${reason}, snoozed_by = ${by},
      snoozed_companies = CASE WHEN ${until}::timestamptz IS NOT NULL THEN companies END
    WHERE id = ${id}::uuid AND status = 'ongoing'`;
  const row = await findIssue(db, { id });
  if (changed === 0) throw new MusterError('issue_resolved', `The issue ${id} has ended: there is nothing to snooze.`);
  return row;
}

/** Throws `issue_not_found`. */
export async function findIssue(db: Database, { id }: { id: string }): Promise<IssueRow> {
  const row = await db.prisma.issue.findUnique({ where: { id } });
  if (!row) throw new MusterError('issue_not_found', `There is no issue ${id}: GET /api/issues lists them.`);
  return row as IssueRow;
}

/** Ongoing issues: those that a person should see now, and those that one has snoozed. */
export async function countOngoingIssues(
  db: Pick<Transaction, '$queryRaw'>,
  { environment = null }: { environment?: Environment | null | undefined } = {},
): Promise<{ readonly open: number; readonly snoozed: number }> {
  const [row] = await db.$queryRaw<{ ongoing: number; snoozed: number }[]>`
    SELECT count(*)::int AS ongoing, count(*) FILTER (WHERE snoozed_until > now())::int AS snoozed FROM muster.issues
    WHERE status = 'ongoing' AND (${environment}::text IS NULL OR environment = ${environment})`;
  return { open: row!.ongoing - row!.snoozed, snoozed: row!.snoozed };
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
