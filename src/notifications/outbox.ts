import type { Environment } from '../core/company.js';
import type { Database } from '../db/database.js';
import type { EventDetails, EventType } from './record-event.js';
import type { DeliveryError } from './webhook.js';

/** A notification that this worker may send now. `attempts` counts this one, and names the claim. */
export interface ClaimedNotification {
  readonly id: string;
  readonly attempts: number;
  readonly type: EventType;
  readonly environment: Environment;
  readonly companyId: string;
  readonly occurredAt: Date;
  readonly details: EventDetails;
  readonly companyName: string | null;
  /** The company waits for a person to authorize again, now. */
  readonly mustAuthorize: boolean;
}

/**
 * How long a claim keeps others away: longer than an attempt takes. After a crash in between it is sent again, with the same
 * id: twice is better than never.
 */
const CLAIM_SECONDS = 30;

/** Days that a notification stays for a look. */
const RETENTION_DAYS = 90;

/** The notifications that wait for delivery. All times are the database's. */
export class Outbox {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Those to be sent now, oldest first. */
  due(limit: number): Promise<{ id: string; attempts: number }[]> {
    return this.#db.prisma.$queryRaw`
      SELECT id, attempts FROM muster.notifications WHERE status = 'pending' AND next_attempt_at <= now()
      ORDER BY next_attempt_at LIMIT ${limit}::int`;
  }

  /** Undefined when it is not due, or somebody else sends it. */
  async claim(id: string): Promise<ClaimedNotification | undefined> {
    const [claimed] = await this.#db.prisma.$queryRaw<ClaimedNotification[]>`
      UPDATE muster.notifications n
      SET attempts = attempts + 1, next_attempt_at = now() + ${CLAIM_SECONDS}::int * interval '1 second'
      WHERE id = ${id}::uuid AND status = 'pending' AND next_attempt_at <= now()
      RETURNING id, attempts, type, environment, company_id::text AS "companyId", occurred_at AS "occurredAt", details,
        (SELECT name FROM mirror.companies m WHERE m.environment = n.environment AND m.company_id = n.company_id) AS "companyName",
        EXISTS (SELECT FROM muster.connections c WHERE c.environment = n.environment AND c.company_id = n.company_id
                AND c.status = 'reauthorization_required') AS "mustAuthorize"`;
    return claimed;
  }

  async delivered({ id }: ClaimedNotification): Promise<void> {
    // Whoever holds the claim by now: it has arrived.
    await this.#db.prisma.$executeRaw`
      UPDATE muster.notifications SET status = 'delivered', delivered_at = now(), next_attempt_at = NULL, last_error = NULL
      WHERE id = ${id}::uuid AND status <> 'delivered'`;
  }

  /** Not taken; to be tried again in `delaySeconds`, or never. */
  async refused({ id, attempts }: ClaimedNotification, error: DeliveryError, delaySeconds: number | undefined): Promise<void> {
    await this.#db.prisma.$executeRaw`
      UPDATE muster.notifications SET
        status = CASE WHEN ${delaySeconds ?? null}::float8 IS NULL THEN 'failed' ELSE 'pending' END,
        next_attempt_at = now() + ${delaySeconds ?? null}::float8 * interval '1 second', last_error = ${JSON.stringify(error)}::jsonb
      WHERE id = ${id}::uuid AND attempts = ${attempts}::int AND status = 'pending'`;
  }

  /** Interrupted before the outcome was known: anyone may send it at once. */
  async giveBack({ id, attempts }: ClaimedNotification): Promise<void> {
    await this.#db.prisma.$executeRaw`
      UPDATE muster.notifications SET attempts = attempts - 1, next_attempt_at = now()
      WHERE id = ${id}::uuid AND attempts = ${attempts}::int AND status = 'pending'`;
  }

  /**
   * Gives up what was due for a day and that nobody tried, for no webhook was configured: whoever configures one wants to
   * hear of what is, not of last month. Forgets what is older than the retention, but not how each company stands.
   */
  async tidy(): Promise<void> {
    const expired: DeliveryError = { code: 'expired' };
    await this.#db.prisma.$executeRaw`
      UPDATE muster.notifications SET status = 'failed', next_attempt_at = NULL, last_error = ${JSON.stringify(expired)}::jsonb
      WHERE status = 'pending' AND next_attempt_at < now() - interval '1 day'`;
    await this.#db.prisma.$executeRaw`
      DELETE FROM muster.notifications n
      WHERE status <> 'pending' AND occurred_at < now() - ${RETENTION_DAYS}::int * interval '1 day' AND EXISTS (
        SELECT FROM muster.notifications newer WHERE newer.environment = n.environment AND newer.company_id = n.company_id
          AND newer.type = n.type AND newer.seq > n.seq)`;
  }
}
