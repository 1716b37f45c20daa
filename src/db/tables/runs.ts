// muster.runs: one sync of one company. Requests insert a row, the worker that has claimed it writes it under the claim's epoch; cancelling
// and removing a company write it, too. Lock order: connections, lists, runs, walks. A new run's row is nobody else's to lock, so that its
// walks may take lists over.
import type { CompanyKey, Environment } from '../../core/company.js';
import { type ErrorView, MusterError } from '../../core/errors.js';
import { Prisma, type Run } from '../../generated/prisma/client.js';
import { newestFirst, type Page, type PageQuery, pageBySeq } from '../cursor.js';
import type { Database } from '../database.js';
import type { Transaction } from '../transaction.js';
import { isOf, rowsOf } from './connections.js';
import type { EndStatus, WalkRow, WalkStatus } from './walks.js';

export type RunStatus = WalkStatus;
export type RunTrigger = 'onboarding' | 'nightly' | 'manual' | 'reauthorization' | 'resync';
export type RunMode = 'resume' | 'full';

/** A run with its walks in order. */
export interface RunRow extends Omit<Run, 'environment' | 'trigger' | 'mode' | 'status' | 'error'> {
  readonly environment: Environment;
  readonly trigger: RunTrigger;
  readonly mode: RunMode;
  readonly status: RunStatus;
  readonly error: ErrorView | null;
  readonly walks: readonly WalkRow[];
}

/** A claim on a run: `epoch` names it, and a later claim by anyone ends it. */
export type RunClaim = Pick<Run, 'id' | 'epoch'>;

/** A run that a worker has claimed, and the walks that are left of it, in order. */
export interface ClaimedRun extends RunClaim, Pick<Run, 'attempts' | 'cancelRequested'> {
  readonly company: CompanyKey;
  readonly walks: readonly WalkToDo[];
}

/** `position` counts from 0 within the run; `pages` are committed. */
export type WalkToDo = Pick<WalkRow, 'id' | 'resource' | 'position' | 'pages'>;

/**
 * How long a worker may be silent before its run is anyone's. Too short only costs a takeover, since the epoch keeps the slow
 * worker from writing; too long leaves the runs of a dead worker lying.
 */
const CLAIM_TIMEOUT_SECONDS = 5;

/**
 * Whether the company of a row of muster.runs is paused: nothing is asked of the service for it. By a value and not by EXISTS, for which
 * PostgreSQL may read all companies instead of looking one up.
 */
const IS_PAUSED = Prisma.sql`(COALESCE((
  SELECT c.status FROM muster.connections c WHERE c.environment = runs.environment AND c.company_id = runs.company_id), '') = 'paused')`;

const IS_CLAIMABLE = Prisma.sql`(status IN ('queued', 'running') AND start_after <= now()
  AND (holder IS NULL OR heartbeat_at < now() - make_interval(secs => ${CLAIM_TIMEOUT_SECONDS})) AND (cancel_requested OR NOT ${IS_PAUSED}))`;

const WITH_WALKS = { walks: { orderBy: { position: 'asc' } } } as const;

export async function findRun(db: Database, { id }: { id: string }): Promise<RunRow | undefined> {
  return ((await db.prisma.run.findUnique({ where: { id }, include: WITH_WALKS })) ?? undefined) as RunRow | undefined;
}

export type RunFilter = Partial<Pick<RunRow, 'companyId' | 'environment' | 'status'>> & PageQuery;

/** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
export async function listRuns(db: Database, filter: RunFilter): Promise<Page<RunRow>> {
  const rows = await db.prisma.run.findMany({ ...newestFirst(filter), include: WITH_WALKS });
  return pageBySeq(rows as unknown as RunRow[], filter.limit);
}

export type LastRun = CompanyKey & Pick<RunRow, 'id' | 'epoch' | 'status' | 'createdAt' | 'finishedAt'>;

/** Of each company its active run or else its last one. By LATERAL, which looks them up, however many runs there are. */
export async function lastRunsOf(tx: Transaction, { companies }: { companies: readonly CompanyKey[] }): Promise<LastRun[]> {
  if (companies.length === 0) return [];
  return tx.$queryRaw`
    SELECT last.id, last.epoch, last.environment, last.company_id AS "companyId", last.status, last.created_at AS "createdAt",
      last.finished_at AS "finishedAt"
    FROM ${rowsOf(companies)} CROSS JOIN LATERAL (
      (SELECT r.* FROM muster.runs r
       WHERE r.environment = asked.environment AND r.company_id = asked.company_id AND r.status IN ('queued', 'running') LIMIT 1)
      UNION ALL
      (SELECT r.* FROM muster.runs r
       WHERE r.environment = asked.environment AND r.company_id = asked.company_id ORDER BY r.seq DESC LIMIT 1)
      LIMIT 1
    ) last`;
}

/** Runs that wait to retry start now. */
export async function startRunsNow(tx: Transaction, { ids }: { ids: readonly string[] }): Promise<void> {
  if (ids.length === 0) return;
  await tx.$executeRaw`UPDATE muster.runs SET start_after = now() WHERE id = ANY(${ids}::uuid[]) AND start_after > now()`;
}

/** Adds a queued run of each company, without walks. The caller has locked the connections: a company has one active run. */
export function insertRuns(
  tx: Transaction,
  { companies, trigger, mode }: { companies: readonly CompanyKey[]; trigger: RunTrigger; mode: RunMode },
): Promise<(CompanyKey & RunClaim)[]> {
  return tx.$queryRaw`
    INSERT INTO muster.runs (environment, company_id, trigger, mode)
    SELECT environment, company_id, ${trigger}, ${mode} FROM ${rowsOf(companies)}
    RETURNING id, epoch, environment, company_id AS "companyId"`;
}

/** Claims the run if it is due and nobody alive has it. While the company is paused its run only waits, or is cancelled. */
export async function claimRun(db: Database, { id, worker }: { id: string; worker: string }): Promise<ClaimedRun | undefined> {
  const [row] = await db.prisma.$queryRaw<(Omit<ClaimedRun, 'company'> & CompanyKey)[]>`
    UPDATE muster.runs SET status = 'running', epoch = epoch + 1, holder = ${worker}, heartbeat_at = now(),
      started_at = COALESCE(started_at, now())
    WHERE id = ${id}::uuid AND ${IS_CLAIMABLE}
    RETURNING id, epoch, environment, company_id AS "companyId", attempts, cancel_requested AS "cancelRequested", COALESCE((
      SELECT jsonb_agg(jsonb_build_object('id', id, 'resource', resource, 'position', position, 'pages', pages) ORDER BY position)
      FROM muster.walks WHERE run_id = runs.id AND walks.status <> 'succeeded'), '[]') AS walks`;
  if (!row) return undefined;
  const { environment, companyId, ...run } = row;
  return { ...run, company: { environment, companyId } };
}

/** Runs that `claimRun` would give, oldest first. */
export function findClaimableRuns(db: Database, { limit }: { limit: number }): Promise<RunClaim[]> {
  return db.prisma.$queryRaw`SELECT id, epoch FROM muster.runs WHERE ${IS_CLAIMABLE} ORDER BY seq LIMIT ${limit}`;
}

/**
 * Says that the worker works on these runs, and on no other: a claim whose work ended in an error that kept it from being released must
 * lapse. Returns the claims that still stand, and what their workers must know.
 */
export function renewClaims(
  db: Database,
  { ids, worker }: { ids: readonly string[]; worker: string },
): Promise<(RunClaim & { cancelRequested: boolean; paused: boolean })[]> {
  return db.prisma.$queryRaw`
    UPDATE muster.runs SET heartbeat_at = now() WHERE id = ANY(${ids}::uuid[]) AND holder = ${worker} AND status = 'running'
    RETURNING id, epoch, cancel_requested AS "cancelRequested", ${IS_PAUSED} AS paused`;
}

/** Gives a claim up, so that anyone may go on with the run. Returns whether the claim still stood. */
export async function releaseRun(db: Database, { id, epoch }: RunClaim): Promise<boolean> {
  const released = await db.prisma.$executeRaw`
    UPDATE muster.runs SET holder = NULL WHERE id = ${id}::uuid AND epoch = ${epoch} AND status = 'running'`;
  return released > 0;
}

