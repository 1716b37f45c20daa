import { type Catalogue, nightlyLists } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { limitDutyCycle } from '../core/duty-cycle.js';
import type { Database } from '../db/connection/database.js';
import { addNightExports } from '../db/tables/night-exports.js';
import {
  countNightAnew,
  findFirstRunTime,
  findNewestNight,
  findOpenNights,
  MOST_NIGHTS,
  type NightStart,
} from '../db/tables/nights.js';
import { type ExportSettings, exportedResources } from '../warehouse/export/export-settings.js';
import { nightsAround, nightsBetween, type Schedule } from './schedule.js';

interface NightDependencies {
  readonly db: Database;
  readonly catalogue: Pick<Catalogue, 'endpoints'>;
  readonly schedule: Schedule;
  /** Unset: nights are not exported. */
  readonly exports?: ExportSettings;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
}

/**
 * Each call counts the nights that have begun since the last call, and the nights that were not over then. A night keeps the beginning
 * with which it was counted first, even if the schedule changes. It counts the oldest first, so that a sweep that dies leaves none out: the
 * next one continues after the newest counted night. Then it schedules the exports of the nights that are over.
 */
export function nightSweep({ db, catalogue, schedule, exports, clock }: NightDependencies): () => Promise<void> {
  return limitDutyCycle(clock, async () => {
    const now = clock.now();
    const endsAt = new Date(nightsAround(schedule, now).next);
    const open = await findOpenNights(db);
    const nights = [...open, ...(await findNewNights(db, schedule, now))];
    const resources = nightlyLists(catalogue);
    const exported = exportedResources(exports, catalogue);
    for (const [i, night] of nights.entries()) {
      const endedAt = open[i]?.endedAt ?? nights[i + 1]?.beganAt ?? null;
      await countNightAnew(db, { ...night, endedAt, endsAt, resources });
    }
    if (exported.length > 0) await addNightExports(db, { resources: exported, endsAt, hasNightly: resources.length > 0 });
  });
}

/** The nights after the newest counted one; in an installation without one, the nights since its first run. */
async function findNewNights(db: Database, schedule: Schedule, now: number): Promise<NightStart[]> {
  const newest = await findNewestNight(db);
  const firstRun = newest ? undefined : await findFirstRunTime(db, { days: MOST_NIGHTS });
  const after = newest?.beganAt.getTime() ?? nightsAround(schedule, firstRun?.getTime() ?? now).began - 1;
  return nightsBetween(schedule, after, now)
    .filter(({ night }) => newest === undefined || night > newest.night)
    .map(({ night, beganAt }) => ({ night, beganAt: new Date(beganAt) }));
}
