// muster.notifications: state changes to send, and the outcome of their delivery. A row is inserted in the transaction that makes the
// change, after all other locks; afterwards only delivery writes it, one statement at a time. All times are the database's.
import { type CompanyKey, ENVIRONMENTS, type Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { type Notification, Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { type Page, type PageQuery, pageBySeq } from '../statements/cursor.js';
import { isGiven, newestRows, type OfCompanies, readNewest } from '../statements/newest-page.js';

/** docs/notifications.md says when each is sent. The names are permanent: rename none. */
export const EVENT_TYPES = [
  'reauthorization_required',
  'authorization_restored',
  'run_failed',
  'run_recovered',
  'deletions_held',
  'list_late',
  'list_unverified',
  'budget_short',
  'schema_changed',
  'export_failed',
  'no_worker',
  'queue_stopped',
  'never_proved',
  'test',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Events of an issue, which concern many companies at once: each has the name of the issue's cause. */
const ISSUE_EVENTS: readonly EventType[] = [
  'list_late',
  'list_unverified',
  'budget_short',
  'export_failed',
  'no_worker',
  'queue_stopped',
  'never_proved',
];

/** Facts of an event: codes, names, ids and counts of Muster's own, never a text of the service. Stored as they are sent. */
export interface EventDetails {
  /** An error code, or why a company must authorize again. */
  readonly reason?: string;
  readonly run_id?: string;
  readonly resource?: string;
  readonly count?: number;
  readonly issue_id?: string;
  readonly issue_status?: 'ongoing' | 'resolved';
  /** The cause of the issue. */
  readonly cause?: string;
  /** New columns of the typed view, and columns with their first value of another type. */
  readonly columns_added?: number;
  readonly columns_with_misfits?: number;
}

/** Why a notification was not delivered; stored with it and shown to operators. */
export interface DeliveryError {
  /** `answered`: with a status other than 2xx. `expired`: no attempt was made for a day. */
  readonly code: 'answered' | 'timeout' | 'unreachable' | 'expired';
  readonly status?: number;
  /** The operating system's name of the error, as ECONNREFUSED. */
  readonly cause?: string;
}

export const NOTIFICATION_STATUSES = ['pending', 'delivered', 'failed'] as const;
export type NotificationStatus = (typeof NOTIFICATION_STATUSES)[number];

export interface NotificationRow extends Omit<Notification, 'environment' | 'type' | 'status' | 'details' | 'lastError'> {
  readonly environment: Environment;
  readonly type: EventType;
  readonly status: NotificationStatus;
  readonly details: EventDetails;
  readonly lastError: DeliveryError | null;
}

/**
 * `change` names the state change: it is recorded once, however often it is seen. `companyId` is null if the event concerns many
 * companies.
 */
export async function insertNotification(
  tx: Transaction,
  row: { environment: Environment; companyId: string | null; type: EventType; change: string; details: EventDetails },
): Promise<void> {
  const { environment, companyId, type, change, details } = row;
  await tx.notification.createMany({
    data: { environment, companyId, type, change, details: { ...details } },
    skipDuplicates: true,
  });
}

/** Stores a test event, so that a person sees whether it arrives. */
export async function insertTestNotification(
  db: Database,
  { environment }: { environment: Environment },
): Promise<NotificationRow> {
  const data = { environment, type: 'test', change: `test ${crypto.randomUUID()}` };
  return (await db.prisma.notification.create({ data })) as unknown as NotificationRow;
}

/** Whether people were told that a company's runs fail, since it was onboarded: earlier events do not concern it. */
const IS_KNOWN_TO_FAIL = Prisma.sql`COALESCE((
  SELECT n.type FROM muster.notifications n LEFT JOIN muster.connections c USING (environment, company_id)
  WHERE n.environment = ended.environment AND n.company_id = ended.company_id AND n.type IN ('run_failed', 'run_recovered')
    AND (c.created_at IS NULL OR n.occurred_at >= c.created_at)
  ORDER BY n.seq DESC LIMIT 1), '') = 'run_failed'`;

/** The event at the end of a run, if any: the company's runs fail now, or they succeed again. */
export type RunNews = Extract<EventType, 'run_failed' | 'run_recovered'>;

/** SQL: records events of the runs in `ended`, with the codes of their errors, unless people know already. */
export function tellOfEnd(type: RunNews): Prisma.Sql {
  return Prisma.sql`told AS (
    INSERT INTO muster.notifications (environment, company_id, type, change, details)
    SELECT environment, company_id, ${type}::text, ${type}::text || ' ' || id,
      jsonb_strip_nulls(jsonb_build_object('run_id', id, 'reason', ended.error->>'code'))
    FROM ended WHERE (${type}::text = 'run_failed') <> (${IS_KNOWN_TO_FAIL})
    ON CONFLICT (change) DO NOTHING)`;
}

/**
 * SQL: records events of the issues in `news` (id, cause, environment, resource, companies, status, event), except issues that people
 * hear of company by company. `event` is the cause, or `list_late` where lists are late for this cause.
 */
export const TELL_OF_ISSUES = Prisma.sql`told AS (
  INSERT INTO muster.notifications (environment, company_id, type, change, details)
  SELECT environment, NULL, event, concat_ws(' ', event, id, status, now()),
    jsonb_strip_nulls(jsonb_build_object('issue_id', id, 'issue_status', status, 'cause', cause, 'resource', resource, 'count', companies))
  FROM news WHERE event = ANY(${ISSUE_EVENTS}::text[])
  ON CONFLICT (change) DO NOTHING)`;

/** The newest event of these types since the company was onboarded: earlier events do not concern it. */
export async function lastEventOf(
  tx: Transaction,
  { environment, companyId, types }: CompanyKey & { types: readonly EventType[] },
): Promise<{ id: string; type: EventType } | undefined> {
  const [last] = await tx.$queryRaw<{ id: string; type: EventType }[]>`
    SELECT n.id, n.type FROM muster.notifications n LEFT JOIN muster.connections c USING (environment, company_id)
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND n.type = ANY(${types}::text[])
      AND (c.created_at IS NULL OR n.occurred_at >= c.created_at)
    ORDER BY n.seq DESC LIMIT 1`;
  return last;
}

export type NotificationFilter = Partial<Pick<NotificationRow, 'status' | 'type' | 'environment'> & CompanyKey> &
  PageQuery &
  OfCompanies;

/** Newest first. Throws `invalid_request` for a cursor that no response gave. */
export async function listNotifications(db: Database, filter: NotificationFilter): Promise<Page<NotificationRow>> {
  const { status, type, environment, companyId, companies, limit, cursor } = filter;
  const page = { table: 'notifications', companies, limit: limit + 1, cursor } as const;
  const given = [...isGiven('environment', environment), ...isGiven('type', type), ...isGiven('status', status)];
  const choices = {
    environment: environment ? [environment] : ENVIRONMENTS,
    type: type ? [type] : EVENT_TYPES,
    status: status ? [status] : NOTIFICATION_STATUSES,
  };
  // A company has few enough notifications to scan.
  const byCompany = companyId !== undefined && [...isGiven('company_id', companyId, 'uuid'), ...given];
  const newest = newestRows({ ...page, ...(byCompany ? { conditions: byCompany } : given.length > 0 && { choices }) });
  const rows = await readNewest(
    db,
    { companies },
    (tx) => tx.$queryRaw<NotificationRow[]>`
    SELECT n.id, n.seq, n.type, n.change, n.environment, n.company_id AS "companyId", n.occurred_at AS "occurredAt", n.details, n.status, n.attempts,
      n.next_attempt_at AS "nextAttemptAt", n.delivered_at AS "deliveredAt", n.last_error AS "lastError"
    FROM (${newest}) n ORDER BY n.seq DESC`,
  );
  return pageBySeq(rows, { limit, cursor });
}

/** Makes it due again with all its attempts, whatever its outcome. Throws `notification_not_found`. */
export async function resetNotification(db: Database, { id }: { id: string }): Promise<NotificationRow> {
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET status = 'pending', attempts = 0, next_attempt_at = now(), delivered_at = NULL, last_error = NULL
    WHERE id = ${id}::uuid`;
  const row = await db.prisma.notification.findUnique({ where: { id } });
  if (!row) throw new MusterError('notification_not_found', `There is no notification ${id}: GET /api/notifications lists them.`);
  return row as unknown as NotificationRow;
}

/** SQL: it was sent, or will be. Excludes notifications that expired because no webhook was configured for a day. */
export const WAS_TRIED = Prisma.sql`last_error->>'code' IS DISTINCT FROM 'expired'`;

/** Makes all undelivered ones due again, of one environment or of both. Returns how many there are. */
export function resetUndelivered(
  db: Database,
  { environment = null }: { environment?: Environment | null | undefined },
): Promise<number> {
  return db.prisma.$executeRaw`
    UPDATE muster.notifications SET status = 'pending', attempts = 0, next_attempt_at = now(), last_error = NULL
    WHERE status IN ('pending', 'failed') AND last_error IS NOT NULL AND ${WAS_TRIED}
      AND (${environment}::text IS NULL OR environment = ${environment})`;
}

/** An attempt at a delivery. `attempts` counts this one, and names its claim. */
export type DeliveryClaim = Pick<Notification, 'id' | 'attempts'>;

/** A notification that may be sent now, with everything that its text needs. */
export interface ClaimedNotification
  extends DeliveryClaim,
    Pick<NotificationRow, 'type' | 'environment' | 'companyId' | 'occurredAt' | 'details'> {
  readonly companyName: string | null;
  /** The company waits for a person to authorize again, now. */
  readonly mustAuthorize: boolean;
}

/**
 * How long a claim excludes other workers: longer than an attempt takes. After a crash in between it is sent again with the same
 * id: twice is better than never.
 */
const CLAIM_SECONDS = 30;

/** Oldest first. */
export function findDueNotifications(db: Database, { limit }: { limit: number }): Promise<DeliveryClaim[]> {
  return db.prisma.$queryRaw`
    SELECT id, attempts FROM muster.notifications WHERE status = 'pending' AND next_attempt_at <= now()
    ORDER BY next_attempt_at LIMIT ${limit}::int`;
}

/** Undefined when it is not due, or another worker sends it. */
export async function claimNotification(db: Database, { id }: { id: string }): Promise<ClaimedNotification | undefined> {
  const [claimed] = await db.prisma.$queryRaw<ClaimedNotification[]>`
    UPDATE muster.notifications n
    SET attempts = attempts + 1, next_attempt_at = now() + ${CLAIM_SECONDS}::int * interval '1 second'
    WHERE id = ${id}::uuid AND status = 'pending' AND next_attempt_at <= now()
    RETURNING id, attempts, type, environment, company_id::text AS "companyId", occurred_at AS "occurredAt", details,
      (SELECT name FROM mirror.companies m WHERE m.environment = n.environment AND m.company_id = n.company_id) AS "companyName",
      EXISTS (SELECT FROM muster.connections c WHERE c.environment = n.environment AND c.company_id = n.company_id
              AND c.status = 'reauthorization_required') AS "mustAuthorize"`;
  return claimed;
}

/** Stores that the receiver has taken it, whichever worker has the claim now. */
export async function markDelivered(db: Database, { id }: { id: string }): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET status = 'delivered', delivered_at = now(), next_attempt_at = NULL, last_error = NULL
    WHERE id = ${id}::uuid AND status <> 'delivered'`;
}

/** Stores that the claimed attempt failed. The next one is made in `delaySeconds`, or never. */
export async function markRefused(
  db: Database,
  { id, attempts, error, delaySeconds }: DeliveryClaim & { error: DeliveryError; delaySeconds: number | null },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET status = CASE WHEN ${delaySeconds}::float8 IS NULL THEN 'failed' ELSE 'pending' END,
      next_attempt_at = now() + ${delaySeconds}::float8 * interval '1 second', last_error = ${JSON.stringify(error)}::jsonb
    WHERE id = ${id}::uuid AND attempts = ${attempts}::int AND status = 'pending'`;
}

/** Stores that the claimed attempt was interrupted before its outcome was known: it does not count, and any worker may send at once. */
export async function releaseNotification(db: Database, { id, attempts }: DeliveryClaim): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET attempts = attempts - 1, next_attempt_at = now()
    WHERE id = ${id}::uuid AND attempts = ${attempts}::int AND status = 'pending'`;
}

/**
 * Expires notifications that were due for a day without an attempt because no webhook was configured: a new webhook should
 * hear of today, not of last month.
 */
export async function expireNotifications(db: Database): Promise<void> {
  const expired: DeliveryError = { code: 'expired' };
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET status = 'failed', next_attempt_at = NULL, last_error = ${JSON.stringify(expired)}::jsonb
    WHERE status = 'pending' AND next_attempt_at < now() - interval '1 day'`;
}

/**
 * Removes notifications older than `days`, at most `limit` of them, but not the newest of each type of a company: it says how the company
 * is now. The state of an issue is stored elsewhere.
 */
export function removeOldNotifications(db: Database, { days, limit }: { days: number; limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.notifications WHERE id IN (SELECT n.id FROM muster.notifications n
    WHERE status <> 'pending' AND occurred_at < now() - ${days}::int * interval '1 day' AND (n.company_id IS NULL OR EXISTS (
      SELECT FROM muster.notifications newer WHERE newer.environment = n.environment AND newer.company_id = n.company_id
        AND newer.type = n.type AND newer.seq > n.seq)) LIMIT ${limit}::int)`;
}

/** Notifications that were not delivered. */
export function countUndelivered(db: Pick<Transaction, '$queryRaw'>): Promise<{ status: NotificationStatus; count: number }[]> {
  return db.$queryRaw`
    SELECT s.status, count(n.id)::int AS count FROM (VALUES ('pending'), ('failed')) AS s(status)
    LEFT JOIN muster.notifications n ON n.status = s.status AND n.status IN ('pending', 'failed') GROUP BY s.status`;
}