/** Gives a claim up after an attempt that failed: the run is queued again, and starts no sooner than in `delaySeconds`. */
export async function postponeRun(
  db: Database,
  { id, epoch, delaySeconds, error }: RunClaim & { delaySeconds: number; error: ErrorView },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.runs SET status = 'queued', holder = NULL, attempts = attempts + 1,
      start_after = now() + make_interval(secs => ${delaySeconds}), error = ${JSON.stringify(error)}::jsonb
    WHERE id = ${id}::uuid AND epoch = ${epoch} AND status = 'running'`;
}

/** Ends a run under a claim; its walks are the caller's to end. Returns whether the claim still stood. */
export async function endRun(
  tx: Transaction,
  { id, epoch, status, error }: RunClaim & { status: EndStatus; error?: ErrorView | undefined },
): Promise<boolean> {
  const ended = await tx.$executeRaw`
    UPDATE muster.runs SET status = ${status}, holder = NULL, finished_at = now(), error = ${error ? JSON.stringify(error) : null}::jsonb
    WHERE id = ${id}::uuid AND epoch = ${epoch} AND status = 'running'`;
  return ended > 0;
}

/**
 * A running run ends before its next page, by its worker or by whoever claims it next. A run that has ended stays as it is. Returns
 * whether the run was queued and is cancelled now; its walks are the caller's to end.
 */
export async function cancelRun(tx: Transaction, { id }: { id: string }): Promise<boolean> {
  const [run] = await tx.$queryRaw<{ ended: boolean }[]>`
    UPDATE muster.runs SET cancel_requested = true, start_after = now(),
      status = CASE WHEN status = 'queued' THEN 'cancelled' ELSE status END, finished_at = CASE WHEN status = 'queued' THEN now() END
    WHERE id = ${id}::uuid AND status IN ('queued', 'running') RETURNING status = 'cancelled' AS ended`;
  return run?.ended ?? false;
}

/**
 * Locks the run until the transaction ends, or throws `fenced` when the run is over or somebody else has claimed it since. Without the
 * lock, a worker that was frozen could begin, on waking, a walk that its successor has finished.
 */
export async function lockRun(tx: Transaction, { id, epoch }: RunClaim): Promise<{ trigger: string; mode: string }> {
  const [row] = await tx.$queryRaw<{ trigger: string; mode: string }[]>`
    SELECT trigger, mode FROM muster.runs WHERE id = ${id}::uuid AND epoch = ${epoch} AND status = 'running' FOR SHARE`;
  if (!row) throw new MusterError('fenced', `The run ${id} is no longer ours: another worker claimed it, or it is over.`);
  return row;
}

/** Runs that have not ended. */
export function countActiveRuns(db: Database): Promise<{ status: RunStatus; count: number }[]> {
  return db.prisma.$queryRaw`
    SELECT s.status, count(r.id)::int AS count FROM (VALUES ('queued'), ('running')) AS s(status)
    LEFT JOIN muster.runs r ON r.status = s.status AND r.status IN ('queued', 'running') GROUP BY s.status`;
}

/** Active companies by the status of their last run that ended. */
export function countLastRuns(db: Database): Promise<{ status: EndStatus; count: number }[]> {
  return db.prisma.$queryRaw`
    SELECT r.status, count(*)::int AS count FROM muster.connections c CROSS JOIN LATERAL (
      SELECT status FROM muster.runs r
      WHERE r.environment = c.environment AND r.company_id = c.company_id AND r.finished_at IS NOT NULL
      ORDER BY seq DESC LIMIT 1) r
    WHERE c.status = 'active' GROUP BY r.status`;
}

/** Cancels the runs of a company that is removed, and ends every claim on them; their walks are the caller's to end. */
export async function cancelRunsOf(tx: Transaction, company: CompanyKey): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.runs SET status = 'cancelled', cancel_requested = TRUE, epoch = epoch + 1, finished_at = now()
    WHERE ${isOf(company)} AND status IN ('queued', 'running')`;
}
