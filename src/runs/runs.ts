import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { type CompanyKey, companyNotFound, type Environment, keyText } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import type { Page } from '../db/cursor.js';
import type { Database } from '../db/database.js';
import { findActiveCompanies } from '../db/tables/connections.js';
import { cancelRun, findRun, listRuns, type RunClaim, type RunFilter, type RunRow } from '../db/tables/runs.js';
import { endWalks } from '../db/tables/walks.js';
import { inTransaction } from '../db/transaction.js';
import { type RequestAnswers, type RunOptions, requestRuns } from './run-requests.js';
import type { Schedule } from './schedule.js';

/** Puts runs before the workers. Losing the call loses nothing: the sweeper finds the runs again. */
export interface RunDispatcher {
  dispatch(runs: readonly RunClaim[]): Promise<void>;
}

interface RunsDependencies {
  readonly db: Database;
  readonly catalogue: Catalogue;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly dispatcher: RunDispatcher;
}

/** Companies for which runs are asked for in one transaction, which locks their connections: meanwhile no walk of theirs is opened. */
const BATCH = 50;

/** Asks for runs and reads them. The run's row is the intent; the queue only carries its id. */
export class Runs {
  readonly #deps: RunsDependencies;

  constructor(deps: RunsDependencies) {
    this.#deps = deps;
  }

  /**
   * The company's queued or running run, or a new one. One that waits to retry starts now.
   * Throws company_not_found, company_paused, reauthorization_required, unknown_resource.
   */
  async request({ company, ...options }: RunOptions & { readonly company: CompanyKey }): Promise<RunRow> {
    const { catalogue } = this.#deps;
    const unknown = options.resources?.filter((resource) => !catalogue.get(resource)) ?? [];
    if (unknown.length > 0) {
      const known = catalogue.endpoints.map(({ resource }) => resource).join(', ');
      throw new MusterError('unknown_resource', `No such resource in the catalogue: ${unknown.join(', ')}. There are: ${known}.`);
    }
    const answer = (await this.#ask([company], options)).get(keyText(company)) ?? companyNotFound(company);
    if (answer instanceof MusterError) throw answer;
    const run = await this.find(answer.id);
    if (!run) throw companyNotFound(company); // removed just now
    return run;
  }

  /**
   * The same for many companies, a few statements for fifty of them. Companies that cannot be synced are passed over. `missed` are
   * companies that somebody else has locked just now, or that are gone: no run was asked for. One that fails keeps no other from its
   * run: rejects once all have been asked, but at once where the database is away.
   */
  async requestAll(
    companies: readonly CompanyKey[],
    options: RunOptions,
  ): Promise<{ runs: number; missed: readonly CompanyKey[] }> {
    let runs = 0;
    const missed: CompanyKey[] = [];
    const failures: unknown[] = [];
    const batches: (readonly CompanyKey[])[] = [];
    for (let start = 0; start < companies.length; start += BATCH) batches.push(companies.slice(start, start + BATCH));
    for (const batch of batches) {
      try {
        const answers = await this.#ask(batch, options, { skipLocked: true });
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
  async requestMany({ status, environment }: { status?: 'failed'; environment?: Environment }): Promise<number> {
    const options = { trigger: 'resync' } as const;
    let runs = 0;
    let left: readonly CompanyKey[] = await findActiveCompanies(this.#deps.db, { environment, lastRun: status });
    for (let before = Infinity; left.length > 0 && left.length < before; ) {
      before = left.length;
      const round = await this.requestAll(left, options);
      runs += round.runs;
      left = round.missed;
    }
    for (const company of left) {
      // A company that was paused or removed meanwhile is not worth failing the others for.
      if (await this.request({ company, ...options }).catch(ignoreConflict)) runs += 1;
    }
    return runs;
  }

  find(id: string): Promise<RunRow | undefined> {
    return findRun(this.#deps.db, { id });
  }

  /** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
  list(filter: RunFilter): Promise<Page<RunRow>> {
    return listRuns(this.#deps.db, filter);
  }

  /** A queued run ends at once; a running one stops before its next page. Ended runs stay as they are. Throws run_not_found. */
  async cancel(id: string): Promise<RunRow> {
    await inTransaction(this.#deps.db, async (tx) => {
      if (await cancelRun(tx, { id })) await endWalks(tx, { runId: id, status: 'cancelled' });
    });
    const run = await this.find(id);
    if (!run) throw new MusterError('run_not_found', `There is no run ${id}: GET /api/runs lists them.`);
    return run;
  }

  async #ask(companies: readonly CompanyKey[], options: RunOptions, locking?: { skipLocked: boolean }): Promise<RequestAnswers> {
    const { db, catalogue, schedule, clock, dispatcher } = this.#deps;
    const deps = { catalogue, schedule, now: clock.now() };
    const answers = await inTransaction(db, (tx) => requestRuns(tx, companies, options, deps, locking));
    await dispatcher.dispatch([...answers.values()].filter(isRun));
    return answers;
  }
}

function isRun(answer: RunClaim | MusterError): answer is RunClaim {
  return !(answer instanceof MusterError);
}

function ignoreConflict(error: unknown): undefined {
  if (error instanceof MusterError && (error.status === 409 || error.status === 404)) return undefined;
  throw error;
}
