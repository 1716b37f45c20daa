import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { type CompanyKey, companyNotFound, type Environment, keyText } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction } from '../db/connection/transaction.js';
import type { Page } from '../db/statements/cursor.js';
import { findRuns, listRuns, type RunFilter, type ShownRun } from '../db/tables/run-list.js';
import { findRunRequests, insertRunRequests } from '../db/tables/run-requests.js';
import { type ClaimableRun, cancelRun, findRun, type RunRow, type VerifyTrigger } from '../db/tables/runs.js';
import { requireOurs } from '../oauth/installation.js';
import { type RequestAnswers, type RunOptions, requestRuns, requestVerification } from './run-requests.js';
import type { Schedule } from './schedule.js';

/** Puts runs before the workers. Losing the call loses nothing: the sweeper finds the runs again. */
export interface RunDispatcher {
  dispatch(runs: readonly ClaimableRun[]): Promise<void>;
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
/** Runs that a request for many makes itself: all of a small fleet's, in a part of a second. */
const MADE_AT_ONCE = 250;

/** Asks for runs and reads them. The run's row is the intent; the queue only carries its id. */
export class Runs {
  readonly #deps: RunsDependencies;

  constructor(deps: RunsDependencies) {
    this.#deps = deps;
  }

  /**
   * The company's queued or running run, or a new one. One that waits to retry starts now.
   * Throws company_not_found, company_paused, reauthorization_required, unknown_resource, database_copied, installation_detached.
   */
  async request({ company, ...options }: RunOptions & { readonly company: CompanyKey }): Promise<RunRow> {
    this.#requireKnown(options.resources);
    await requireOurs(this.#deps.db);
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
  async requestAll(companies: readonly CompanyKey[], options: RunOptions): Promise<{ missed: readonly CompanyKey[] }> {
    const missed: CompanyKey[] = [];
    const failures: unknown[] = [];
    const batches: (readonly CompanyKey[])[] = [];
    for (let start = 0; start < companies.length; start += BATCH) batches.push(companies.slice(start, start + BATCH));
    for (const batch of batches) {
      try {
        const answers = await this.#ask(batch, options, { skipLocked: true });
        missed.push(...batch.filter((company) => !answers.has(keyText(company))));
      } catch (error) {
        if (isMusterError(error)) throw error;
        if (batch.length === 1) failures.push(error);
        else batches.push(...batch.map((company) => [company]));
      }
    }
    if (failures.length > 0) throw failures[0];
    return { missed };
  }

  /**
   * Asks for a run of every active company, or of those whose last run failed, and returns how many they are. One statement writes the
   * request down, for any number; some runs are made at once, the others by the sweep, whatever becomes of this process. Rejects where one
   * of these cannot be made, though the request stands.
   */
  async requestMany({ status, environment }: { status?: 'failed'; environment?: Environment }): Promise<number> {
    await requireOurs(this.#deps.db);
    const companies = await insertRunRequests(this.#deps.db, { environment, lastRun: status });
    await this.makeRequested({ limit: MADE_AT_ONCE });
    return companies;
  }

  /**
   * Makes the runs that requests for many have asked for, of at most `limit` companies. The request for a company that is paused, must
   * authorize again or is gone comes to nothing; for one that somebody else has locked just now it waits for the next call.
   */
  async makeRequested({ limit }: { limit: number }): Promise<void> {
    const companies = await findRunRequests(this.#deps.db, { limit });
    await this.requestAll(companies, { trigger: 'resync', onlyRequested: true });
  }

  /**
   * The company's queued or running second reading, or a new one, which begins once no sync of the company is queued or running. Throws what
   * `request` does.
   */
  async requestVerification({
    company,
    ...options
  }: {
    readonly company: CompanyKey;
    readonly trigger: VerifyTrigger;
    readonly resources?: readonly string[];
  }): Promise<RunRow> {
    const { db, catalogue, dispatcher } = this.#deps;
    this.#requireKnown(options.resources);
    await requireOurs(db);
    const answer =
      (await inTransaction(db, (tx) => requestVerification(tx, company, options, { catalogue }))) ?? companyNotFound(company);
    if (answer instanceof MusterError) throw answer;
    await dispatcher.dispatch([answer]);
    const run = await this.find(answer.id);
    if (!run) throw companyNotFound(company); // removed just now
    return run;
  }

  find(id: string): Promise<RunRow | undefined> {
    return findRun(this.#deps.db, { id });
  }

  /** In any order, and without the ones that are not there. */
  findAll(ids: readonly string[]): Promise<ShownRun[]> {
    return findRuns(this.#deps.db, { ids });
  }

  /** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
  list(filter: RunFilter): Promise<Page<ShownRun>> {
    return listRuns(this.#deps.db, filter);
  }

  /** A queued run ends at once; a running one stops before its next page. Ended runs stay as they are. Throws run_not_found. */
  async cancel(id: string): Promise<RunRow> {
    await cancelRun(this.#deps.db, { id });
    const run = await this.find(id);
    if (!run) throw new MusterError('run_not_found', `There is no run ${id}: GET /api/runs lists them.`);
    return run;
  }

  #requireKnown(resources: readonly string[] = []): void {
    const { catalogue } = this.#deps;
    const unknown = resources.filter((resource) => !catalogue.get(resource));
    if (unknown.length === 0) return;
    const known = catalogue.endpoints.map(({ resource }) => resource).join(', ');
    throw new MusterError('unknown_resource', `No such resource in the catalogue: ${unknown.join(', ')}. There are: ${known}.`);
  }

  async #ask(companies: readonly CompanyKey[], options: RunOptions, locking?: { skipLocked: boolean }): Promise<RequestAnswers> {
    const { db, catalogue, schedule, clock, dispatcher } = this.#deps;
    const deps = { catalogue, schedule, now: clock.now() };
    const answers = await inTransaction(db, (tx) => requestRuns(tx, companies, options, deps, locking));
    await dispatcher.dispatch([...answers.values()].filter(isRun));
    return answers;
  }
}

function isRun(answer: ClaimableRun | MusterError): answer is ClaimableRun {
  return !(answer instanceof MusterError);
}
