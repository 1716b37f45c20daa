// muster.sweeps: when each sweep last ended in any worker, and the row `heartbeat` of muster.locks, whose `taken_at` says when the heartbeat was
// last sent. One statement at a time writes each. All times are the database's.
import type { Database } from '../connection/database.js';

/** A sweep that takes long or fails once does not stop the heartbeat: it may miss two turns, and two more minutes. */
const TURNS = 3;
const GRACE_SECONDS = 120;

/** Workers look every five seconds, so that a heartbeat is sent every minute and never twice in one. */
const HEARTBEAT_SECONDS = 57;

/** Makes the row of each sweep that has none: it may be late from now on. */
export async function addSweeps(db: Database, names: readonly string[]): Promise<void> {
  await db.prisma.$executeRaw`INSERT INTO muster.sweeps (name) SELECT unnest(${names}::text[]) ON CONFLICT DO NOTHING`;
}

/** Stores that the sweep has just ended. */
export async function recordSweep(db: Database, { name }: { name: string }): Promise<void> {
  await db.prisma.$executeRaw`
    INSERT INTO muster.sweeps (name) VALUES (${name}) ON CONFLICT (name) DO UPDATE SET finished_at = now()`;
}

/** Whether this process must send the heartbeat now: no process has for a minute, and all of these sweeps are on time. */
export async function claimHeartbeat(db: Database, sweeps: readonly { name: string; everyMs: number }[]): Promise<boolean> {
  const names = sweeps.map(({ name }) => name);
  const seconds = sweeps.map(({ everyMs }) => (TURNS * everyMs) / 1_000 + GRACE_SECONDS);
  const claimed = await db.prisma.$executeRaw`
    UPDATE muster.locks SET taken_at = now()
    WHERE name = 'heartbeat' AND taken_at NOT BETWEEN now() - make_interval(secs => ${HEARTBEAT_SECONDS}::float8) AND now()
      AND NOT EXISTS (
        SELECT FROM unnest(${names}::text[], ${seconds}::float8[]) AS asked(name, seconds) JOIN muster.sweeps s USING (name)
        WHERE s.finished_at < now() - make_interval(secs => asked.seconds))`;
  return claimed === 1;
}

/** For how many seconds each sweep has not ended in any worker. A sweep that no worker has any more is among them. */
export function ageSweeps(db: Pick<Database, 'prisma'>): Promise<{ sweep: string; count: number }[]> {
  return db.prisma.$queryRaw`
    SELECT name AS sweep, extract(epoch FROM now() - finished_at)::float8 AS count FROM muster.sweeps ORDER BY name`;
}
