import type { Environment } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { isUuid, pageCursor, readCursor } from '../db/cursor.js';
import type { Database } from '../db/database.js';
import type { EventDetails, EventType } from './record-event.js';
import type { DeliveryError } from './webhook.js';

export const NOTIFICATION_STATUSES = ['pending', 'delivered', 'failed'] as const;
export type NotificationStatus = (typeof NOTIFICATION_STATUSES)[number];

/** A notification as the admin API shows it; times are ISO 8601 in UTC. */
export interface NotificationView extends EventDetails {
  readonly id: string;
  readonly type: EventType;
  readonly occurred_at: string;
  readonly environment: string;
  readonly company_id: string;
  readonly status: NotificationStatus;
  readonly attempts: number;
  readonly next_attempt_at: string | null;
  readonly delivered_at: string | null;
  readonly last_error: DeliveryError | null;
}

export interface NotificationFilter {
  readonly status?: NotificationStatus | undefined;
  readonly type?: EventType | undefined;
  readonly environment?: Environment | undefined;
  readonly companyId?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** What was recorded and what became of it, for people to look at. */
export class Notifications {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
  async list({ cursor, limit, ...filter }: NotificationFilter): Promise<{ data: NotificationView[]; nextCursor?: string }> {
    const before = cursor === undefined ? undefined : BigInt(readCursor(cursor, /^\d{1,18}$/));
    const rows = await this.#db.prisma.notification.findMany({
      where: {
        ...Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)),
        ...(before !== undefined && { seq: { lt: before } }),
      },
      orderBy: { seq: 'desc' },
      take: limit + 1,
    });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return { data: page.map(view), ...(rows.length > limit && last && { nextCursor: pageCursor(String(last.seq)) }) };
  }

  /** Sends it once more, with all its attempts, whatever became of it. Throws `notification_not_found`. */
  async redeliver(id: string): Promise<NotificationView> {
    const { prisma } = this.#db;
    if (isUuid(id))
      await prisma.$executeRaw`
        UPDATE muster.notifications SET status = 'pending', attempts = 0, next_attempt_at = now(), delivered_at = NULL, last_error = NULL
        WHERE id = ${id}::uuid`;
    const row = isUuid(id) ? await prisma.notification.findUnique({ where: { id } }) : null;
    if (!row)
      throw new MusterError('notification_not_found', `There is no notification ${id}: GET /api/notifications lists them.`);
    return view(row);
  }
}

type Row = Awaited<ReturnType<Database['prisma']['notification']['findUniqueOrThrow']>>;

function view(row: Row): NotificationView {
  return {
    id: row.id,
    type: row.type as EventType,
    occurred_at: row.occurredAt.toISOString(),
    environment: row.environment,
    company_id: row.companyId,
    ...(row.details as EventDetails),
    status: row.status as NotificationStatus,
    attempts: row.attempts,
    next_attempt_at: row.nextAttemptAt?.toISOString() ?? null,
    delivered_at: row.deliveredAt?.toISOString() ?? null,
    last_error: row.lastError as unknown as DeliveryError | null,
  };
}
