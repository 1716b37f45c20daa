import pMap from 'p-map';
import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { type CompanyKey, describeCompany, type Environment } from '../core/company.js';
import { companyNotFound } from '../core/company-not-found.js';
import { MusterError } from '../core/errors.js';
import { isUuid } from '../db/cursor.js';
import type { Database } from '../db/database.js';
import { inTransaction, type Transaction } from '../db/transaction.js';
import { type EarlierWalk, planWalks } from './plan.js';
import { findRun, listRuns, type RunFilter, type RunTrigger, type RunView, viewRun } from './run-view.js';
import { nextSyncAt, type Schedule } from './schedule.js';

/** Puts a run before the workers. Losing the call loses nothing: the sweeper finds the run again. */
export interface RunDispatcher {
  dispatch(run: { readonly id: string; readonly epoch: bigint }): Promise<void>;
}

export interface RunRequest {
  readonly company: CompanyKey;
  readonly trigger: RunTrigger;
  readonly mode?: 'resume' | 'full';
  readonly resources?: readonly string[];
}

/** A checkpoint older than this is not gone on from: too much may have changed upstream since. */
export const CHECKPOINT_MAX_AGE_MS = 6 * 3_600_000;

/** Companies for which a run is asked for side by side, where it is for many: a request mostly waits for the database. */
export const REQUESTS_AT_ONCE = 4;

/** Asking for runs, and reading of them. The run row is the intent; the queue only carries its id. */
export class Runs {
  readonly #db: Database;
  readonly #catalogue: Catalogue;
  readonly #schedule: Schedule;
  readonly #clock: Clock;
  readonly #dispatcher: RunDispatcher;

  constructor(deps: { db: Database; catalogue: Catalogue; schedule: Schedule; clock: Clock; dispatcher: RunDispatcher }) {
    this.#db = deps.db;
    this.#catalogue = deps.catalogue;
    this.#schedule = deps.schedule;
    this.#clock = deps.clock;
    this.#dispatcher = deps.dispatcher;
  }

  /**
   * The company's queued or running run, or a new one. One that waits to retry starts now.
   * Throws company_not_found, company_paused, reauthorization_required, unknown_resource.
   */
  async request(request: RunRequest): Promise<RunView> {
    this.#checkResources(request.resources);
    const run = await inTransaction(this.#db, async (tx) => {
      const connection = await lockSyncableCompany(tx, request.company);
      return (await hastenActiveRun(tx, request.company)) ?? (await this.#createRun(tx, request, connection));
    });
    await this.#dispatcher.dispatch(run);
    return viewRun(run);
  }

