import { type Catalogue, nightlyLists, scheduledLists, withParents } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import type { CompanyKey } from '../core/company.js';
import type { Database } from '../db/connection/database.js';
import { readStanding } from '../db/tables/installation.js';
import {
  deleteOtherLists,
  findDueLists,
  findListTimes,
  findUnplannedCompanies,
  type ListTime,
  moveListTimes,
  planLists,
  unplanLists,
} from '../db/tables/scheduled-lists.js';
import type { Logger } from '../observability/logger.js';
import { whileProcessesAreExchanged } from './follow-plans.js';
import { nightlySyncs } from './nightly-syncs.js';
import type { Runs } from './runs.js';
import { nextSyncsAfter, type Schedule, scheduleOfList } from './schedule.js';

interface ListSyncsDependencies {
  readonly db: Database;
  readonly runs: Pick<Runs, 'requestAll'>;
  readonly catalogue: Pick<Catalogue, 'endpoints'>;
  /** That of the nights: its time zone holds for every list, and its window limits the windows of the lists. */
  readonly schedule: Schedule;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}

/** Gives the next times of a company's lists. */
type ListTimesOf = (company: CompanyKey) => ListTime[];

/** The most companies or lists of one statement: it locks their rows until it ends. */
const BATCH = 500;

/** The sweeps that start what is due: the night, and lists with schedules of their own. */
export function dueSyncs(deps: ListSyncsDependencies) {
  const resources = withParents(deps.catalogue, nightlyLists(deps.catalogue));
  return { startDueSyncs: nightlySyncs({ ...deps, resources }), startDueLists: listSyncs(deps) };
}

/**
 * Each call plans the lists with schedules of their own of companies that are new, and requests runs of the lists that are due: one run of a company
 * for all of its due lists. The first call of a process, and some after it, also move planned lists to their schedules, which may have changed since the
 * previous process, and give up the lists that have none any more.
 */
function listSyncs({ db, runs, catalogue, schedule, clock, logger }: ListSyncsDependencies): () => Promise<void> {
  const lists = scheduledLists(catalogue).map(({ resource, schedule: cron }) => ({
    resource,
    schedule: scheduleOfList(schedule, cron),
  }));
  const resources = lists.map(({ resource }) => resource);
  const timesAfter = (now: Date): ListTimesOf => {
    const nextOf = lists.map((list) => ({ ...list, next: nextSyncsAfter(list.schedule, now.getTime()) }));
    return ({ environment, companyId }) =>
      nextOf.map(({ resource, next }) => ({ environment, companyId, resource, at: next({ environment, companyId }) }));
  };
  const follow = whileProcessesAreExchanged(clock, async () => {
    const moved = await followSchedules(db, resources, timesAfter);
    if (moved > 0) logger.info({ lists: moved }, 'schedules of lists have changed: the next syncs were moved');
  });
  const hasNights = nightlyLists(catalogue).length > 0;
  return async () => {
    if ((await readStanding(db.prisma)) !== 'ours') return;
    await follow();
    if (lists.length === 0) return;
    await planNewCompanies(db, timesAfter);
    await startDueLists(db, runs, { resources, hasNights }, timesAfter);
  };
}

async function startDueLists(
  db: Database,
  runs: Pick<Runs, 'requestAll'>,
  which: { readonly resources: readonly string[]; readonly hasNights: boolean },
  timesAfter: (now: Date) => ListTimesOf,
): Promise<void> {
  for (;;) {
    const due = await findDueLists(db, { ...which, limit: BATCH });
    if (!due[0]) return;
    // The database's clock decided that they are due: a clock that is slower would give the same times again.
    const listTimesOf = timesAfter(due[0].now);
    const { missed } = await runs.requestAll(due, { trigger: 'scheduled', mode: 'full', listTimesOf });
    // A smaller batch was the last one. If no run was requested, the next look would find the same companies.
    if (due.length < BATCH || missed.length === due.length) return;
  }
}

async function planNewCompanies(db: Database, timesAfter: (now: Date) => ListTimesOf): Promise<void> {
  for (;;) {
    const companies = await findUnplannedCompanies(db, { limit: BATCH });
    if (!companies[0]) return;
    const planned = await planLists(db, { companies, times: companies.flatMap(timesAfter(companies[0].now)) });
    if (companies.length < BATCH || planned === 0) return;
  }
}

/**
 * Moves every list to its time in its schedule, gives up lists without one, and lets companies that lack a list be planned. A list that is already due
 * stays, or that turn would be lost. Returns how many were moved.
 */
async function followSchedules(
  db: Database,
  resources: readonly string[],
  timesAfter: (now: Date) => ListTimesOf,
): Promise<number> {
  await deleteOtherLists(db, { resources });
  if (resources.length === 0) return 0;
  while ((await unplanLists(db, { resources, limit: BATCH })) === BATCH);
  // The database's clock decides when a list is due: with a clock that is faster, a list that is about to begin would be put off.
  const planned = await findListTimes(db);
  if (!planned[0]) return 0;
  const timesOf = timesAfter(planned[0].now);
  const moves = planned.flatMap(({ environment, companyId, resource, at: before }) =>
    timesOf({ environment, companyId }).filter((time) => time.resource === resource && time.at.getTime() !== before.getTime()),
  );
  let moved = 0;
  for (let start = 0; start < moves.length; start += BATCH) moved += await moveListTimes(db, moves.slice(start, start + BATCH));
  return moved;
}
