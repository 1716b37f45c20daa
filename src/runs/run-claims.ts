import type { CompanyKey, Environment } from '../core/company.js';
import type { ErrorView } from '../core/errors.js';
import type { Database } from '../db/database.js';
import { inTransaction } from '../db/transaction.js';
import { Prisma } from '../generated/prisma/client.js';
import { recordRunEnd } from '../notifications/run-events.js';
import type { RunStatus } from './run-view.js';

/** A run that this worker holds. `epoch` names the claim: a later claim by anyone ends it. */
export interface ClaimedRun {
  readonly id: string;
  readonly epoch: bigint;
  readonly company: CompanyKey;
  readonly attempts: number;
  readonly cancelRequested: boolean;
  /** What is left of it, in order. */
  readonly walks: readonly WalkToDo[];
}

export interface WalkToDo {
  readonly id: string;
  readonly resource: string;
  /** Within the run, from 0. */
  readonly position: number;
  /** Pages committed so far. */
  readonly pages: number;
}

/**
 * How long a holder may be silent before its run is anyone's. Too short only costs a takeover (the fence keeps the
 * slow worker from writing); too long leaves the runs of a dead worker lying.
 */
const HOLDER_TIMEOUT_SECONDS = 5;

/** A run that this worker still holds, and what it is to do with it. */
export interface HeldClaim {
  readonly id: string;
  readonly epoch: bigint;
  readonly cancelRequested: boolean;
  readonly paused: boolean;
}

/**
 * Whether the company of a row of muster.runs is paused: nothing is asked of the service for it. By a value and not by EXISTS, for which
 * PostgreSQL may read all companies instead of looking one up.
 */
const PAUSED = Prisma.sql`(COALESCE((
  SELECT c.status FROM muster.connections c WHERE c.environment = runs.environment AND c.company_id = runs.company_id), '') = 'paused')`;

/** Who works on which run. PostgreSQL decides, by its own clock; the queue only says when to try. */
export class RunClaims {
  readonly #db: Database;
  readonly #holder: string;

  constructor(db: Database, holder: string) {
    this.#db = db;
    this.#holder = holder;
  }

  /** Takes the run if it is due and nobody alive holds it. While the company is paused it only waits, or is cancelled. */
  async claim(id: string): Promise<ClaimedRun | undefined> {
    const [row] = await this.#db.prisma.$queryRaw<
      (Omit<ClaimedRun, 'id' | 'company'> & { environment: Environment; companyId: string })[]
    >`
      UPDATE muster.runs SET status = 'running', epoch = epoch + 1, holder = ${this.#holder}, heartbeat_at = now(),
        started_at = COALESCE(started_at, now())
      WHERE id = ${id}::uuid AND status IN ('queued', 'running') AND start_after <= now()
        AND (holder IS NULL OR heartbeat_at < now() - make_interval(secs => ${HOLDER_TIMEOUT_SECONDS}))
        AND (cancel_requested OR NOT ${PAUSED})
      RETURNING epoch, environment, company_id AS "companyId", attempts, cancel_requested AS "cancelRequested", COALESCE((
        SELECT jsonb_agg(jsonb_build_object('id', id, 'resource', resource, 'position', position, 'pages', pages) ORDER BY position)
        FROM muster.walks WHERE run_id = runs.id AND walks.status <> 'succeeded'), '[]') AS walks`;
    if (!row) return undefined;
    const { environment, companyId, ...rest } = row;
    return { id, company: { environment, companyId }, ...rest };
  }

  /**
   * Says that this worker works on these runs, and on no other: a claim whose work ended in an error that kept it from
   * letting go must lapse. Returns those still held.
   */
  async heartbeat(ids: readonly string[]): Promise<HeldClaim[]> {
    return this.#db.prisma.$queryRaw`
      UPDATE muster.runs SET heartbeat_at = now() WHERE id = ANY(${ids}::uuid[]) AND holder = ${this.#holder} AND status = 'running'
      RETURNING id, epoch, cancel_requested AS "cancelRequested", ${PAUSED} AS paused`;
  }

  /** Lets go of a run that is not at its end, so that anyone may go on with it. Returns whether it was still ours. */
  async release(run: ClaimedRun): Promise<boolean> {
    return (
      (await this.#db.prisma.$executeRaw`
      UPDATE muster.runs SET holder = NULL WHERE id = ${run.id}::uuid AND epoch = ${run.epoch} AND status = 'running'`) > 0
    );
  }

  /** Puts a run back until a later time, after an attempt that failed. */
  async postpone(run: ClaimedRun, delaySeconds: number, error: object): Promise<void> {
    await this.#db.prisma.$executeRaw`
      UPDATE muster.runs SET status = 'queued', holder = NULL, attempts = attempts + 1,
        start_after = now() + make_interval(secs => ${delaySeconds}), error = ${JSON.stringify(error)}::jsonb
      WHERE id = ${run.id}::uuid AND epoch = ${run.epoch} AND status = 'running'`;
  }

  /** Ends the run; its walks that have not succeeded end with it. */
  async finish(run: ClaimedRun, status: Exclude<RunStatus, 'queued' | 'running'>, error?: ErrorView): Promise<void> {
    const failure = error ? JSON.stringify(error) : null;
    await inTransaction(this.#db, async (tx) => {
      const ended = await tx.$queryRaw<unknown[]>`
        WITH ended AS (
          UPDATE muster.runs SET status = ${status}, holder = NULL, finished_at = now(), error = ${failure}::jsonb
          WHERE id = ${run.id}::uuid AND epoch = ${run.epoch} AND status = 'running' RETURNING id
        ), walks AS (
          UPDATE muster.walks SET status = ${status}, finished_at = COALESCE(finished_at, now()), error = COALESCE(error, ${failure}::jsonb)
          FROM ended WHERE run_id = ended.id AND walks.status <> 'succeeded'
        )
        SELECT 1 FROM ended`;
      if (ended.length === 0) return;
      await recordRunEnd(tx, { id: run.id, company: run.company, status, reason: error?.code });
    });
  }

  /** Runs that are due and that nobody alive holds, oldest first. */
  async orphans(limit: number): Promise<{ id: string; epoch: bigint }[]> {
    return this.#db.prisma.$queryRaw`
      SELECT id, epoch FROM muster.runs
      WHERE status IN ('queued', 'running') AND start_after <= now()
        AND (holder IS NULL OR heartbeat_at < now() - make_interval(secs => ${HOLDER_TIMEOUT_SECONDS}))
        AND (cancel_requested OR NOT ${PAUSED})
      ORDER BY seq LIMIT ${limit}`;
  }
}
