// muster.walks: one list of one company, read once, with its progress. The walk writes under the lock of its list (lists.ts); the end of
// the run is written under that of the run (runs.ts). Lock order: list, run, walk. A row of kind `verify` is a verification (second-readings.ts).
import type { CompanyKey } from '../../core/company.js';
import type { ErrorView } from '../../core/errors.js';
import { Prisma, type Walk } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { runStep } from '../connection/step.js';
import type { Transaction } from '../connection/transaction.js';
import { recordBarrier } from './barriers.js';
import { recordCertificate } from './certificates.js';
import { isOf } from './connections.js';
import { HOLD_OF_WALK, type HoldOfWalk, supersedeHolds } from './holds.js';
import { clearLedgers, moveLedger } from './ledger.js';
import {
  fenced,
  fenceListOfCheckpoint,
  isOfList,
  type ListKey,
  lockList,
  recordUnavailable,
  recordUnverified,
  recordVerified,
  UNAVAILABLE,
  type VerifiedWalk,
} from './lists.js';

/** The purpose of a run: to walk lists, or to read them a second time and compare. */
export type RunKind = 'sync' | 'verify';

/** A walk has the states of its run, and ends with it at the latest. */
export const WALK_STATUSES = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const;
export type WalkStatus = (typeof WALK_STATUSES)[number];
export type EndStatus = Exclude<WalkStatus, 'queued' | 'running'>;

export interface WalkRow extends Omit<Walk, 'kind' | 'status' | 'error'> {
  readonly status: WalkStatus;
  readonly error: ErrorView | null;
}

/** A walk as people see it. */
export type ShownWalk = Pick<
  WalkRow,
  | 'resource'
  | 'status'
  | 'verified'
  | 'proof'
  | 'unverifiedReason'
  | 'unverifiedDetail'
  | 'serviceSays'
  | 'pages'
  | 'pass'
  | 'received'
  | 'inserted'
  | 'updated'
  | 'unchanged'
  | 'deleted'
  | 'rejected'
  | 'duplicates'
  | 'totalRecords'
  | 'resumed'
  | 'verify'
  | 'startedAt'
  | 'finishedAt'
  | 'error'
> & {
  /** Records of the list at its last proof, in a run that goes on. */
  readonly recordsAtProof?: number | null | undefined;
  readonly hold?: HoldOfWalk | null;
};

/** A walk of `WALKS_OF_RUN`, whose times are texts. */
export type ShownWalkJson = Omit<ShownWalk, 'startedAt' | 'finishedAt'> & Record<'startedAt' | 'finishedAt', string | null>;

/** The walks of a row of muster.runs as a JSON array, in order. */
export const WALKS_OF_RUN = Prisma.sql`COALESCE((
  SELECT jsonb_agg(jsonb_build_object('resource', resource, 'status', w.status, 'verified', verified, 'proof', proof,
    'unverifiedReason', unverified_reason, 'unverifiedDetail', unverified_detail, 'serviceSays', service_says, 'pages', pages, 'pass', pass, 'received', received, 'inserted', inserted, 'updated', updated,
    'unchanged', unchanged, 'deleted', deleted, 'rejected', rejected, 'duplicates', duplicates, 'totalRecords', total_records,
    'resumed', resumed, 'verify', verify, 'recordsAtProof', CASE WHEN runs.status IN ('queued', 'running') THEN (SELECT l.records FROM muster.lists l WHERE l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource AND l.last_verified_at IS NOT NULL) END, 'startedAt', w.started_at, 'finishedAt', w.finished_at, 'error', w.error,
    'hold', ${HOLD_OF_WALK}) ORDER BY position)
  FROM muster.walks w WHERE w.run_id = runs.id), '[]')`;

export function readShownWalk({ startedAt, finishedAt, ...walk }: ShownWalkJson): ShownWalk {
  return {
    ...walk,
    startedAt: startedAt === null ? null : new Date(startedAt),
    finishedAt: finishedAt === null ? null : new Date(finishedAt),
  };
}

