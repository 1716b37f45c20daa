// muster.runs: how a worker gives a claim up without ending its run, and until when the run then waits. A run waits for the end of quiet hours if its
// `quiet_until` is its `start_after`; any other writer of `start_after` thereby ends that.
import type { CompanyKey } from '../../core/company.js';
import type { ErrorView } from '../../core/errors.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { isOf, isQuietWith, type OwnQuietHours } from './connections.js';
import { type RunClaim, STATUS_OF_ONE } from './runs.js';

/** Gives a claim up, so that any worker may go on with the run. Returns whether it still held. */
export async function releaseRun(db: Database, { id, epoch }: RunClaim): Promise<boolean> {
  const released = await db.prisma.$executeRaw`
    UPDATE muster.runs SET holder = NULL WHERE id = ${id}::uuid AND epoch = ${epoch} AND ${STATUS_OF_ONE} = 'running'`;
  return released > 0;
}

/**
 * Gives a claim up after a failed attempt: the run is queued again, and starts in `delaySeconds` at the earliest. If that is in quiet hours, the next
 * claim puts it off. A run that was cancelled is due at once, and the next claim sees the cancellation.
 */
export async function postponeRun(
  db: Database,
  { id, epoch, delaySeconds, error }: RunClaim & { delaySeconds: number; error: ErrorView },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.runs SET status = 'queued', holder = NULL, attempts = attempts + 1, quiet_until = NULL,
      start_after = CASE WHEN cancel_requested THEN now() ELSE now() + make_interval(secs => ${delaySeconds}) END,
      error = ${JSON.stringify(error)}::jsonb
    WHERE id = ${id}::uuid AND epoch = ${epoch} AND ${STATUS_OF_ONE} = 'running'`;
}

/**
 * Gives a claim up for quiet hours: the run is queued again until their end, at no cost of an attempt. `isAsked`: this attempt has asked the service,
 * so that the error of an earlier one is no longer the last. A run whose walks were never opened has not started. Does nothing, and returns false, if the
 * claim no longer holds, or if the quiet hours of the company are no longer `quietHours`: the lock of its connection keeps a change of them from passing
 * over this run.
 */
export async function putOffRun(
  db: Database,
  {
    id,
    epoch,
    company,
    quietHours,
    quietUntil,
    isAsked,
  }: RunClaim & OwnQuietHours & { company: CompanyKey; quietUntil: Date; isAsked: boolean },
): Promise<boolean> {
  const putOff = await db.prisma.$executeRaw`
    WITH connection AS (SELECT quiet_hours FROM muster.connections WHERE ${isOf(company)} FOR SHARE)
    UPDATE muster.runs SET status = 'queued', holder = NULL, quiet_until = ${quietUntil}::timestamptz,
      start_after = CASE WHEN cancel_requested THEN now() ELSE ${quietUntil}::timestamptz END,
      error = CASE WHEN ${isAsked}::boolean THEN NULL ELSE error END,
      started_at = CASE WHEN (SELECT min(w.started_at) FROM muster.walks w WHERE w.run_id = runs.id) IS NULL THEN NULL ELSE started_at END
    FROM connection WHERE connection.quiet_hours IS NOT DISTINCT FROM ${quietHours}::text
      AND id = ${id}::uuid AND epoch = ${epoch} AND ${STATUS_OF_ONE} = 'running'`;
  return putOff > 0;
}

/**
 * Has the runs that wait for the end of quiet hours wait until this time, or start where it is null, since their quiet hours have changed: the runs
 * of one company, or of all companies that have those of the installation. Passes over runs that a worker is claiming.
 */
export async function moveQuietRuns(
  tx: Pick<Transaction, '$executeRaw'>,
  { company, until }: { company: CompanyKey | undefined; until: Date | null },
): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.runs SET start_after = COALESCE(${until}::timestamptz, now()), quiet_until = ${until}::timestamptz
    WHERE id = ANY(ARRAY(
      SELECT id FROM muster.runs WHERE status = 'queued' AND quiet_until = start_after AND start_after > now()
        AND start_after IS DISTINCT FROM ${until}::timestamptz AND ${isQuietWith(company, 'muster.runs')}
      FOR NO KEY UPDATE SKIP LOCKED))`;
}
