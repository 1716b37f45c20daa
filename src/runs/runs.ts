import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { type CompanyKey, companyNotFound, describeCompany, type Environment, keyText } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import type { QuietHours } from '../core/quiet-hours.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction } from '../db/connection/transaction.js';
import type { Page } from '../db/statements/cursor.js';
import { findRuns, listRuns, type RunFilter, type ShownRun } from '../db/tables/run-list.js';
import {
  type ChosenCompanies,
  findRunRequests,
  findUnknownCompanies,
  insertRunRequests,
  previewRunRequests,
} from '../db/tables/run-requests.js';
import { type ClaimableRun, cancelRun, findRun, type RunRow, type VerifyTrigger } from '../db/tables/runs.js';
import { requireOurs } from '../oauth/installation.js';
import { traceRun } from '../observability/tracing.js';
import { type RequestOutcomes, type RunOptions, requestRuns, requestVerification } from './run-requests.js';
import type { Schedule } from './schedule.js';
import { tracedRun } from './traced-run.js';

/** Offers runs to the workers. A lost call loses nothing: the sweeper finds the runs again. */
export interface RunDispatcher {
  dispatch(runs: readonly ClaimableRun[]): Promise<void>;
}

interface RunsDependencies {
  readonly db: Database;
  readonly catalogue: Catalogue;
  readonly schedule: Schedule;
  readonly quiet: QuietHours;
  readonly clock: Clock;
  readonly dispatcher: RunDispatcher;
}

/** The companies and lists of a request for many. */
export interface SyncFilter {
  /** Exactly these. Without them: every company of the environment, or of both. */
  readonly companies?: readonly CompanyKey[] | undefined;
  readonly environment?: Environment | undefined;
  /** Only companies whose last run failed. */
  readonly status?: 'failed' | undefined;
  /** Default: every list. */
  readonly resources?: readonly string[] | undefined;
}

/** The most companies of one transaction. It locks their connections, so that none of their walks is opened in that time. */
const BATCH = 50;
/** The runs that a request for many creates itself: all runs of a small fleet, within a second. */
const MADE_AT_ONCE = 250;

/** Requests runs and reads them. The run's row is the intent; the queue only carries its id. */
export class Runs {
  readonly #deps: RunsDependencies;

  constructor(deps: RunsDependencies) {
    this.#deps = deps;
  }

