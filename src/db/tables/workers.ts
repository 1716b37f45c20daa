// muster.workers: processes that work on the queue. Each writes its own row, one statement at a time, and deletes it when it stops. All times
// are the database's.
import { MusterError } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Reader } from '../connection/read-only.js';
import type { Transaction } from '../connection/transaction.js';

/** Three heartbeats: one late heartbeat does not make a worker look dead. */
const TIMEOUT_SECONDS = 15;

const LIVES = Prisma.sql`seen_at > now() - make_interval(secs => ${TIMEOUT_SECONDS}::float8)`;

/** SQL: at least one worker has had a heartbeat lately. */
export const A_WORKER_LIVES = Prisma.sql`EXISTS (SELECT FROM muster.workers WHERE ${LIVES})`;

/** Records a worker's heartbeat, and the longest block of its event loop in the last minute, in seconds. */
export async function recordWorker(
  db: Database,
  { name, eventLoopDelay = 0 }: { name: string; eventLoopDelay?: number },
): Promise<void> {
  await db.prisma.$executeRaw`
    INSERT INTO muster.workers (name, event_loop_delay) VALUES (${name}, ${eventLoopDelay}::float8)
    ON CONFLICT (name) DO UPDATE SET seen_at = now(), event_loop_delay = EXCLUDED.event_loop_delay`;
}

/** The longest block of a running worker's event loop in the last minute, in seconds; null without a running worker. */
export async function longestDelay(db: Pick<Transaction, '$queryRaw'>): Promise<number | null> {
  const [row] = await db.$queryRaw<{ seconds: number | null }[]>`
    SELECT max(event_loop_delay) AS seconds FROM muster.workers WHERE ${LIVES}`;
  return row!.seconds;
}

export async function removeWorker(db: Database, { name }: { name: string }): Promise<void> {
  await db.prisma.$executeRaw`DELETE FROM muster.workers WHERE name = ${name}`;
}

/** Workers with a recent heartbeat. */
export async function countWorkers(db: Pick<Transaction, '$queryRaw'>): Promise<number> {
  const [row] = await db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM muster.workers WHERE ${LIVES}`;
  return row!.count;
}

/** Throws `no_worker` if no worker had a heartbeat lately. */
export async function requireWorker(db: Pick<Transaction, '$queryRaw'>): Promise<void> {
  if ((await countWorkers(db)) > 0) return;
  throw new MusterError('no_worker', 'No worker lives: nothing is fetched. Start one (`muster worker`), or see its log.');
}

/** Counts running workers, and the companies that wait for one. */
export async function countForDoctor(db: Reader): Promise<{ workers: number; companies: number }> {
  const { rows } = await db.query<{ workers: number; companies: number }>(
    Prisma.sql`SELECT (SELECT count(*)::int FROM muster.workers WHERE seen_at > now() - make_interval(secs => ${TIMEOUT_SECONDS})) AS workers,
       (SELECT count(*)::int FROM muster.connections) AS companies`,
  );
  return rows[0]!;
}

/** Removes workers that died some time ago: they could not remove themselves. */
export async function removeDeadWorkers(db: Database): Promise<void> {
  await db.prisma.$executeRaw`DELETE FROM muster.workers WHERE seen_at < now() - interval '1 hour'`;
}