/** `position` counts from 0 within the run. */
export function insertWalks(
  tx: Transaction,
  { walks, kind }: { walks: readonly (CompanyKey & Pick<Walk, 'runId' | 'resource' | 'position'>)[]; kind: RunKind },
): Promise<{ id: string; runId: string; position: number }[]> {
  return tx.$queryRaw`
    INSERT INTO muster.walks (run_id, environment, company_id, resource, position, kind)
    SELECT asked.*, ${kind} FROM unnest(${walks.map(({ runId }) => runId)}::uuid[], ${walks.map(({ environment }) => environment)}::text[],
      ${walks.map(({ companyId }) => companyId)}::uuid[], ${walks.map(({ resource }) => resource)}::text[],
      ${walks.map(({ position }) => position)}::int[]) AS asked
    RETURNING id, run_id AS "runId", position`;
}

/** A walk of an earlier run, as planning the next run needs it. */
export type EarlierWalk = CompanyKey & Pick<Walk, 'id' | 'resource'> & { readonly succeeded: boolean };

export async function walksOfRuns(tx: Transaction, { runIds }: { runIds: readonly string[] }): Promise<EarlierWalk[]> {
  if (runIds.length === 0) return [];
  return tx.$queryRaw`
    SELECT id, environment, company_id AS "companyId", resource, status = 'succeeded' AS succeeded
    FROM muster.walks WHERE run_id = ANY(${runIds}::uuid[])`;
}

/**
 * Moves the checkpoint and the counts of its pass from one walk to another, with their ledger and their rejected records. Does nothing
 * without a checkpoint. The list's epoch moves first: otherwise a worker frozen in the earlier walk would wake up
 * without its ledger, and consider every row deleted.
 */
export async function takeOverCheckpoint(tx: Transaction, { from, to }: { from: string; to: string }): Promise<void> {
  if (!(await fenceListOfCheckpoint(tx, { walkId: from }))) return;
  await tx.$executeRaw`
    UPDATE muster.walks w SET checkpoint = e.checkpoint, checkpoint_at = e.checkpoint_at, fingerprint = e.fingerprint,
      grant_number = e.grant_number, pass = e.pass,
      pass_started_at = e.pass_started_at, received = e.received, duplicates = e.duplicates, rejected = e.rejected, total_records = e.total_records
    FROM muster.walks e WHERE w.id = ${to}::uuid AND e.id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL WHERE id = ${from}::uuid`;
  await moveLedger(tx, { from, to });
}

/** SQL: ends the unfinished walks of the runs in `ended`. A failed walk keeps its own error; others get the run's. */
export function endWalks(status: EndStatus): Prisma.Sql {
  return Prisma.sql`walks AS (
    UPDATE muster.walks w SET status = ${status}, finished_at = COALESCE(w.finished_at, now()),
      error = COALESCE(w.error, ended.error)
    FROM ended WHERE w.run_id = ended.id AND w.status <> 'succeeded')`;
}

/** A walk as the worker that has opened it knows it. */
export interface WalkClaim {
  readonly id: string;
  readonly list: ListKey;
  readonly epoch: bigint;
  /** Pages that it has committed. The database must agree: a server that crashed or was replaced by its replica may have lost some. */
  readonly pages: number;
}

/** Locks the list and the walk: no other worker took them, and the run was not ended in between. */
export async function lockWalk(tx: Transaction, { id, list, epoch, pages }: WalkClaim): Promise<void> {
  await lockList(tx, list, epoch);
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM muster.walks WHERE id = ${id}::uuid AND epoch = ${epoch} AND status = 'running' AND pages = ${pages} FOR UPDATE`;
  if (rows.length === 0) throw fenced(list, 'the walk has ended or stands elsewhere');
}

/** Records that the list had no row when the walk began, and that no other worker has written to it since. */
export async function recordStartedEmpty(
  db: Pick<Database, 'prisma'>,
  { id, epoch }: { id: string; epoch: bigint },
): Promise<void> {
  await db.prisma.walk.updateMany({ where: { id, epoch }, data: { startedEmpty: true } });
}

/**
 * Begins another pass: from the start of the list or, in a walk over many parents, from the start of one parent's list. The counts are
 * the counts of earlier passes, over the lists of other parents.
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

/** Starts the walk again from the beginning. */
export async function resetWalk(tx: Transaction, id: string): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL, pass = 1, received = 0, duplicates = 0, rejected = 0
    WHERE id = ${id}::uuid`;
}

