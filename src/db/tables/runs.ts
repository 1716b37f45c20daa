// muster.runs: one sync of one company, or one verification of its lists (`kind`). Requests insert a row, and the worker that has claimed it writes it under the claim's epoch; cancelling
// and removing a company write it, too. Lock order: connections, lists, runs, walks. No other process locks the row of a new run, so its
// walks may take lists over.
import type { CompanyKey, Environment } from '../../core/company.js';
import { type ErrorView, MusterError } from '../../core/errors.js';
import { Prisma, type Run } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { runStep } from '../connection/step.js';
import type { Transaction } from '../connection/transaction.js';
import { IS_PAUSED, WAITS_FOR_SYNC, waitsToRetry } from './active-runs.js';
import { isOf, type OwnQuietHours, rowsOf } from './connections.js';
import { type RunNews, tellOfEnd } from './notifications.js';
import { type EndStatus, endWalks, type RunKind, type WalkRow, type WalkStatus } from './walks.js';

export type RunStatus = WalkStatus;
/** Reasons for syncs and for verifications. The table derives `kind` from it. */
export const SYNC_TRIGGERS = ['onboarding', 'nightly', 'scheduled', 'manual', 'reauthorization', 'resync'] as const;
export const VERIFY_TRIGGERS = ['verify', 'nightly_verify'] as const;
export const RUN_TRIGGERS = [...SYNC_TRIGGERS, ...VERIFY_TRIGGERS] as const;
export type SyncTrigger = (typeof SYNC_TRIGGERS)[number];
export type VerifyTrigger = (typeof VERIFY_TRIGGERS)[number];
export type RunTrigger = (typeof RUN_TRIGGERS)[number];
export type RunMode = 'resume' | 'full';

/** A run with its walks in order. */
export interface RunRow extends Omit<Run, 'environment' | 'trigger' | 'kind' | 'mode' | 'status' | 'error'> {
  readonly environment: Environment;
  readonly trigger: RunTrigger;
  readonly kind: RunKind;
  readonly mode: RunMode;
  readonly status: RunStatus;
  readonly error: ErrorView | null;
  readonly walks: readonly WalkRow[];
}

/** A claim on a run: `epoch` names it, and any later claim ends it. */
export type RunClaim = Pick<Run, 'id' | 'epoch'>;

/** A run that may be claimed: `epoch` is that of the claim before. */
export type ClaimableRun = RunClaim & Pick<CompanyKey, 'environment'>;

/** A claimed run, with the walks that are left of it, in order. */
export interface ClaimedRun extends RunClaim, Pick<Run, 'attempts' | 'cancelRequested' | 'deaths' | 'createdAt'>, OwnQuietHours {
  readonly company: CompanyKey;
  readonly trigger: RunTrigger;
  readonly kind: RunKind;
  readonly mode: RunMode;
  readonly walks: readonly WalkToDo[];
}

/** SQL: the quiet hours of the company of a row of muster.runs. */
const QUIET_HOURS = Prisma.sql`(
  SELECT c.quiet_hours FROM muster.connections c WHERE c.environment = runs.environment AND c.company_id = runs.company_id)`;

/** `position` counts from 0 within the run; `pages` are committed. `startedAt` is a time as JSON has it. */
export type WalkToDo = Pick<WalkRow, 'id' | 'resource' | 'position' | 'pages'> & { readonly startedAt: string | null };

/**
 * A run whose worker is silent for this long may be claimed by any worker. Too short only costs a takeover, since the epoch keeps the slow
 * worker from writing; too long delays the runs of a dead worker.
 */
const CLAIM_TIMEOUT_SECONDS = 5;

/** The status of a row of muster.runs that is looked up by its id: "no index" in docs/internals/planner.md. */
export const STATUS_OF_ONE = Prisma.sql`(runs.status || '')`;

const isClaimable = (status: Prisma.Sql) => Prisma.sql`(${status} IN ('queued', 'running') AND start_after <= now()
  AND (holder IS NULL OR heartbeat_at < now() - make_interval(secs => ${CLAIM_TIMEOUT_SECONDS})) AND (cancel_requested OR NOT (${IS_PAUSED} OR ${WAITS_FOR_SYNC})))`;

const WITH_WALKS = { walks: { orderBy: { position: 'asc' } } } as const;

