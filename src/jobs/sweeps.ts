import type { Database } from '../db/connection/database.js';
import { removeOldAuthorizationFlows } from '../db/tables/authorization-flows.js';
import { removeOldChanges, stampChanges } from '../db/tables/change-batches.js';
import { removeOldQuarantinedTokens } from '../db/tables/quarantined-tokens.js';
import { findClaimableRuns } from '../db/tables/runs.js';
import { removeOldNotes } from '../db/tables/second-readings.js';
import { removeDeadWorkers } from '../db/tables/workers.js';
import type { Retention } from '../erasure/holders.js';
import type { Deliverer } from '../notifications/deliverer.js';
import { foldGoneCounts } from '../observability/work-counts.js';
import type { Runs } from '../runs/runs.js';
import type { DueQueue } from './due-queues.js';
import { removeOldRecords } from './retention.js';
import type { RunQueue } from './run-queue.js';
import type { Sweep } from './sweeper.js';

interface SweepDependencies {
  readonly db: Database;
  readonly runs: Pick<Runs, 'makeRequested'>;
  readonly startDueSyncs: () => Promise<void>;
  readonly startDueLists: () => Promise<void>;
  readonly sweepIssues: () => Promise<void>;
  readonly sweepNights: () => Promise<void>;
  readonly startVerifications: () => Promise<void>;
  readonly sweepSchema: () => Promise<void>;
  readonly signCertificates: () => Promise<void>;
  readonly sweepPrivacy: () => Promise<void>;
  readonly runQueue: RunQueue;
  readonly dueTokens: Pick<DueQueue<never>, 'enqueueDue'>;
  readonly dueNotifications: Pick<DueQueue<never>, 'enqueueDue'>;
  /** Undefined: nights are not exported. */
  readonly dueExports: Pick<DueQueue<never>, 'enqueueDue'> | undefined;
  readonly deliverer: Deliverer;
  readonly retention: Retention;
  /** Days that a change stays in the feed; undefined = forever. */
  readonly changeRetentionDays?: number;
  /** Days that a refresh token stays in quarantine. */
  readonly quarantineRetentionDays: number;
}

/**
 * Every sweep of a worker. The interval bounds how late a sweep notices its work. Work that a new release does every hour joins an existing sweep: where workers of the
 * release before have run for some hours, a sweep of a new name would be late, and silence the heartbeat, until its first turn.
 */
export function sweeps(deps: SweepDependencies): Sweep[] {
  const { db, changeRetentionDays: days, quarantineRetentionDays, runQueue, dueExports } = deps;
  return [
    { name: 'orphaned-runs', everyMs: 2_000, run: orphanedRuns(db, runQueue) },
    { name: 'requested-runs', everyMs: 2_000, run: () => deps.runs.makeRequested({ limit: REQUESTED_BATCH }) },
    { name: 'due-syncs', everyMs: 5_000, run: deps.startDueSyncs },
    { name: 'due-lists', everyMs: 5_000, run: deps.startDueLists },
    { name: 'due-tokens', everyMs: 2_000, run: () => deps.dueTokens.enqueueDue() },
    { name: 'change-feed', everyMs: 1_000, run: () => stampChanges(db) },
    ...(days === undefined ? [] : [{ name: 'old-changes', everyMs: 600_000, run: () => removeOldChanges(db, days) }]),
    { name: 'due-notifications', everyMs: 1_000, run: () => deps.dueNotifications.enqueueDue() },
    { name: 'old-notifications', everyMs: 3_600_000, run: () => deps.deliverer.tidy() },
    { name: 'old-records', everyMs: 3_600_000, run: () => removeOldRecords(db, deps.retention) },
    { name: 'old-notes', everyMs: 3_600_000, run: () => removeOldNotes(db) },
    { name: 'old-flows', everyMs: 3_600_000, run: () => removeOldAuthorizationFlows(db) },
    { name: 'issues', everyMs: 5_000, run: deps.sweepIssues },
    { name: 'nights', everyMs: 10_000, run: deps.sweepNights },
    { name: 'verifications', everyMs: 10_000, run: deps.startVerifications },
    { name: 'schema', everyMs: 2_000, run: deps.sweepSchema },
    { name: 'certificates', everyMs: 2_000, run: deps.signCertificates },
    // Also without exports: what is recorded of it would seem late once they are switched off.
    { name: 'due-exports', everyMs: 5_000, run: async () => dueExports?.enqueueDue() },
    { name: 'privacy', everyMs: 2_000, run: deps.sweepPrivacy },
    { name: 'old-workers', everyMs: 3_600_000, run: () => forgetDeadProcesses(db) },
    { name: 'old-tokens', everyMs: 3_600_000, run: () => removeOldQuarantinedTokens(db, quarantineRetentionDays) },
  ];
}

/** Pending runs that one sweep creates: more than workers finish before the next one, and few enough that a stop need not wait. */
const REQUESTED_BATCH = 1_000;
/** Runs that one sweep offers to the workers; the others are still due at the next. */
const BATCH = 500;
/** If this many jobs wait, it is a large night, in which nearly every unclaimed run has a job. */
const MANY_WAITING = 100;
/** How often a sweep then looks for runs without a job. */
const RARELY_MS = 30_000;

/** Removes what workers and counting processes left behind that could not do so themselves. */
async function forgetDeadProcesses(db: Database): Promise<void> {
  await removeDeadWorkers(db);
  await foldGoneCounts(db);
}

/** Runs whose job was lost, whose worker died, or that waited to retry. */
export function orphanedRuns(db: Database, queue: RunQueue): () => Promise<void> {
  let last = -Infinity;
  return async () => {
    if (performance.now() - last < RARELY_MS && (await queue.waiting()) >= MANY_WAITING) return;
    last = performance.now();
    await queue.dispatch(await findClaimableRuns(db, { limit: BATCH }));
  };
}
