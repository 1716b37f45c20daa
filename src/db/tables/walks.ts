// muster.walks: one list of one company read once, and how far it is. The walk itself writes under the lock of its list (lists.ts), whoever
// ends the run under that of the run (runs.ts). Locked behind both.
import type { CompanyKey } from '../../core/company.js';
import type { ErrorView } from '../../core/errors.js';
import { Prisma, type Walk } from '../../generated/prisma/client.js';
import type { Transaction } from '../transaction.js';
import { isOf } from './connections.js';
import { moveLedger } from './ledger.js';
import { fenced, fenceListOfCheckpoint, type ListKey, lockList } from './lists.js';

/** A walk has the states of its run, and ends with it at the latest. */
export type WalkStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export type EndStatus = Exclude<WalkStatus, 'queued' | 'running'>;

export interface WalkRow extends Omit<Walk, 'status' | 'error'> {
  readonly status: WalkStatus;
  readonly error: ErrorView | null;
}

/** `position` counts from 0 within the run. */
export function insertWalks(
  tx: Transaction,
  { walks }: { walks: readonly (CompanyKey & Pick<Walk, 'runId' | 'resource' | 'position'>)[] },
): Promise<{ id: string; runId: string; position: number }[]> {
  return tx.$queryRaw`
    INSERT INTO muster.walks (run_id, environment, company_id, resource, position)
    SELECT * FROM unnest(${walks.map(({ runId }) => runId)}::uuid[], ${walks.map(({ environment }) => environment)}::text[],
      ${walks.map(({ companyId }) => companyId)}::uuid[], ${walks.map(({ resource }) => resource)}::text[],
      ${walks.map(({ position }) => position)}::int[])
    RETURNING id, run_id AS "runId", position`;
}

/** A walk of an earlier run, as far as planning the next run needs it. */
export type EarlierWalk = CompanyKey & Pick<Walk, 'id' | 'resource'> & { readonly succeeded: boolean };

export async function walksOfRuns(tx: Transaction, { runIds }: { runIds: readonly string[] }): Promise<EarlierWalk[]> {
  if (runIds.length === 0) return [];
  return tx.$queryRaw`
    SELECT id, environment, company_id AS "companyId", resource, status = 'succeeded' AS succeeded
    FROM muster.walks WHERE run_id = ANY(${runIds}::uuid[])`;
}

/**
 * The checkpoint and the counts of its pass move from one walk to another, with their ledger and their rejected records. Does nothing
 * where there is no checkpoint. The list's epoch moves first: a worker that was frozen in the earlier walk would otherwise wake up
 * without its ledger, and take every row for gone.
 */
export async function takeOverCheckpoint(tx: Transaction, { from, to }: { from: string; to: string }): Promise<void> {
  if (!(await fenceListOfCheckpoint(tx, { walkId: from }))) return;
  await tx.$executeRaw`
    UPDATE muster.walks w SET checkpoint = e.checkpoint, checkpoint_at = e.checkpoint_at, fingerprint = e.fingerprint, pass = e.pass,
      pass_started_at = e.pass_started_at, received = e.received, duplicates = e.duplicates, rejected = e.rejected, total_records = e.total_records
    FROM muster.walks e WHERE w.id = ${to}::uuid AND e.id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL WHERE id = ${from}::uuid`;
  await moveLedger(tx, { from, to });
}

/** Ends the walks of a run that have not succeeded. A walk that has failed keeps its own error. */
export async function endWalks(
  tx: Transaction,
  { runId, status, error }: { runId: string; status: EndStatus; error?: ErrorView | undefined },
): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.walks SET status = ${status}, finished_at = COALESCE(finished_at, now()),
      error = COALESCE(error, ${error ? JSON.stringify(error) : null}::jsonb)
    WHERE run_id = ${runId}::uuid AND status <> 'succeeded'`;
}

/** A walk as the worker knows it that has opened it. */
export interface WalkClaim {
  readonly id: string;
  readonly list: ListKey;
  readonly epoch: bigint;
  /** Pages that it has committed. The database must know them too: a server that crashed or was replaced by its replica may have lost some. */
  readonly pages: number;
}

/** Locks the list, and the walk with it: neither was taken by another worker, and the run was not ended behind our back. */
export async function lockWalk(tx: Transaction, { id, list, epoch, pages }: WalkClaim): Promise<void> {
  await lockList(tx, list, epoch);
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM muster.walks WHERE id = ${id}::uuid AND epoch = ${epoch} AND status = 'running' AND pages = ${pages} FOR UPDATE`;
  if (rows.length === 0) throw fenced(list, 'the walk has ended or stands elsewhere');
}

/** What a walk is opened with. */
interface WalkOpening extends Pick<Walk, 'id' | 'epoch' | 'fingerprint' | 'baselineWalkId' | 'startedAt' | 'startedEmpty'> {
  /** Goes on from the checkpoint; otherwise the pass begins now. */
  readonly resumes: boolean;
  /** Whether that counts as a resumption that a person wants to hear of. */
  readonly countsAsResumed: boolean;
}