export async function findRun(db: Database, { id }: { id: string }): Promise<RunRow | undefined> {
  return ((await db.prisma.run.findUnique({ where: { id }, include: WITH_WALKS })) ?? undefined) as RunRow | undefined;
}

export interface LastRun extends CompanyKey, Pick<RunRow, 'id' | 'epoch' | 'trigger' | 'status' | 'createdAt' | 'finishedAt'> {
  /** It waits to retry (active-runs.ts). */
  readonly isWaiting: boolean;
}

/** The active run of a kind of each company, or else its last one, by look-ups (docs/internals/planner.md). */
export async function lastRunsOf(
  tx: Transaction,
  { companies, kind }: { companies: readonly CompanyKey[]; kind: RunKind },
): Promise<LastRun[]> {
  if (companies.length === 0) return [];
  return tx.$queryRaw`
    SELECT last.id, last.epoch, last.environment, last.company_id AS "companyId", last.trigger, last.status, last.created_at AS "createdAt",
      last.finished_at AS "finishedAt", ${waitsToRetry(Prisma.sql`last`)} AS "isWaiting"
    FROM ${rowsOf(companies)} CROSS JOIN LATERAL (
      (SELECT r.* FROM muster.runs r
       WHERE r.environment = asked.environment AND r.company_id = asked.company_id AND r.kind = ${kind} AND r.status IN ('queued', 'running')
       LIMIT 1)
      UNION ALL
      (SELECT r.* FROM muster.runs r
       WHERE r.environment = asked.environment AND r.company_id = asked.company_id AND r.kind = ${kind} ORDER BY r.seq DESC LIMIT 1)
      LIMIT 1
    ) last`;
}

/** An older run keeps only the attempts that it has left: however often it is requested, it ends within the night. */
const MOST_HOURS_OF_NEW_ATTEMPTS = 6;

/**
 * Starts runs that wait to retry, with all the attempts of a new run: the person who requests it may have mended something. In quiet hours they
 * start at their end.
 */
export async function startRunsNow(
  tx: Transaction,
  runs: readonly { readonly id: string; readonly quietUntil: Date | null }[],
): Promise<void> {
  if (runs.length === 0) return;
  await tx.$executeRaw`
    UPDATE muster.runs SET start_after = COALESCE(asked.quiet_until, now()), quiet_until = asked.quiet_until,
      attempts = CASE WHEN created_at > now() - make_interval(hours => ${MOST_HOURS_OF_NEW_ATTEMPTS}) THEN 0 ELSE attempts END
    FROM unnest(${runs.map(({ id }) => id)}::uuid[], ${runs.map(({ quietUntil }) => quietUntil)}::timestamptz[]) AS asked(id, quiet_until)
    WHERE runs.id = asked.id AND start_after > now()`;
}

/** Ends runs that wait to retry, with the error of their last attempt. Returns which: a run that has started again goes on. */
export async function failWaitingRuns(tx: Transaction, { ids }: { ids: readonly string[] }): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await tx.$queryRaw<{ id: string }[]>`
    WITH ended AS (
      UPDATE muster.runs SET status = 'failed', finished_at = now()
      WHERE id = ANY(${ids}::uuid[]) AND ${STATUS_OF_ONE} = 'queued' AND start_after > now()
      RETURNING id, environment, company_id, error
    ), ${tellOfEnd('run_failed')}, ${endWalks('failed')}
    SELECT id FROM ended`;
  return rows.map(({ id }) => id);
}

/**
 * Adds a queued run of each company, without walks, which in quiet hours starts at their end. The caller has locked the connections: a company has
 * one active run of a kind.
 */
export function insertRuns(
  tx: Transaction,
  {
    companies,
    trigger,
    mode,
  }: { companies: readonly (CompanyKey & { quietUntil: Date | null })[]; trigger: RunTrigger; mode: RunMode },
): Promise<(CompanyKey & RunClaim)[]> {
  const [environments, ids] = [companies.map(({ environment }) => environment), companies.map(({ companyId }) => companyId)];
  return tx.$queryRaw`
    INSERT INTO muster.runs (environment, company_id, trigger, mode, start_after, quiet_until)
    SELECT environment, company_id, ${trigger}, ${mode}, COALESCE(quiet_until, now()), quiet_until
    FROM unnest(${environments}::text[], ${ids}::uuid[], ${companies.map(({ quietUntil }) => quietUntil)}::timestamptz[])
      AS asked(environment, company_id, quiet_until)
    RETURNING id, epoch, environment, company_id AS "companyId"`;
}

