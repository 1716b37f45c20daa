import { type Catalogue, nightlyLists } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import type { CompanyKey, Environment } from '../core/company.js';
import { type ErrorView, isMusterError, MusterError } from '../core/errors.js';
import { inQuietHours, type QuietHours } from '../core/quiet-hours.js';
import type { Database } from '../db/connection/database.js';
import { isPassingTrouble } from '../db/connection/sql-state.js';
import { falseEtags } from '../db/tables/etag-trust.js';
import { postponeRun, putOffRun, releaseRun } from '../db/tables/run-releases.js';
import { type ClaimedRun, endRun, type RunTrigger, type WalkToDo } from '../db/tables/runs.js';
import type { EndStatus } from '../db/tables/walks.js';
import type { ApiClient } from '../http/api-client.js';
import type { Requester } from '../http/budget/request-budget.js';
import type { ResponseMemory } from '../http/response-memory.js';
import { sentenceOf } from '../http/service-error.js';
import { type TokenSource, tokensOfGrant, tokensUntil } from '../http/token-source.js';
import { newsOfRunEnd } from '../notifications/events.js';
import type { Logger } from '../observability/logger.js';
import { addToSpan, endRun as endRunSpan, failSpan, inList, inRun } from '../observability/tracing.js';
import type { WorkMetrics } from '../observability/work-metrics.js';
import { SecondReader, type SecondReaderDependencies } from '../verify/second-reader.js';
import type { OpenWalk } from '../walks/open-walk.js';
import { pageSource } from '../walks/page-source.js';
import { walkList } from '../walks/walk.js';
import type { WalkStore } from '../walks/walk-store.js';
import { readCompanyRecord, withRecord } from './company-record.js';
import {
  endsTheRun,
  goesOnLater,
  leadsNowhere,
  mayPass,
  retryDelay,
  viewError,
  type WalkFailure,
  walksFailed,
} from './run-failures.js';
import type { LeasedRun } from './run-leases.js';
import { tracedAttempt, tracedList, tracedRun } from './traced-run.js';

export interface ExecutorDependencies extends SecondReaderDependencies {
  readonly db: Database;
  readonly catalogue: Catalogue;
  readonly store: WalkStore;
  readonly tokensOf: (company: CompanyKey) => TokenSource;
  /** `base`: a further host of that environment's API. Throws `environment_not_configured`. */
  readonly apiOf: (environment: Environment, base?: string) => Pick<ApiClient, 'request' | 'baseUrl'>;
  readonly clock: Clock;
  readonly quiet: QuietHours;
  /** All walks of this process share it. */
  readonly answers: ResponseMemory;
  readonly logger: Logger;
  readonly work?: WorkMetrics | undefined;
}

/** The run fails after this many workers in a row have died on it without committing a page. */
const MOST_DEATHS = 3;

/** One attempt at a run, shared by its walks. */
interface Attempt {
  readonly leased: LeasedRun;
  readonly tokens: TokenSource;
  /** Resolves once the company's own record is mirrored. It is requested together with the first page; no page is committed before. */
  readonly record: Promise<void>;
  readonly requester: Requester;
  readonly shouldYield: () => boolean;
  readonly log: Logger;
}

type WalkEnd = 'succeeded' | 'yielded' | WalkFailure;

/** Works on a claimed run: its walks in order, from their checkpoints, until the end or until it must yield. */
export class RunExecutor {
  readonly #deps: ExecutorDependencies;
  readonly #secondReader: SecondReader;
  /** Walks that this process itself has interrupted. Continuing them is not reported to people as a resumption. */
  readonly #parked = new Set<string>();

  constructor(deps: ExecutorDependencies) {
    this.#deps = deps;
    this.#secondReader = new SecondReader(deps);
  }