/** A pass begins by the database's clock: last_verified_at is compared with other times that it made. */
export async function startWalk(tx: Transaction, walk: WalkOpening): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.walks
    SET status = 'running', epoch = ${walk.epoch}, fingerprint = ${walk.fingerprint}, baseline_walk_id = ${walk.baselineWalkId}::uuid,
      error = NULL, started_at = COALESCE(started_at, ${walk.startedAt}), resumed = resumed OR ${walk.resumes && walk.countsAsResumed},
      started_empty = ${walk.startedEmpty}, pass_started_at = CASE WHEN ${walk.resumes} THEN pass_started_at ELSE now() END
    WHERE id = ${walk.id}::uuid`;
}

/**
 * Begins another pass: from the start of the list, or, in a walk over many parents, from the start of one parent's list. The counts are
 * what the passes before, over the lists of parents, have brought.
 */
export async function startPass(
  tx: Transaction,
  start: Pick<Walk, 'pass' | 'received' | 'duplicates'> & { walkId: string; checkpoint: object },
  from: 'list' | 'parent',
): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.walks SET pass = ${start.pass}, checkpoint = ${JSON.stringify(start.checkpoint)}::jsonb, checkpoint_at = now(),
      received = ${start.received}, duplicates = ${start.duplicates},
      pass_started_at = CASE WHEN ${from === 'list'} THEN now() ELSE pass_started_at END,
      rejected = CASE WHEN ${from === 'list'} THEN 0 ELSE rejected END
    WHERE id = ${start.walkId}::uuid`;
}

/** Back to the beginning of the walk. */
export async function resetWalk(tx: Transaction, id: string): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL, pass = 1, received = 0, duplicates = 0, rejected = 0
    WHERE id = ${id}::uuid`;
}

/** Makes every walk of the list that was interrupted begin anew. */
export async function dropCheckpoints(tx: Transaction, list: ListKey): Promise<void> {
  await tx.walk.updateMany({ where: list, data: { checkpoint: Prisma.DbNull, checkpointAt: null } });
}

/** Says that somebody has put records into the mirror by hand while the walk filled an empty list. */
export async function noteForeignRecords(tx: Pick<Transaction, 'walk'>, id: string): Promise<void> {
  await tx.walk.update({ where: { id }, data: { startedEmpty: false } });
}

/** Counts rows that the walk, or the approval of its hold, has marked deleted. */
export async function addDeleted(tx: Transaction, id: string, deleted: number): Promise<void> {
  await tx.walk.update({ where: { id }, data: { deleted: { increment: deleted } } });
}

/** Marks the walk as failed unless it has succeeded; returns whether it did so. */
export async function failWalk(tx: Transaction, id: string, error: object): Promise<boolean> {
  const { count } = await tx.walk.updateMany({
    where: { id, status: { not: 'succeeded' } },
    data: { status: 'failed', error: { ...error } },
  });
  return count > 0;
}

/** `proof` is there where the walk was verified, or else `unverifiedReason`. */
export async function succeedWalk(
  tx: Transaction,
  { id, ...end }: Pick<Walk, 'id' | 'keysDigest' | 'reusable' | 'finishedAt' | 'proof' | 'unverifiedReason'>,
): Promise<void> {
  const data = { ...end, status: 'succeeded', checkpoint: Prisma.DbNull, verified: end.proof !== null };
  await tx.walk.update({ where: { id }, data });
}

/**
 * The walk that one opened at this epoch may go by: reusable, the very last to write to the list, and of the same catalogue entry. Then
 * every record it received stands in the mirror with the text it had. By a subselect and not by a join, for which PostgreSQL may read
 * all walks.
 */
export async function findReusableWalk(
  tx: Transaction,
  { environment, companyId, resource }: ListKey,
  { epoch, fingerprint }: { readonly epoch: bigint; readonly fingerprint: string },
): Promise<string | null> {
  const [row] = await tx.$queryRaw<{ id: string }[]>`
    SELECT id FROM muster.walks
    WHERE id = (
      SELECT verified_walk_id FROM muster.lists
      WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}
    ) AND reusable AND epoch = ${epoch - 1n} AND fingerprint = ${fingerprint}`;
  return row?.id ?? null;
}

/** The digest of the keys that a walk received, if no hold refers to it: then no other row of its list was left living. */
export async function findKeysDigest(db: Pick<Transaction, '$queryRaw'>, walkId: string): Promise<string | undefined> {
  const [row] = await db.$queryRaw<{ digest: string | null }[]>`
    SELECT keys_digest AS digest FROM muster.walks w
    WHERE id = ${walkId}::uuid AND NOT EXISTS (SELECT 1 FROM muster.holds h WHERE h.walk_id = w.id)`;
  return row?.digest ?? undefined;
}

/** Ends the walks of a company that is removed, and forgets their checkpoints, which hold the company's data. */
export async function eraseWalksOf(tx: Transaction, company: CompanyKey): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL,
      status = CASE WHEN status IN ('queued', 'running') THEN 'cancelled' ELSE status END, finished_at = COALESCE(finished_at, now())
    WHERE ${isOf(company)}`;
}