/** Makes every interrupted walk of the list begin again. */
export async function dropCheckpoints(tx: Transaction, list: ListKey): Promise<void> {
  await tx.walk.updateMany({ where: list, data: { checkpoint: Prisma.DbNull, checkpointAt: null } });
}

/** Records that a person put records into the mirror by hand while the walk filled an empty list. */
export async function recordForeignRecords(tx: Pick<Transaction, 'walk'>, id: string): Promise<void> {
  await tx.walk.update({ where: { id }, data: { startedEmpty: false } });
}

/** Counts rows that the walk, or the approval of its hold, has marked deleted. */
export async function addDeleted(tx: Transaction, id: string, deleted: number): Promise<void> {
  await tx.walk.update({ where: { id }, data: { deleted: { increment: deleted } } });
}

/** Marks the walk as failed unless it has succeeded; returns whether it did so. */
export async function failWalk(
  tx: Transaction,
  id: string,
  { error, serviceSays = null }: { readonly error: object; readonly serviceSays?: string | null | undefined },
): Promise<boolean> {
  const { count } = await tx.walk.updateMany({
    where: { id, status: { not: 'succeeded' } },
    data: { status: 'failed', error: { ...error }, serviceSays },
  });
  return count > 0;
}

/** The outcome of a walk that read its list to the end. `proof` is set if it was verified, otherwise `unverifiedReason`. */
export type WalkEnd = Pick<
  Walk,
  'keysDigest' | 'reusable' | 'finishedAt' | 'proof' | 'unverifiedReason' | 'unverifiedDetail' | 'serviceSays'
> &
  VerifiedWalk;

/**
 * Ends a walk that read its list to the end, with what its proof means for the list (lists.ts), readers of the feed (barriers.ts), its certificate
 * (certificates.ts), the holds of earlier walks (holds.ts) and the ledgers (ledger.ts): as a step, or as a statement of a transaction. Throws `fenced`.
 */
export async function succeedWalk(by: Pick<Database, 'steps'> | Transaction, walk: WalkClaim, end: WalkEnd): Promise<void> {
  const statement = statementOfSuccess(walk, end);
  const ended = 'steps' in by ? await runStep(by, statement) : await by.$queryRaw<unknown[]>(statement);
  if (ended.length === 0) throw fenced(walk.list, 'another worker has taken it over, or the walk has ended or stands elsewhere');
}

function statementOfSuccess({ id, list, epoch, pages }: WalkClaim, end: WalkEnd): Prisma.Sql {
  const isVerified = end.proof !== null;
  const keeps = isVerified ? Prisma.sql`walk.id` : Prisma.sql`walk.verified_walk_id`;
  return Prisma.sql`
    WITH list AS (
      SELECT verified_walk_id, records FROM muster.lists WHERE ${isOfList(list)} AND epoch = ${epoch}::bigint FOR UPDATE
    ), walk AS (
      SELECT w.id, w.run_id, w.started_at, w.pass_started_at, w.received, w.inserted, w.updated, w.unchanged, w.deleted, w.total_records,
        w.fingerprint, w.grant_number, list.verified_walk_id, list.records
      FROM list CROSS JOIN muster.walks w
      WHERE w.id = ${id}::uuid AND w.epoch = ${epoch}::bigint AND w.status = 'running' AND w.pages = ${pages}::int FOR UPDATE OF w
    ), ${isVerified ? proofOf(list, end) : end.unverifiedReason === UNAVAILABLE ? recordUnavailable(list) : recordUnverified(list, end)},
    ${clearLedgers(list, keeps)}
    UPDATE muster.walks w SET status = 'succeeded', verified = ${isVerified}, checkpoint = NULL, keys_digest = ${end.keysDigest},
      reusable = ${end.reusable}, finished_at = ${end.finishedAt}, proof = ${end.proof}, unverified_reason = ${end.unverifiedReason},
      unverified_detail = ${end.unverifiedDetail}, service_says = ${end.serviceSays},
      records = walk.records
    FROM walk WHERE w.id = walk.id
    RETURNING w.id`;
}