  /**
   * Returns the company's queued or running run, or a new one. A run that waits to retry starts now.
   * Throws company_not_found, company_paused, reauthorization_required, unknown_resource, database_copied, installation_detached.
   */
  async request({ company, ...options }: RunOptions & { readonly company: CompanyKey }): Promise<RunRow> {
    this.#requireKnown(options.resources);
    await requireOurs(this.#deps.db);
    const outcome = (await this.#request([company], options)).get(keyText(company));
    return this.#runOf(company, outcome);
  }

  /**
   * Requests runs of many companies, with a few statements for fifty of them, and skips companies that cannot be synced. `missed` are the
   * companies that another transaction has locked, or that are gone: no run was requested. A company that fails keeps no other from its
   * run: the call rejects once all were tried, but at once if the database is away.
   */
  async requestAll(companies: readonly CompanyKey[], options: RunOptions): Promise<{ missed: readonly CompanyKey[] }> {
    const missed: CompanyKey[] = [];
    const failures: unknown[] = [];
    const batches: (readonly CompanyKey[])[] = [];
    for (let start = 0; start < companies.length; start += BATCH) batches.push(companies.slice(start, start + BATCH));
    for (const batch of batches) {
      try {
        const outcomes = await this.#request(batch, options, { skipLocked: true });
        missed.push(...batch.filter((company) => !outcomes.has(keyText(company))));
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
   * Requests a run of each active company of the filter, of these lists or of all, and tells which companies were skipped. One statement stores
   * the request for any number of companies; some runs are created at once, the others by the sweep, even if this process dies. Throws
   * company_not_found and unknown_resource before anything is requested. Rejects if one of the first runs cannot be created, although the request is stored.
   */
  async requestMany({ resources, ...filter }: SyncFilter): Promise<ChosenCompanies> {
    const { db } = this.#deps;
    this.#requireKnown(resources);
    if (filter.companies) await requireOnboarded(db, filter.companies);
    await requireOurs(db);
    const chosen = await insertRunRequests(db, { ...chosenBy(filter), resources });
    const few = filter.companies && filter.companies.length <= MADE_AT_ONCE ? filter.companies : undefined;
    if (few) await this.#makeRequestedOf(few);
    else await this.makeRequested({ limit: MADE_AT_ONCE });
    return chosen;
  }

  /** The companies that `requestMany` would choose, with the first of them. Throws what it does. */
  async previewMany({ resources, sample, ...filter }: SyncFilter & { readonly sample: number }) {
    const { db } = this.#deps;
    this.#requireKnown(resources);
    if (filter.companies) await requireOnboarded(db, filter.companies);
    return previewRunRequests(db, { ...chosenBy(filter), sample });
  }

  /**
   * Creates the pending runs of at most `limit` companies. The request for a company that is paused, must authorize again or is gone is
   * dropped; the request for a company that another transaction has locked waits for the next call.
   */
  async makeRequested({ limit }: { limit: number }): Promise<void> {
    await this.#makeRequestedOf(await findRunRequests(this.#deps.db, { limit }));
  }

  async #makeRequestedOf(companies: readonly CompanyKey[]): Promise<void> {
    await this.requestAll(companies, { trigger: 'resync', onlyRequested: true });
  }

  /**
   * Returns the company's queued or running verification read, or a new one, which begins once no sync of the company is queued or running.
   * Throws what `request` does.
   */
  async requestVerification({
    company,
    ...options
  }: {
    readonly company: CompanyKey;
    readonly trigger: VerifyTrigger;
    readonly resources?: readonly string[];
  }): Promise<RunRow> {
    const { db, catalogue, quiet, clock, dispatcher } = this.#deps;
    this.#requireKnown(options.resources);
    await requireOurs(db);
    const deps = { catalogue, quiet, now: clock.now() };
    const outcome = await inTransaction(db, (tx) => requestVerification(tx, company, options, deps));
    if (outcome && isRun(outcome)) await dispatcher.dispatch([outcome]);
    return this.#runOf(company, outcome);
  }

  /** The run of an outcome. Throws its error, and company_not_found if there is no outcome or the run was removed just now. */
  async #runOf(company: CompanyKey, outcome: ClaimableRun | MusterError | undefined): Promise<RunRow> {
    if (outcome instanceof MusterError) throw outcome;
    const run = outcome && (await this.find(outcome.id));
    if (!run) throw companyNotFound(company);
    return run;
  }

  find(id: string): Promise<RunRow | undefined> {
    return findRun(this.#deps.db, { id });
  }

  /** In any order, without the runs that do not exist. */
  findAll(ids: readonly string[]): Promise<ShownRun[]> {
    return findRuns(this.#deps.db, { ids });
  }

  /** Newest first. Throws `invalid_request` for a cursor that no response gave. */
  list(filter: RunFilter): Promise<Page<ShownRun>> {
    return listRuns(this.#deps.db, filter);
  }

  /** A queued run ends at once, a running run before its next page; an ended run stays as it is. Throws run_not_found. */
  async cancel(id: string): Promise<RunRow> {
    const hasEnded = await cancelRun(this.#deps.db, { id });
    const run = await this.find(id);
    if (!run) throw new MusterError('run_not_found', `There is no run ${id}: GET /api/runs lists them.`);
    // A run that no worker has begun has no trace.
    if (hasEnded && run.startedAt) {
      const walks = run.walks.filter(({ status }) => status !== 'succeeded');
      traceRun(tracedRun({ ...run, company: run, walks }))?.end({ 'muster.run.status': run.status });
    }
    return run;
  }

  #requireKnown(resources: readonly string[] = []): void {
    const { catalogue } = this.#deps;
    const unknown = resources.filter((resource) => !catalogue.get(resource));
    if (unknown.length === 0) return;
    const known = catalogue.endpoints.map(({ resource }) => resource).join(', ');
    throw new MusterError('unknown_resource', `No such resource in the catalogue: ${unknown.join(', ')}. There are: ${known}.`);
  }

  async #request(
    companies: readonly CompanyKey[],
    options: RunOptions,
    locking?: { skipLocked: boolean },
  ): Promise<RequestOutcomes> {
    const { db, catalogue, schedule, quiet, clock, dispatcher } = this.#deps;
    const deps = { catalogue, schedule, quiet, now: clock.now() };
    const outcomes = await inTransaction(db, (tx) => requestRuns(tx, companies, options, deps, locking));
    await dispatcher.dispatch([...outcomes.values()].filter(isRun));
    return outcomes;
  }
}

const chosenBy = ({ status, companies, environment }: SyncFilter) => ({
  environment,
  lastRun: status,
  // A company that is named twice counts once.
  ...(companies && { companies: [...new Map(companies.map((company) => [keyText(company), company])).values()] }),
});

/** How many unknown companies a message names. */
const NAMED = 5;

async function requireOnboarded(db: Database, companies: readonly CompanyKey[]): Promise<void> {
  const unknown = await findUnknownCompanies(db, companies);
  if (unknown.length === 0) return;
  const more = unknown.length > NAMED ? ` and ${unknown.length - NAMED} more` : '';
  throw new MusterError(
    'company_not_found',
    `Not onboarded: ${unknown.slice(0, NAMED).map(describeCompany).join(', ')}${more}. Nothing was requested.`,
  );
}

function isRun(outcome: ClaimableRun | MusterError): outcome is ClaimableRun {
  return !(outcome instanceof MusterError);
}