const PAGES = Prisma.sql`(SELECT COALESCE(sum(w.pages), 0) FROM muster.walks w WHERE w.run_id = runs.id)`;

/**
 * Claims the run if it is due and no live worker has it. The run of a paused company waits, or is cancelled. A claim that was not
 * given up counts as a death, and as the first one if pages were committed since the last.
 */
export async function claimRun(db: Database, { id, worker }: { id: string; worker: string }): Promise<ClaimedRun | undefined> {
  const [row] = await db.prisma.$queryRaw<(Omit<ClaimedRun, 'company'> & CompanyKey)[]>`
    UPDATE muster.runs SET status = 'running', epoch = epoch + 1, holder = ${worker}, heartbeat_at = now(),
      started_at = COALESCE(started_at, now()),
      deaths = CASE WHEN holder IS NULL THEN deaths WHEN ${PAGES} = pages_at_death THEN deaths + 1 ELSE 1 END,
      pages_at_death = CASE WHEN holder IS NULL THEN pages_at_death ELSE ${PAGES} END
    WHERE id = ${id}::uuid AND ${isClaimable(STATUS_OF_ONE)}
    RETURNING id, epoch, environment, company_id AS "companyId", trigger, kind, mode, created_at AS "createdAt", attempts, deaths,
      cancel_requested AS "cancelRequested", ${QUIET_HOURS} AS "quietHours", COALESCE((
      SELECT jsonb_agg(jsonb_build_object('id', id, 'resource', resource, 'position', position, 'pages', pages, 'startedAt', started_at) ORDER BY position)
      FROM muster.walks WHERE run_id = runs.id AND walks.status <> 'succeeded'), '[]') AS walks`;
  if (!row) return undefined;
  const { environment, companyId, ...run } = row;
  return { ...run, company: { environment, companyId } };
}

/** Runs that `claimRun` would give, oldest first. */
export function findClaimableRuns(db: Database, { limit }: { limit: number }): Promise<ClaimableRun[]> {
  return db.prisma
    .$queryRaw`SELECT id, epoch, environment FROM muster.runs WHERE ${isClaimable(Prisma.sql`status`)} ORDER BY seq LIMIT ${limit}`;
}

/**
 * Records that the worker works on these runs, and on no others: a claim that an error kept from being released must
 * lapse. Returns the claims that still hold, and what their workers must know. Waits for no lock: while a large company is removed its run is
 * locked for minutes, and all other claims would lapse.
 */
export function renewClaims(
  db: Database,
  { ids, worker }: { ids: readonly string[]; worker: string },
): Promise<(RunClaim & OwnQuietHours & { cancelRequested: boolean; paused: boolean })[]> {
  const isClaimed = Prisma.sql`id = ANY(${ids}::uuid[]) AND holder = ${worker} AND ${STATUS_OF_ONE} = 'running'`;
  return db.prisma.$queryRaw`
    WITH renewed AS (
      UPDATE muster.runs SET heartbeat_at = now()
      WHERE id = ANY(ARRAY(SELECT id FROM muster.runs WHERE ${isClaimed} FOR NO KEY UPDATE SKIP LOCKED))
    )
    SELECT id, epoch, cancel_requested AS "cancelRequested", ${IS_PAUSED} AS paused, ${QUIET_HOURS} AS "quietHours" FROM muster.runs WHERE ${isClaimed}`;
}

/**
 * Ends a run under a claim, and with it the walks that have not succeeded; `news`: what people are told unless they know it. Does
 * nothing, and returns false, if the claim no longer holds, or if the run would succeed without one of its walks: a server
 * replaced by its replica may have lost a walk's end.
 */