function proofOf(list: ListKey, end: WalkEnd): Prisma.Sql {
  return Prisma.sql`${supersedeHolds(list)}, ${recordVerified(list, end)}, ${recordBarrier(list)}, ${recordCertificate(list, end)}`;
}

/**
 * SQL: the rest of unfinished runs, by the totals that their lists told or held at their last proof, and the pace at which their walks received records
 * since the run began, which is unknown if it has waited for quiet hours since. `left` is null if neither is known for one of the lists.
 */
const UNDER_WAY = Prisma.sql`
  SELECT r.id, r.environment,
    CASE WHEN bool_and(COALESCE(w.total_records, l.records) IS NOT NULL OR w.status = 'succeeded')
      THEN sum(GREATEST(0, COALESCE(w.total_records, l.records) - w.received)) FILTER (WHERE w.status <> 'succeeded') END AS "left",
    CASE WHEN r.status = 'running' AND (r.quiet_until > r.started_at) IS NOT TRUE THEN sum(w.received) / NULLIF(extract(epoch FROM now() - r.started_at), 0) END AS pace, r.status
  FROM muster.runs r JOIN muster.walks w ON w.run_id = r.id
  LEFT JOIN muster.lists l ON l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource
    AND l.last_verified_at IS NOT NULL
  WHERE r.status IN ('queued', 'running')`;

/** How long running runs still take at their own pace, in seconds, by run id. Runs without a known pace are left out. */
export async function estimateRuns(
  db: Pick<Transaction, '$queryRaw'>,
  { ids }: { ids: readonly string[] },
): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await db.$queryRaw<{ id: string; seconds: number | null }[]>`
    SELECT id, ceil("left" / NULLIF(pace, 0))::float8 AS seconds FROM (${UNDER_WAY} AND r.id = ANY(${ids}::uuid[]) GROUP BY r.id) u`;
  return new Map(rows.flatMap(({ id, seconds }) => (seconds === null ? [] : [[id, seconds] as const])));
}

/**
 * How long all unfinished runs of an environment still take at the pace of the running ones, the average for those of unknown pace; null if it is not known.
 * Rows of a FROM: environment and seconds.
 */
export const NIGHTS_LEFT = Prisma.sql`(
  SELECT environment, CASE WHEN bool_and("left" IS NOT NULL) THEN ceil(sum("left") / NULLIF(avg(pace) * count(*) FILTER (WHERE status = 'running'), 0)) END::float8 AS seconds
  FROM (${UNDER_WAY} GROUP BY r.id) u GROUP BY environment) AS night`;

export function estimateNight(db: Pick<Transaction, '$queryRaw'>): Promise<{ environment: string; seconds: number | null }[]> {
  return db.$queryRaw`SELECT environment, seconds FROM ${NIGHTS_LEFT} ORDER BY environment`;
}

/** Ends the walks of a removed company, and deletes their checkpoints and the service's sentences, which may hold the company's data. */
export async function eraseWalksOf(tx: Transaction, company: CompanyKey): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL, service_says = NULL,
      status = CASE WHEN status IN ('queued', 'running') THEN 'cancelled' ELSE status END, finished_at = COALESCE(finished_at, now())
    WHERE ${isOf(company)}`;
}
