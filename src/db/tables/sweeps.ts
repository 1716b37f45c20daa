// muster.sweeps: when each sweep last ended, in whichever worker, and the row `heartbeat` of muster.locks, whose `taken_at` says when the heartbeat was
// last sent. Each is written by one statement at a time. All times are the database's.
import type { Database } from '../connection/database.js';

/** A sweep that takes long or fails once makes no heartbeat stop: it may miss two of its turns, and then two minutes more. */
const TURNS = 3;
const GRACE_SECONDS = 120;

/** Workers look every five seconds, so that a heartbeat is sent every minute and never twice in one. */
const HEARTBEAT_SECONDS = 57;

/** Makes the row of each sweep that has none: from now on it may be late. */
export async function addSweeps(db: Database, names: readonly string[]): Promise<void> {
  await db.prisma.$executeRaw`INSERT INTO muster.sweeps (name) SELECT unnest(${names}::text[]) ON CONFLICT DO NOTHING`;
}

/** Writes down that the sweep has just ended. */
export async function recordSweep(db: Database, { name }: { name: string }): Promise<void> {
  await db.prisma.$executeRaw`
    INSERT INTO muster.sweeps (name) VALUES (${name}) ON CONFLICT (name) DO UPDATE SET finished_at = now()`;
}

/** Whether this process is to send the heartbeat now: no process has for a minute, and all of these sweeps are in time. */
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
