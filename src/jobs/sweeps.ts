import type { Database } from '../db/database.js';
import { removeOldChanges, stampChanges } from '../db/tables/change-batches.js';
import { findClaimableRuns } from '../db/tables/runs.js';
import type { Deliverer } from '../notifications/deliverer.js';
import type { DueQueue } from './due-queues.js';
import type { RunQueue } from './run-queue.js';
import type { Sweep } from './sweeper.js';

interface SweepDependencies {
  readonly db: Database;
  readonly startDueSyncs: () => Promise<void>;
  readonly runQueue: RunQueue;
  readonly dueTokens: Pick<DueQueue<never>, 'enqueueDue'>;
  readonly dueNotifications: Pick<DueQueue<never>, 'enqueueDue'>;
  readonly deliverer: Deliverer;
  /** Days that a change stays in the feed; undefined = for ever. */
  readonly changeRetentionDays: number | undefined;
}

/** Every sweep of a worker. Their intervals bound how late anything is noticed. */
export function sweeps(deps: SweepDependencies): Sweep[] {
  const { db, changeRetentionDays: days, runQueue } = deps;
  return [
    { name: 'orphaned-runs', everyMs: 2_000, run: orphanedRuns(db, runQueue) },
    { name: 'due-syncs', everyMs: 5_000, run: deps.startDueSyncs },
    { name: 'due-tokens', everyMs: 2_000, run: () => deps.dueTokens.enqueueDue() },
    { name: 'change-feed', everyMs: 1_000, run: () => stampChanges(db) },
    ...(days === undefined ? [] : [{ name: 'old-changes', everyMs: 600_000, run: () => removeOldChanges(db, days) }]),
    { name: 'due-notifications', everyMs: 1_000, run: () => deps.dueNotifications.enqueueDue() },
    { name: 'old-notifications', everyMs: 3_600_000, run: () => deps.deliverer.tidy() },
  ];
}

/** Runs that one sweep puts before the workers; the others are still due at the next. */
const BATCH = 500;
/** Jobs that wait in a large night: nearly every run that nobody has claimed has one of them. */
const MANY_WAITING = 100;
/** How often runs without a job are then looked for. */
const RARELY_MS = 30_000;

/** Runs whose job was lost, whose worker died, or that waited to retry. */
export function orphanedRuns(db: Database, queue: RunQueue): () => Promise<void> {
  let last = -Infinity;
  return async () => {
    if (performance.now() - last < RARELY_MS && (await queue.waiting()) >= MANY_WAITING) return;
    last = performance.now();
    await queue.dispatch(await findClaimableRuns(db, { limit: BATCH }));
  };
}