export async function endRun(
  db: Pick<Database, 'steps'>,
  { id, epoch, status, error, news }: RunClaim & { status: EndStatus; error?: ErrorView | undefined; news?: RunNews | undefined },
): Promise<boolean> {
  const rows = await runStep(
    db,
    Prisma.sql`
    WITH ended AS (
      UPDATE muster.runs SET status = ${status}, holder = NULL, finished_at = now(), error = ${error ? JSON.stringify(error) : null}::jsonb
      WHERE id = ${id}::uuid AND epoch = ${epoch}::bigint AND ${STATUS_OF_ONE} = 'running'
        AND (${status} <> 'succeeded' OR NOT EXISTS (SELECT FROM muster.walks w WHERE w.run_id = runs.id AND w.status <> 'succeeded'))
      RETURNING id, environment, company_id, error
    ), ${news ? Prisma.sql`${tellOfEnd(news)},` : Prisma.empty}
    ${endWalks(status)}
    SELECT id FROM ended`,
  );
  return rows.length > 0;
}

/**
 * Cancels a run. A running one ends before its next page, by its worker or by the next claim. A queued one is cancelled at once with its walks.
 * A run that has ended stays as it is. Returns whether the run was queued, and has ended now.
 */
export async function cancelRun(db: Pick<Database, 'steps'>, { id }: { id: string }): Promise<boolean> {
  const rows = await runStep(
    db,
    Prisma.sql`
    WITH asked AS (
      UPDATE muster.runs SET cancel_requested = true, start_after = now(),
        status = CASE WHEN status = 'queued' THEN 'cancelled' ELSE status END, finished_at = CASE WHEN status = 'queued' THEN now() END
      WHERE id = ${id}::uuid AND status IN ('queued', 'running') RETURNING id, status
    ), ended AS (
      SELECT id, NULL::jsonb AS error FROM asked WHERE status = 'cancelled'
    ), ${endWalks('cancelled')}
    SELECT id FROM ended`,
  );
  return rows.length > 0;
}

/**
 * Locks the run until the transaction ends, or throws `fenced` if it is over or was claimed again. Without the
 * lock, a frozen worker that wakes could begin a walk that its successor has finished.
 */
export async function lockRun(tx: Transaction, { id, epoch }: RunClaim): Promise<{ trigger: string; mode: string }> {
  const [row] = await tx.$queryRaw<{ trigger: string; mode: string }[]>(lockedRun({ id, epoch }));
  if (!row) throw new MusterError('fenced', `The run ${id} is no longer ours: another worker claimed it, or it is over.`);
  return row;
}

/** Locks the run as a query inside a statement: no row if the claim no longer holds. */
export function lockedRun({ id, epoch }: RunClaim): Prisma.Sql {
  return Prisma.sql`SELECT trigger, mode FROM muster.runs
    WHERE id = ${id}::uuid AND epoch = ${epoch}::bigint AND ${STATUS_OF_ONE} = 'running' FOR SHARE`;
}

/**
 * Removes runs that ended more than `days` ago, at most `limit` of them, with their walks, ledgers and rejected records. The newest run of an
 * onboarded company stays, and each run to which a list or an open hold refers: the last one, and the one that proved it. Returns how many.
 */
export function removeOldRuns(db: Database, { days, limit }: { days: number; limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.runs WHERE id IN (
      SELECT r.id FROM muster.runs r
      WHERE r.finished_at < now() - ${days}::int * interval '1 day' AND r.status NOT IN ('queued', 'running')
        AND (EXISTS (SELECT FROM muster.runs n WHERE n.environment = r.environment AND n.company_id = r.company_id AND n.kind = r.kind
               AND n.seq > r.seq)
             OR NOT EXISTS (SELECT FROM muster.connections c WHERE c.environment = r.environment AND c.company_id = r.company_id))
        AND NOT EXISTS (
          SELECT FROM muster.lists l LEFT JOIN muster.walks w ON w.id = l.verified_walk_id
          WHERE l.environment = r.environment AND l.company_id = r.company_id AND r.id IN (l.last_run_id, w.run_id))
        AND NOT EXISTS (
          SELECT FROM muster.holds h
          WHERE h.environment = r.environment AND h.company_id = r.company_id AND h.run_id = r.id AND h.status = 'open')
      ORDER BY r.seq LIMIT ${limit}::int)`;
}

/** Cancels the runs of a removed company, and ends every claim on them; the caller ends their walks. */
export async function cancelRunsOf(tx: Transaction, company: CompanyKey): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.runs SET status = 'cancelled', cancel_requested = TRUE, epoch = epoch + 1, finished_at = now()
    WHERE ${isOf(company)} AND status IN ('queued', 'running')`;
}
