// muster.webhook: one row, since when the webhook has failed. The deliverer writes it after the notification, one statement at a time. All times
// are the database's.
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Reader } from '../connection/read-only.js';
import type { Transaction } from '../connection/transaction.js';
import type { DeliveryError } from './notifications.js';

/** Three attempts fall into this time: a receiver that was just restarted is not reported. */
const PATIENCE_SECONDS = 30;

/** SQL: the webhook has failed for a while. */
export const WEBHOOK_FAILS = Prisma.sql`EXISTS (
  SELECT FROM muster.webhook WHERE failing_since <= now() - make_interval(secs => ${PATIENCE_SECONDS}::float8))`;

/** Records that the webhook has taken a delivery. */
export async function recordTaken(db: Database): Promise<void> {
  await db.prisma.$executeRaw`UPDATE muster.webhook SET failing_since = NULL, last_error = NULL WHERE failing_since IS NOT NULL`;
}

/** Records that the webhook has not taken a delivery. */
export async function recordNotTaken(db: Database, error: DeliveryError): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.webhook SET failing_since = COALESCE(failing_since, now()), last_error = ${JSON.stringify(error)}::jsonb`;
}

/** Since when it fails; null if it does not. */
export async function readFailingSince(db: Pick<Transaction, '$queryRaw'>): Promise<Date | null> {
  const [row] = await db.$queryRaw<{ since: Date }[]>`SELECT failing_since AS since FROM muster.webhook WHERE ${WEBHOOK_FAILS}`;
  return row?.since ?? null;
}

export interface FailingWebhook {
  readonly seconds: number;
  readonly lastError: DeliveryError;
  readonly undelivered: number;
}

/** Since when the webhook fails, for `muster doctor`. */
export async function examineWebhook(db: Reader): Promise<FailingWebhook | undefined> {
  const { rows } = await db.query<FailingWebhook>(
    Prisma.sql`SELECT extract(epoch FROM now() - failing_since)::float8 AS seconds, last_error AS "lastError",
       (SELECT count(*)::int FROM muster.notifications WHERE status IN ('pending', 'failed')) AS undelivered
     FROM muster.webhook WHERE failing_since <= now() - make_interval(secs => ${PATIENCE_SECONDS})`,
  );
  return rows[0];
}
