import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { type CompanyKey, companyNotFound, type Environment, keyText } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import { isUuid } from '../db/cursor.js';
import type { Database } from '../db/database.js';
import { inTransaction } from '../db/transaction.js';
import { type RequestAnswers, type RequestedRun, type RunWish, requestRuns } from './run-requests.js';
import { findRun, listRuns, type RunFilter, type RunView } from './run-view.js';
import type { Schedule } from './schedule.js';

/** Puts runs before the workers. Losing the call loses nothing: the sweeper finds the runs again. */
export interface RunDispatcher {
  dispatch(runs: readonly { readonly id: string; readonly epoch: bigint }[]): Promise<void>;
}

export interface RunRequest extends RunWish {
  readonly company: CompanyKey;
}

/** Companies for which runs are asked for in one transaction: it holds their connections, without which no walk of theirs is opened. */
const BATCH = 50;

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
  async request({ company, ...wish }: RunRequest): Promise<RunView> {
    this.#checkResources(wish.resources);
    const answer = (await this.#ask([company], wish)).get(keyText(company)) ?? companyNotFound(company);
    if (answer instanceof MusterError) throw answer;
    const run = await this.find(answer.id);
    if (!run) throw companyNotFound(company); // removed just now
    return run;
  }

  /**
   * The same for many companies, a few statements for fifty of them. Those that cannot be synced are passed over; those that somebody
   * else holds just now, or that are gone, are given back: they have not been asked. One that fails keeps no other from its run:
   * rejects once all have been asked, but at once where the database is away.
   */
  async requestAll(companies: readonly CompanyKey[], wish: RunWish): Promise<{ runs: number; missed: readonly CompanyKey[] }> {
    let runs = 0;
    const missed: CompanyKey[] = [];
    const failures: unknown[] = [];
    const batches = inBatches(companies);
    for (const batch of batches) {
      try {
        const answers = await this.#ask(batch, wish, { skipHeld: true });
        runs += [...answers.values()].filter(isRun).length;
        missed.push(...batch.filter((company) => !answers.has(keyText(company))));
      } catch (error) {
        if (isMusterError(error)) throw error;
        if (batch.length === 1) failures.push(error);
        else batches.push(...batch.map((company) => [company]));
      }
    }
    if (failures.length > 0) throw failures[0];
    return { runs, missed };
  }

  /** Asks for a run of every active company, or of those whose last run failed. Returns how many were asked for. */
  async requestMany(filter: { status?: 'failed'; environment?: Environment }): Promise<number> {
    const companies = await this.#db.prisma.$queryRaw<CompanyKey[]>`
      SELECT c.environment, c.company_id AS "companyId" FROM muster.connections c
      WHERE c.status = 'active' AND (${filter.environment ?? null}::text IS NULL OR c.environment = ${filter.environment ?? null})
      AND (${filter.status ?? null}::text IS NULL OR ${filter.status ?? null} = (
        SELECT r.status FROM muster.runs r WHERE r.environment = c.environment AND r.company_id = c.company_id ORDER BY r.seq DESC LIMIT 1))`;
    const wish = { trigger: 'resync' } as const;
    let runs = 0;
    let left: readonly CompanyKey[] = companies;
    for (let before = Infinity; left.length > 0 && left.length < before; ) {
      before = left.length;
      const round = await this.requestAll(left, wish);
      runs += round.runs;
      left = round.missed;
    }
    for (const company of left) {
      // A company that was paused or removed meanwhile is not worth failing the others for.
      if (await this.request({ company, ...wish }).catch(ignoreConflict)) runs += 1;
    }
    return runs;
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

  async #ask(companies: readonly CompanyKey[], wish: RunWish, options?: { skipHeld: boolean }): Promise<RequestAnswers> {
    const context = { catalogue: this.#catalogue, schedule: this.#schedule, now: this.#clock.now() };
    const answers = await inTransaction(this.#db, (tx) => requestRuns(tx, companies, wish, context, options));
    await this.#dispatcher.dispatch([...answers.values()].filter(isRun));
    return answers;
  }

  #checkResources(resources: readonly string[] | undefined): void {
    const unknown = resources?.filter((resource) => !this.#catalogue.get(resource)) ?? [];
    if (unknown.length === 0) return;
    const known = this.#catalogue.endpoints.map(({ resource }) => resource).join(', ');
    throw new MusterError('unknown_resource', `No such resource in the catalogue: ${unknown.join(', ')}. There are: ${known}.`);
  }
}

function inBatches(companies: readonly CompanyKey[]): (readonly CompanyKey[])[] {
  return Array.from({ length: Math.ceil(companies.length / BATCH) }, (_, n) => companies.slice(n * BATCH, (n + 1) * BATCH));
}

function isRun(answer: RequestedRun | MusterError): answer is RequestedRun {
  return !(answer instanceof MusterError);
}

function ignoreConflict(error: unknown): undefined {
  if (error instanceof MusterError && (error.status === 409 || error.status === 404)) return undefined;
  throw error;
}
