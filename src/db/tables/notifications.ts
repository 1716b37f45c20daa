// muster.notifications: state changes to tell of, and what became of their delivery. A row is inserted in the transaction that makes the
// change, after all other locks; afterwards only delivery writes it, one statement at a time. All times are the database's.
import type { CompanyKey, Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import type { Notification } from '../../generated/prisma/client.js';
import { newestFirst, type Page, type PageQuery, pageBySeq } from '../cursor.js';
import type { Database } from '../database.js';
import type { Transaction } from '../transaction.js';

/** docs/notifications.md says when each is told. The names are kept for good: rename none. */
export const EVENT_TYPES = [
  'reauthorization_required',
  'authorization_restored',
  'run_failed',
  'run_recovered',
  'deletions_held',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Facts of an event: codes, names, ids and counts of ours, never a text of the service. Kept as they are sent. */
export interface EventDetails {
  /** An error code, or why a company must authorize again. */
  readonly reason?: string;
  readonly run_id?: string;
  readonly resource?: string;
  readonly count?: number;
}

/** Why a notification was not taken; kept with it and shown to operators. */
export interface DeliveryError {
  /** `answered`: with another status than 2xx. `expired`: nobody tried for a day. */
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

/** `change` names the state change: the same one is recorded once, whoever sees it how often. */
export async function insertNotification(
  tx: Transaction,
  row: CompanyKey & { type: EventType; change: string; details: EventDetails },
): Promise<void> {
  const { environment, companyId, type, change, details } = row;
  await tx.notification.createMany({
    data: { environment, companyId, type, change, details: { ...details } },
    skipDuplicates: true,
  });
}

/** The newest event of these types since the company was onboarded: an event from before does not concern it. */
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

export type NotificationFilter = Partial<Pick<NotificationRow, 'status' | 'type' | 'environment' | 'companyId'>> & PageQuery;

/** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
export async function listNotifications(db: Database, filter: NotificationFilter): Promise<Page<NotificationRow>> {
  const rows = await db.prisma.notification.findMany(newestFirst(filter));
  return pageBySeq(rows as unknown as NotificationRow[], filter.limit);
}

/** Makes it due once more, with all its attempts, whatever became of it. Throws `notification_not_found`. */
export async function resetNotification(db: Database, { id }: { id: string }): Promise<NotificationRow> {
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET status = 'pending', attempts = 0, next_attempt_at = now(), delivered_at = NULL, last_error = NULL
    WHERE id = ${id}::uuid`;
  const row = await db.prisma.notification.findUnique({ where: { id } });
  if (!row) throw new MusterError('notification_not_found', `There is no notification ${id}: GET /api/notifications lists them.`);
  return row as unknown as NotificationRow;
}

/** An attempt at a delivery. `attempts` counts this one, and names its claim. */
export type DeliveryClaim = Pick<Notification, 'id' | 'attempts'>;

/** A notification that may be sent now, with all that its text needs. */
export interface ClaimedNotification extends DeliveryClaim, CompanyKey, Pick<NotificationRow, 'type' | 'occurredAt' | 'details'> {
  readonly companyName: string | null;
  /** The company waits for a person to authorize again, now. */
  readonly mustAuthorize: boolean;
}

/**
 * How long a claim keeps others away: longer than an attempt takes. After a crash in between it is sent again, with the same
 * id: twice is better than never.
 */
const CLAIM_SECONDS = 30;

/** Oldest first. */
export function findDueNotifications(db: Database, { limit }: { limit: number }): Promise<DeliveryClaim[]> {
  return db.prisma.$queryRaw`
    SELECT id, attempts FROM muster.notifications WHERE status = 'pending' AND next_attempt_at <= now()
    ORDER BY next_attempt_at LIMIT ${limit}::int`;
}

/** Undefined when it is not due, or somebody else sends it. */
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

/** Whoever has the claim by now: the receiver has taken it. */
export async function markDelivered(db: Database, { id }: { id: string }): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET status = 'delivered', delivered_at = now(), next_attempt_at = NULL, last_error = NULL
    WHERE id = ${id}::uuid AND status <> 'delivered'`;
}

/** The claimed attempt failed. The next one is made in `delaySeconds`, or never. */
export async function markRefused(
  db: Database,
  { id, attempts, error, delaySeconds }: DeliveryClaim & { error: DeliveryError; delaySeconds: number | null },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET status = CASE WHEN ${delaySeconds}::float8 IS NULL THEN 'failed' ELSE 'pending' END,
      next_attempt_at = now() + ${delaySeconds}::float8 * interval '1 second', last_error = ${JSON.stringify(error)}::jsonb
    WHERE id = ${id}::uuid AND attempts = ${attempts}::int AND status = 'pending'`;
}

/** The claimed attempt was interrupted before its outcome was known: it does not count, and anyone may send at once. */
export async function releaseNotification(db: Database, { id, attempts }: DeliveryClaim): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET attempts = attempts - 1, next_attempt_at = now()
    WHERE id = ${id}::uuid AND attempts = ${attempts}::int AND status = 'pending'`;
}

/**
 * Gives up the notifications that were due for a day and that nobody tried, for no webhook was configured: whoever configures one wants
 * to hear of today, not of last month.
 */
export async function expireNotifications(db: Database): Promise<void> {
  const expired: DeliveryError = { code: 'expired' };
  await db.prisma.$executeRaw`
    UPDATE muster.notifications SET status = 'failed', next_attempt_at = NULL, last_error = ${JSON.stringify(expired)}::jsonb
    WHERE status = 'pending' AND next_attempt_at < now() - interval '1 day'`;
}

/** Forgets notifications older than `days`, but not the newest of each type, which says how the company stands. */
export async function deleteOldNotifications(db: Database, { days }: { days: number }): Promise<void> {
  await db.prisma.$executeRaw`
    DELETE FROM muster.notifications n
    WHERE status <> 'pending' AND occurred_at < now() - ${days}::int * interval '1 day' AND EXISTS (
      SELECT FROM muster.notifications newer WHERE newer.environment = n.environment AND newer.company_id = n.company_id
        AND newer.type = n.type AND newer.seq > n.seq)`;
}

/** Notifications that were not delivered. */
export function countUndelivered(db: Database): Promise<{ status: NotificationStatus; count: number }[]> {
  return db.prisma.$queryRaw`
    SELECT s.status, count(n.id)::int AS count FROM (VALUES ('pending'), ('failed')) AS s(status)
    LEFT JOIN muster.notifications n ON n.status = s.status GROUP BY s.status`;
}
