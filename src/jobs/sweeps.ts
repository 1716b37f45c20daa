import type { CompanyKey } from '../core/company.js';
import type { Database } from '../db/database.js';
import { removeOldChanges, stampChanges } from '../mirror/change-feed.js';
import type { Logger } from '../observability/logger.js';
import { followSchedule } from '../runs/follow-schedule.js';
import type { RunClaims } from '../runs/run-claims.js';
import type { Runs } from '../runs/runs.js';
import { nextSyncsAfter, type Schedule } from '../runs/schedule.js';
import type { NotificationQueue } from './notification-queue.js';
import type { RunQueue } from './run-queue.js';
import type { Sweep } from './sweeper.js';
import type { TokenQueue } from './token-queue.js';

interface SweepDependencies {
  readonly db: Database;
  readonly claims: RunClaims;
  readonly runs: Runs;
  readonly runQueue: RunQueue;
  readonly tokenQueue: TokenQueue;
  readonly notificationQueue: NotificationQueue;
  readonly schedule: Schedule;
  /** Days that a change stays in the feed; undefined = for ever. */
  readonly changeRetentionDays: number | undefined;
  readonly logger: Logger;
}

/** Rows that one occurrence of a sweep handles; the rest is still due at the next. */
const BATCH = 500;

/** Every sweep of a worker. Their intervals bound how late anything is noticed. */
export function sweeps(deps: SweepDependencies): Sweep[] {
  const { db, changeRetentionDays: days } = deps;
  return [
    { name: 'orphaned-runs', everyMs: 2_000, run: dispatchOrphans(deps) },
    { name: 'due-syncs', everyMs: 5_000, run: syncBySchedule(deps) },
    { name: 'due-tokens', everyMs: 2_000, run: () => deps.tokenQueue.enqueueDue() },
    { name: 'change-feed', everyMs: 1_000, run: () => stampChanges(db) },
    ...(days === undefined ? [] : [{ name: 'old-changes', everyMs: 600_000, run: () => removeOldChanges(db, days) }]),
    ...deps.notificationQueue.sweeps,
  ];
}

/** Jobs that wait in a large night: nearly every run that nobody holds has one of them. */
const MANY_WAITING = 100;
/** How often runs without a job are then looked for. */
const RARELY_MS = 30_000;

/** Runs whose job was lost, whose worker died, or that waited to retry. */
function dispatchOrphans({ claims, runQueue }: SweepDependencies): () => Promise<void> {
  let last = -Infinity;
  return async () => {
    if (performance.now() - last < RARELY_MS && (await runQueue.waiting()) >= MANY_WAITING) return;
    last = performance.now();
    await runQueue.dispatch(await claims.orphans(BATCH));
  };
}

/** The first turn of a process follows the schedule: its settings may be others than those of the process before. */
function syncBySchedule(deps: SweepDependencies): () => Promise<void> {
  let follows = false;
  return async () => {
    await startDueSyncs(deps);
    if (follows) return;
    const moved = await followSchedule(deps.db, deps.schedule);
    follows = true;
    if (moved > 0) deps.logger.info({ companies: moved }, 'the schedule has changed: the next syncs were moved');
  };
}

async function startDueSyncs({ db, runs, schedule }: SweepDependencies): Promise<void> {
  const due = await db.prisma.$queryRaw<(CompanyKey & { nextSyncAt: Date | null; now: Date })[]>`
    SELECT environment, company_id AS "companyId", next_sync_at AS "nextSyncAt", now() AS now FROM muster.connections
    WHERE status = 'active' AND (next_sync_at IS NULL OR next_sync_at <= now()) ORDER BY next_sync_at NULLS FIRST LIMIT ${BATCH}`;
  if (!due[0]) return;
  // By the clock by which they are due: one behind it would give the same night again.
  const nextSyncOf = nextSyncsAfter(schedule, due[0].now.getTime());
  // Those that somebody else holds just now are still due the next time.
  const dated = due.filter(({ nextSyncAt }) => nextSyncAt !== null);
  await runs.requestAll(dated, { trigger: 'nightly', mode: 'full', nextSyncOf });
  for (const { environment, companyId } of due.filter(({ nextSyncAt }) => nextSyncAt === null)) {
    await db.prisma.$executeRaw`
      UPDATE muster.connections SET next_sync_at = ${nextSyncOf({ environment, companyId })}
      WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND next_sync_at IS NULL`;
  }
}