  /**
   * Returns `continue` if the run was released and has more to do; `over` if it ended, waits to retry or for the end of quiet hours, or was lost.
   */
  execute(leased: LeasedRun, shouldYield: () => boolean): Promise<'continue' | 'over'> {
    const { run } = leased;
    return inRun(tracedRun(run), tracedAttempt(run), () => this.#execute(leased, shouldYield));
  }

  async #execute(leased: LeasedRun, shouldYield: () => boolean): Promise<'continue' | 'over'> {
    const { run } = leased;
    const { db, logger } = this.#deps;
    const log = logger.child({ run_id: run.id, environment: run.company.environment, company_id: run.company.companyId });
    const over = new AbortController();
    let record = Promise.resolve();
    try {
      if (run.cancelRequested) {
        await this.#finish(run, 'cancelled');
        return 'over';
      }
      if (run.deaths >= MOST_DEATHS) {
        const message = `${run.deaths} workers in a row were lost while they worked on this run, and committed no page. The usual cause is a response that takes more memory than they have.`;
        log.error(`run failed: worker_died`);
        await this.#finish(run, 'failed', { code: 'worker_died', message });
        return 'over';
      }
      if (this.#quietEnd(leased) !== undefined) return await this.#giveUp(leased, { isAsked: false }, log);
      const source = this.#deps.tokensOf(run.company);
      const tokens = tokensUntil(leased.signal, source);
      const requester = this.#requesterOf(leased);
      const { walks } = run;
      // A verification read does not read the company's record. The nightly run does, and one that comes every few minutes need not.
      const isLeftOut = run.kind === 'verify' || (run.trigger === 'scheduled' && nightlyLists(this.#deps.catalogue).length > 0);
      const isBegun = isLeftOut || walks[0]?.position !== 0 || walks[0].pages > 0;
      if (!isBegun) {
        const signal = AbortSignal.any([leased.signal, over.signal]);
        record = readCompanyRecord(this.#deps, { run, tokens: tokensUntil(signal, source), requester, signal, log });
      }
      // The walks that await it see its failure.
      record.catch(() => {});
      const failures: WalkFailure[] = [];
      // A walk that stops by itself commits the pages that have come; one that is stopped at a request may not.
      const stopsHere = () => shouldYield() || this.#quietEnd(leased) !== undefined;
      for (const walk of walks) {
        const end = await this.#walk(walk, { leased, tokens, record, requester, shouldYield: stopsHere, log });
        if (end === 'yielded') return await this.#giveUp(leased, { isAsked: true }, log);
        if (end !== 'succeeded') failures.push(end);
      }
      await record;
      if (failures.length > 0) {
        await this.#retryOrFail(leased, failures, walksFailed(failures), log);
      } else if (await this.#finish(run, 'succeeded')) {
        log.info('run succeeded');
      } else if (await releaseRun(db, run)) {
        log.warn('the database has lost the end of one of the walks; the run goes on');
        return 'continue';
      }
      return 'over';
    } catch (error) {
      over.abort();
      await record.catch(() => {});
      return this.#interrupted(leased, error, log).catch((failure: unknown) => {
        // The claim lapses by itself, since its lease is no longer renewed.
        log.warn({ err: failure }, 'the run could not be released; another claim follows once this one has lapsed');
        return 'over';
      });
    }
  }

  #walk(walk: WalkToDo, attempt: Attempt): Promise<WalkEnd> {
    const read = () => this.#readList(walk, attempt);
    return inList(tracedList(walk), read, (end) => end === 'succeeded');
  }

  async #readList(
    { id, resource }: WalkToDo,
    { leased, tokens, record, requester, shouldYield, log }: Attempt,
  ): Promise<WalkEnd> {
    const { store, clock, answers, catalogue, apiOf } = this.#deps;
    const { run, signal } = leased;
    let opened: OpenWalk | undefined;
    try {
      const endpoint = catalogue.get(resource);
      if (!endpoint)
        throw new MusterError(
          'unknown_resource',
          `The catalogue no longer has the list ${resource}: put it back, or request a new run.`,
        );
      const { environment, companyId } = run.company;
      const api = withRecord(apiOf(environment, endpoint.base), requester, record);
      if (run.kind === 'verify') {
        if (shouldYield()) return 'yielded';
        await this.#secondReader.read({ walkId: id, run, endpoint, api, tokens, signal });
        return 'succeeded';
      }
      opened = await store.open({ id, run }, endpoint, !this.#parked.delete(id));
      const ofGrant = tokensOfGrant(tokens, opened.grantNumber);
      const sourceOf = pageSource({ api, companyId, tokens: ofGrant }, endpoint);
      const end = await walkList(opened, endpoint, { store, clock, answers, shouldYield, sourceOf }, signal);
      if (end === 'yielded') this.#parked.add(id);
      if (opened.etags.isFalse) log.warn({ resource }, falseEtags(opened.list));
      const { overruled } = opened;
      if (overruled)
        log.info({ resource, member: overruled.member }, 'the last page says that more follows, but its total says otherwise');
      if (typeof end === 'object')
        log.info({ resource, service_says: end.serviceSays }, `the company does not have ${resource}: unavailable`);
      return end === 'yielded' ? 'yielded' : 'succeeded';
    } catch (error) {
      if (signal.aborted || endsTheRun(error) || isPassingTrouble(error)) throw error;
      failSpan(error);
      const view = viewError(error);
      log.warn({ resource, err: error }, `walk of ${resource} failed: ${view.code}`);
      await store.fail({ id, run }, { error: view, serviceSays: sentenceOf(error) }, leadsNowhere(error));
      if (run.kind === 'sync') this.#deps.work?.walkEnded({ ...run.company, resource }, 'failed');
      return { resource, error, mayPass: mayPass(error, opened) };
    }
  }

  /** Gives the claim up on a run that goes on: in quiet hours it is put off to their end, otherwise any worker may go on with it. */
  async #giveUp(leased: LeasedRun, { isAsked }: { isAsked: boolean }, log: Logger): Promise<'continue' | 'over'> {
    const { db } = this.#deps;
    const { run, quietHours } = leased;
    const end = this.#quietEnd(leased);
    const quietUntil = end === undefined ? undefined : new Date(end);
    if (!quietUntil || !(await putOffRun(db, { ...run, quietHours, quietUntil, isAsked })))
      return (await releaseRun(db, run)) ? 'continue' : 'over';
    addToSpan({ 'muster.attempt.interrupted': 'quiet_hours' });
    log.info({ until: quietUntil.toISOString() }, 'the run waits for the end of the quiet hours');
    return 'over';
  }

