// muster.queue_stops: when each queue was last found stopped. Any worker writes the row, one statement at a time. All times are the database's.
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';

/** Repeated stops of a queue within this time are one issue. */
const SHOWN_MINUTES = 10;

/** SQL: a queue was found stopped within that time. */
export const A_QUEUE_WAS_STOPPED = Prisma.sql`EXISTS (
  SELECT FROM muster.queue_stops WHERE found_at > now() - make_interval(mins => ${SHOWN_MINUTES}::int))`;

/** The queue was found stopped. */
export async function recordQueueStop(db: Database, { queue }: { queue: string }): Promise<void> {
  await db.prisma.$executeRaw`
    INSERT INTO muster.queue_stops (queue) VALUES (${queue}) ON CONFLICT (queue) DO UPDATE SET found_at = now()`;
}