  /** Asks for a run of every active company, or of those whose last run failed. Returns how many were asked for. */
  async requestMany(filter: { status?: 'failed'; environment?: Environment }): Promise<number> {
    const companies = await this.#db.prisma.$queryRaw<{ environment: Environment; companyId: string }[]>`
      SELECT c.environment, c.company_id AS "companyId" FROM muster.connections c
      WHERE c.status = 'active' AND (${filter.environment ?? null}::text IS NULL OR c.environment = ${filter.environment ?? null})
      AND (${filter.status ?? null}::text IS NULL OR ${filter.status ?? null} = (
        SELECT r.status FROM muster.runs r WHERE r.environment = c.environment AND r.company_id = c.company_id ORDER BY r.seq DESC LIMIT 1))`;
    // A company that was paused or removed meanwhile is not worth failing the others for.
    const ask = async (company: CompanyKey) =>
      (await this.request({ company, trigger: 'resync' }).catch(ignoreConflict)) !== undefined;
    const asked = await pMap(companies, ask, { concurrency: REQUESTS_AT_ONCE });
    return asked.filter(Boolean).length;
  }

  find(id: string): Promise<RunView | undefined> {
    return findRun(this.#db, id);
  }

  list(filter: RunFilter): Promise<{ data: RunView[]; nextCursor?: string }> {
    return listRuns(this.#db, filter);
  }

  /** A queued run ends at once; a running one stops before its next page. Ended runs stay as they are. */
  async cancel(id: string): Promise<RunView> {
    if (isUuid(id)) {
      await inTransaction(this.#db, async (tx) => {
        await tx.$executeRaw`UPDATE muster.runs SET cancel_requested = true, start_after = now() WHERE id = ${id}::uuid AND status IN ('queued', 'running')`;
        const ended = await tx.$executeRaw`
          UPDATE muster.runs SET status = 'cancelled', finished_at = now() WHERE id = ${id}::uuid AND status = 'queued'`;
        if (ended)
          await tx.walk.updateMany({
            where: { runId: id, status: { not: 'succeeded' } },
            data: { status: 'cancelled', finishedAt: new Date(this.#clock.now()) },
          });
      });
    }
    const run = await this.find(id);
    if (!run) throw new MusterError('run_not_found', `There is no run ${id}: GET /api/runs lists them.`);
    return run;
  }

  async #createRun(tx: Transaction, request: RunRequest, { createdAt, nextSyncAt: next }: SyncableCompany) {
    const { company, trigger, mode = 'resume', resources } = request;
    const lastWalks = mode === 'resume' ? await this.#lastWalks(tx, company, createdAt) : [];
    const planned = planWalks({ catalogue: this.#catalogue, mode, lastWalks, ...(resources && { resources }) });
    const run = await tx.run.create({ data: { ...company, trigger, mode } });
    // Two statements: create with walks and an include makes four.
    const created = await tx.walk.createManyAndReturn({
      data: planned.map(({ resource }, position) => ({ ...company, runId: run.id, resource, position })),
    });
    const walks = created.toSorted((a, b) => a.position - b.position);
    for (const [position, { continues }] of planned.entries()) {
      if (continues) await takeOverCheckpoint(tx, continues, walks[position]!.id);
    }
    if (next === null) {
      const first = nextSyncAt(this.#schedule, company, this.#clock.now());
      await tx.connection.update({ where: { environment_companyId: company }, data: { nextSyncAt: first } });
    }
    return { ...run, walks };
  }

  async #lastWalks(tx: Transaction, company: CompanyKey, since: Date): Promise<EarlierWalk[]> {
    // What was before a company was removed is gone.
    const last = await tx.run.findFirst({
      where: { ...company, createdAt: { gte: since } },
      orderBy: { seq: 'desc' },
      include: { walks: true },
    });
    if (!last?.finishedAt || last.finishedAt.getTime() < this.#clock.now() - CHECKPOINT_MAX_AGE_MS) return [];
    return last.walks.map(({ id, resource, status }) => ({ id, resource, succeeded: status === 'succeeded' }));
  }

  #checkResources(resources: readonly string[] | undefined): void {
    const unknown = resources?.filter((resource) => !this.#catalogue.get(resource)) ?? [];
    if (unknown.length === 0) return;
    const known = this.#catalogue.endpoints.map(({ resource }) => resource).join(', ');
    throw new MusterError('unknown_resource', `No such resource in the catalogue: ${unknown.join(', ')}. There are: ${known}.`);
  }
}

interface SyncableCompany {
  readonly createdAt: Date;
  readonly nextSyncAt: Date | null;
}

/** Holds the company's connection until the transaction ends: one request at a time decides whether a run is added. */
async function lockSyncableCompany(tx: Transaction, company: CompanyKey): Promise<SyncableCompany> {
  const [connection] = await tx.$queryRaw<(SyncableCompany & { readonly status: string })[]>`
    SELECT status, created_at AS "createdAt", next_sync_at AS "nextSyncAt" FROM muster.connections
    WHERE environment = ${company.environment} AND company_id = ${company.companyId}::uuid FOR UPDATE`;
  const name = describeCompany(company);
  if (!connection) throw companyNotFound(company);
  if (connection.status === 'paused')
    throw new MusterError('company_paused', `The ${name} is paused: resume it first (POST …/resume).`);
  if (connection.status === 'reauthorization_required')
    throw new MusterError(
      'reauthorization_required',
      `The ${name} must authorize again before it can be synced: send it a connect link.`,
    );
  return connection;
}

async function hastenActiveRun(tx: Transaction, company: CompanyKey) {
  const active = await tx.run.findFirst({ where: { ...company, status: { in: ['queued', 'running'] } }, select: { id: true } });
  if (!active) return undefined;
  await tx.$executeRaw`UPDATE muster.runs SET start_after = now() WHERE id = ${active.id}::uuid AND start_after > now()`;
  return tx.run.findUniqueOrThrow({ where: { id: active.id }, include: { walks: { orderBy: { position: 'asc' } } } });
}

/**
 * The new walk goes on where the earlier one stopped: checkpoint, ledger and rejected records move. The list is fenced first:
 * a worker that was frozen in the earlier walk would otherwise wake up without its ledger, and take every row for gone.
 */
async function takeOverCheckpoint(tx: Transaction, from: string, to: string): Promise<void> {
  const moved = await tx.$executeRaw`
    UPDATE muster.lists l SET epoch = l.epoch + 1 FROM muster.walks w
    WHERE w.id = ${from}::uuid AND w.checkpoint IS NOT NULL
      AND l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource`;
  if (moved === 0) return;
  await tx.$executeRaw`
    UPDATE muster.walks w SET checkpoint = e.checkpoint, checkpoint_at = e.checkpoint_at, fingerprint = e.fingerprint, pass = e.pass,
      pass_started_at = e.pass_started_at, received = e.received, duplicates = e.duplicates, rejected = e.rejected, total_records = e.total_records
    FROM muster.walks e WHERE w.id = ${to}::uuid AND e.id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL WHERE id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.walk_pages SET walk_id = ${to}::uuid WHERE walk_id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.rejected_records SET walk_id = ${to}::uuid WHERE walk_id = ${from}::uuid`;
}

function ignoreConflict(error: unknown): undefined {
  if (error instanceof MusterError && (error.status === 409 || error.status === 404)) return undefined;
  throw error;
}
