import type { Database } from '../db/connection/database.js';
import { findDueSyncs, findPlannedSyncs, movePlannedSyncs, setFirstSync } from '../db/tables/connections.js';
import { readStanding } from '../db/tables/installation.js';
import type { Logger } from '../observability/logger.js';
import type { Runs } from './runs.js';
import { nextSyncsAfter, type Schedule } from './schedule.js';

interface NightlySyncsDependencies {
  readonly db: Database;
  readonly runs: Pick<Runs, 'requestAll'>;
  readonly schedule: Schedule;
  readonly logger: Logger;
}

/** Companies that are due and are looked at together. */
const DUE_BATCH = 500;
/** Companies that one statement moves: their connections are locked until it has ended. */
const MOVE_BATCH = 500;

/**
 * Each call asks for the runs of whoever is due by the schedule, and sets their next night. The first call of a process follows the
 * schedule, too: the settings of the process before may have been others.
 */
export function nightlySyncs({ db, runs, schedule, logger }: NightlySyncsDependencies): () => Promise<void> {
  let followsSchedule = false;
  return async () => {
    if ((await readStanding(db.prisma)) !== 'ours') return;
    await startDueSyncs(db, runs, schedule);
    if (followsSchedule) return;
    const moved = await followSchedule(db, schedule);
    followsSchedule = true;
    if (moved > 0) logger.info({ companies: moved }, 'the schedule has changed: the next syncs were moved');
  };
}

async function startDueSyncs(db: Database, runs: Pick<Runs, 'requestAll'>, schedule: Schedule): Promise<void> {
  for (;;) {
    const due = await findDueSyncs(db, { limit: DUE_BATCH });
    const started = await startSyncs(due, db, runs, schedule);
    // Of fewer none is left, and where none has begun, the next look would find the same.
    if (due.length < DUE_BATCH || started === 0) return;
  }
}

/** Returns how many are not due any more. */
async function startSyncs(
  due: Awaited<ReturnType<typeof findDueSyncs>>,
  db: Database,
  runs: Pick<Runs, 'requestAll'>,
  schedule: Schedule,
): Promise<number> {
  if (!due[0]) return 0;
  // By the clock by which they are due: a clock behind it would give the same night again.
  const nextSyncOf = nextSyncsAfter(schedule, due[0].now.getTime());
  // Companies that somebody else has locked just now are still due the next time.
  const dated = due.filter(({ nextSyncAt }) => nextSyncAt !== null);
  const { missed } = await runs.requestAll(dated, { trigger: 'nightly', mode: 'full', nextSyncOf });
  for (const { environment, companyId } of due.filter(({ nextSyncAt }) => nextSyncAt === null)) {
    await setFirstSync(db, { environment, companyId, at: nextSyncOf({ environment, companyId }) });
  }
  return due.length - missed.length;
}

/**
 * Moves the next sync of every company to when the schedule has it: it was set under another schedule where the settings have
 * changed since. A sync that is due stays, or that night would be lost. Returns how many were moved.
 */
export async function followSchedule(db: Database, schedule: Schedule): Promise<number> {
  // By the database's clock, which says what is due: by a clock that is ahead of it, a sync that is about to begin would be put off.
  const planned = await findPlannedSyncs(db);
  if (!planned[0]) return 0;
  const nextOf = nextSyncsAfter(schedule, planned[0].now.getTime());
  const moves = planned.flatMap(({ environment, companyId, at: before }) => {
    const at = nextOf({ environment, companyId });
    return at.getTime() === before.getTime() ? [] : [{ environment, companyId, at }];
  });
  let moved = 0;
  for (let start = 0; start < moves.length; start += MOVE_BATCH)
    moved += await movePlannedSyncs(db, { syncs: moves.slice(start, start + MOVE_BATCH) });
  return moved;
}
