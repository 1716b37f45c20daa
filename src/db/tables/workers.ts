// muster.workers: processes that work on the queue. Each writes its own row, one statement at a time, and deletes it when it stops. All times
// are the database's.
import type { Database } from '../database.js';
import type { Transaction } from '../transaction.js';

/** Three beats: one that is late makes no worker look dead. */
const TIMEOUT_SECONDS = 15;

/** Says that the worker lives. */
export async function noteWorker(db: Database, { name }: { name: string }): Promise<void> {
  await db.prisma.$executeRaw`
    INSERT INTO muster.workers (name) VALUES (${name}) ON CONFLICT (name) DO UPDATE SET seen_at = now()`;
}

export async function removeWorker(db: Database, { name }: { name: string }): Promise<void> {
  await db.prisma.$executeRaw`DELETE FROM muster.workers WHERE name = ${name}`;
}

/** Workers that have said lately that they live. */
export async function countWorkers(db: Pick<Transaction, '$queryRaw'>): Promise<number> {
  const [row] = await db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM muster.workers WHERE seen_at > now() - make_interval(secs => ${TIMEOUT_SECONDS})`;
  return row!.count;
}

/** Removes workers that died some time ago: they could not do so themselves. */
export async function removeDeadWorkers(db: Database): Promise<void> {
  await db.prisma.$executeRaw`DELETE FROM muster.workers WHERE seen_at < now() - interval '1 hour'`;
}