  /** The end of the quiet hours that the company is in; undefined if it is in none. */
  #quietEnd({ quietHours }: LeasedRun): number | undefined {
    const { quiet, clock } = this.#deps;
    return quiet.endOf(quietHours, clock.now());
  }

  /** A run is urgent, since a person waits for it, unless the schedule or a request for many companies has made it. */
  #requesterOf(leased: LeasedRun): Requester {
    const { company, trigger } = leased.run;
    return {
      company: company.companyId,
      urgent: !UNATTENDED.has(trigger),
      requireMayLeave: () => {
        const end = this.#quietEnd(leased);
        if (end !== undefined) throw inQuietHours(end);
      },
    };
  }

  async #interrupted(leased: LeasedRun, error: unknown, log: Logger): Promise<'continue' | 'over'> {
    const { db } = this.#deps;
    const { run, interruption } = leased;
    addToSpan({ 'muster.attempt.interrupted': interruption ?? (isMusterError(error, 'stopping') ? 'stopping' : undefined) });
    if (interruption === 'cancelled') {
      await this.#finish(run, 'cancelled');
      return 'over';
    }
    if (interruption === 'stopping' || (interruption === undefined && goesOnLater(error)))
      return this.#giveUp(leased, { isAsked: true }, log);
    if (interruption === 'paused') {
      log.info('the company was paused; its run goes on when it is resumed');
    } else if (interruption === 'lost' || isMusterError(error, 'fenced')) {
      failSpan(error);
      log.warn({ err: error }, 'another worker has taken the run over');
    } else if (isPassingTrouble(error)) {
      failSpan(error);
      log.warn({ err: error }, 'the database interrupted the run; the sweeper puts it before the workers again');
    } else {
      await this.#retryOrFail(leased, [{ error, mayPass: mayPass(error) }], viewError(error), log);
      return 'over';
    }
    await releaseRun(db, run);
    return 'over';
  }

  /** Ends the run by finishRun, and counts it. */
  async #finish(run: ClaimedRun, status: EndStatus, error?: ErrorView): Promise<boolean> {
    const hasEnded = await finishRun(this.#deps.db, run, status, error);
    if (hasEnded) this.#deps.work?.runEnded({ ...run.company, trigger: run.trigger, status });
    return hasEnded;
  }

  async #retryOrFail(
    { run }: LeasedRun,
    failures: readonly Pick<WalkFailure, 'error' | 'mayPass'>[],
    error: ErrorView,
    log: Logger,
  ): Promise<void> {
    const { db } = this.#deps;
    const delaySeconds = retryDelay(run.attempts, failures);
    failSpan(error);
    addToSpan({ 'muster.attempt.retry_in_seconds': delaySeconds });
    if (delaySeconds === undefined) {
      log.error({ err: failures[0]?.error }, `run failed: ${error.code}`);
      await this.#finish(run, 'failed', error);
    } else {
      log.warn({ err: failures[0]?.error, retry_in_seconds: delaySeconds }, `run waits to retry: ${error.code}`);
      await postponeRun(db, { ...run, delaySeconds, error });
    }
  }
}

/** Ends the run and its walks that have not succeeded. Returns whether it did: see endRun. */
export async function finishRun(
  db: Database,
  { id, epoch, kind }: Pick<ClaimedRun, 'id' | 'epoch' | 'kind'>,
  status: EndStatus,
  error?: ErrorView,
): Promise<boolean> {
  const news = kind === 'sync' ? newsOfRunEnd({ status, reason: error?.code }) : undefined;
  const hasEnded = await endRun(db, { id, epoch, status, error, news });
  if (hasEnded) endRunSpan({ 'muster.run.status': status }, error);
  return hasEnded;
}

/** The schedule or a request for many companies has made such a run. */
const UNATTENDED: ReadonlySet<RunTrigger> = new Set(['nightly', 'scheduled', 'resync', 'nightly_verify']);
