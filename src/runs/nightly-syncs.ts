import type { Clock } from '../core/clock.js';
import type { Database } from '../db/connection/database.js';
import { findDueSyncs, findPlannedSyncs, movePlannedSyncs, setFirstSync, unplanSyncs } from '../db/tables/connections.js';
import { readStanding } from '../db/tables/installation.js';
import type { Logger } from '../observability/logger.js';
import { whileProcessesAreExchanged } from './follow-plans.js';
import type { Runs } from './runs.js';
import { nextSyncsAfter, type Schedule } from './schedule.js';

interface NightlySyncsDependencies {
  readonly db: Database;
  readonly runs: Pick<Runs, 'requestAll'>;
  readonly schedule: Schedule;
  /** The lists of the night, with their parents; none: there are no nightly syncs. Default: every list. */
  readonly resources?: readonly string[];
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}

/** The most due companies handled together. */
const DUE_BATCH = 500;
/** The most companies that one statement moves: it locks their connections until it ends. */
const MOVE_BATCH = 500;

/**
 * Each call requests runs of the companies that are due by the schedule, and sets their next sync. The first call of a process, and some after it, also move
 * planned syncs to the schedule, which may have changed since the previous process.
 */
export function nightlySyncs(deps: NightlySyncsDependencies): () => Promise<void> {
  const { db, runs, schedule, resources, clock, logger } = deps;
  const isNever = resources?.length === 0;
  const follow = whileProcessesAreExchanged(clock, async () => {
    const moved = isNever ? await giveUpNights(db) : await followSchedule(db, schedule);
    if (moved > 0) logger.info({ companies: moved }, 'the schedule has changed: the next syncs were moved');
  });
  return async () => {
    if ((await readStanding(db.prisma)) !== 'ours') return;
    if (!isNever) await startDueSyncs(db, runs, schedule, resources && { resources });
    await follow();
  };
}

async function startDueSyncs(
  db: Database,
  runs: Pick<Runs, 'requestAll'>,
  schedule: Schedule,
  walked: { readonly resources: readonly string[] } | undefined,
): Promise<void> {
  for (;;) {
    const due = await findDueSyncs(db, { limit: DUE_BATCH });
    const started = await startSyncs(due, db, runs, schedule, walked);
    // A smaller batch was the last one. If no sync has started, the next look would find the same companies.
    if (due.length < DUE_BATCH || started === 0) return;
  }
}

/** Returns how many companies are no longer due. */
async function startSyncs(
  due: Awaited<ReturnType<typeof findDueSyncs>>,
  db: Database,
  runs: Pick<Runs, 'requestAll'>,
  schedule: Schedule,
  walked: { readonly resources: readonly string[] } | undefined,
): Promise<number> {
  if (!due[0]) return 0;
  // The database's clock decided that they are due: a clock that is slower would give the same night again.
  const nextSyncOf = nextSyncsAfter(schedule, due[0].now.getTime());
  const dated = due.filter(({ nextSyncAt }) => nextSyncAt !== null);
  // A company that another worker has locked is missed, and is still due at the next look.
  const { missed } = await runs.requestAll(dated, { trigger: 'nightly', mode: 'full', nextSyncOf, ...walked });
  for (const { environment, companyId } of due.filter(({ nextSyncAt }) => nextSyncAt === null)) {
    await setFirstSync(db, { environment, companyId, at: nextSyncOf({ environment, companyId }) });
  }
  return due.length - missed.length;
}

/**
 * Moves the next sync of every company to its time in the schedule, which may have changed since it was set. A sync that is already due
 * stays, or that night would be lost. Returns how many were moved.
 */
export async function followSchedule(db: Database, schedule: Schedule): Promise<number> {
  // The database's clock decides when a sync is due: with a clock that is faster, a sync that is about to begin would be put off.
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

/** Takes back all nightly syncs: every list has a schedule of its own. Returns how many. */
async function giveUpNights(db: Database): Promise<number> {
  let count = 0;
  for (;;) {
    const some = await unplanSyncs(db, { limit: MOVE_BATCH });
    count += some;
    if (some < MOVE_BATCH) return count;
  }
}
