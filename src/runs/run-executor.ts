import { type Catalogue, nightlyLists } from '../catalogue/endpoint.js';
import type { CompanyKey, Environment } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { isPassingTrouble } from '../db/connection/sql-state.js';
import { falseEtags } from '../db/tables/etag-trust.js';
import { releaseRun } from '../db/tables/run-releases.js';
import type { WalkToDo } from '../db/tables/runs.js';
import type { ApiClient } from '../http/api-client.js';
import type { Requester } from '../http/budget/request-budget.js';
import { sentenceOf } from '../http/service-error.js';
import { type TokenSource, tokensOfGrant, tokensUntil } from '../http/token-source.js';
import type { ListSpan } from '../observability/tracing.js';
import { SecondReader, type SecondReaderDependencies } from '../verify/second-reader.js';
import type { OpenWalk } from '../walks/open-walk.js';
import { pageSource } from '../walks/page-source.js';
import { walkList } from '../walks/walk.js';
import type { WalkStore } from '../walks/walk-store.js';
import { Attempt, type AttemptDependencies, type AttemptEnd } from './attempt.js';
import { readCompanyRecord, withRecord } from './company-record.js';
import { endsTheRun, leadsNowhere, mayPass, viewError, type WalkFailure, walksFailed } from './run-failures.js';
import type { LeasedRun } from './run-leases.js';

export interface ExecutorDependencies extends SecondReaderDependencies, AttemptDependencies {
  readonly catalogue: Catalogue;
  readonly store: WalkStore;
  readonly tokensOf: (company: CompanyKey) => TokenSource;
  /** `base`: a further host of that environment's API. Throws `environment_not_configured`. */
  readonly apiOf: (environment: Environment, base?: string) => Pick<ApiClient, 'request' | 'baseUrl'>;
}

/** The run fails after this many workers in a row have died on it without committing a page. */
const MOST_DEATHS = 3;

/** Shared by the walks of an attempt. */
interface Reading {
  readonly attempt: Attempt;
  readonly tokens: TokenSource;
  /** Resolves once the company's own record is mirrored. It is requested together with the first page; no page is committed before. */
  readonly record: Promise<void>;
  readonly requester: Requester;
  readonly shouldYield: () => boolean;
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

  async execute(leased: LeasedRun, shouldYield: () => boolean): Promise<AttemptEnd> {
    const attempt = new Attempt(this.#deps, leased);
    try {
      return await this.#execute(attempt, shouldYield);
    } finally {
      attempt.close();
    }
  }

  async #execute(attempt: Attempt, shouldYield: () => boolean): Promise<AttemptEnd> {
    const { leased, log } = attempt;
    const { run } = leased;
    const over = new AbortController();
    let record = Promise.resolve();
    try {
      if (run.cancelRequested) {
        await attempt.finish('cancelled');
        return 'over';
      }
      if (run.deaths >= MOST_DEATHS) {
        const message = `${run.deaths} workers in a row were lost while they worked on this run, and committed no page. The usual cause is a response that takes more memory than they have.`;
        log.error(`run failed: worker_died`);
        await attempt.finish('failed', { code: 'worker_died', message });
        return 'over';
      }
      if (attempt.quietEnd() !== undefined) return await attempt.giveUp({ isAsked: false });
      const source = this.#deps.tokensOf(run.company);
      const tokens = tokensUntil(leased.signal, source);
      const requester = attempt.requester();
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
      const stopsHere = () => shouldYield() || attempt.quietEnd() !== undefined;
      for (const walk of walks) {
        const end = await this.#walk(walk, { attempt, tokens, record, requester, shouldYield: stopsHere });
        if (end === 'yielded') return await attempt.giveUp({ isAsked: true });
        if (end !== 'succeeded') failures.push(end);
      }
      await record;
      if (failures.length > 0) {
        await attempt.retryOrFail(failures, walksFailed(failures));
      } else if (await attempt.finish('succeeded')) {
        log.info('run succeeded');
      } else if (await releaseRun(this.#deps.db, run)) {
        log.warn('the database has lost the end of one of the walks; the run goes on');
        return 'continue';
      }
      return 'over';
    } catch (error) {
      over.abort();
      await record.catch(() => {});
      return attempt.interrupted(error).catch((failure: unknown) => {
        // The claim lapses by itself, since its lease is no longer renewed.
        log.warn({ err: failure }, 'the run could not be released; another claim follows once this one has lapsed');
        return 'over';
      });
    }
  }

  async #walk(walk: WalkToDo, reading: Reading): Promise<WalkEnd> {
    const span = reading.attempt.spanOf(walk);
    const end = await this.#readList(walk, reading, span);
    if (end === 'succeeded') span?.end();
    return end;
  }

  async #readList({ id, resource }: WalkToDo, reading: Reading, span: ListSpan | undefined): Promise<WalkEnd> {
    const { store, clock, answers, catalogue, apiOf } = this.#deps;
    const { attempt, tokens, record, requester, shouldYield } = reading;
    const { run, signal } = attempt.leased;
    const log = span ? attempt.logOf(span) : attempt.log;
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
        await this.#secondReader.read({ walkId: id, run, endpoint, api, tokens, signal, span });
        return 'succeeded';
      }
      opened = { ...(await store.open({ id, run }, endpoint, !this.#parked.delete(id))), span };
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
      span?.fail(error);
      const view = viewError(error);
      log.warn({ resource, err: error }, `walk of ${resource} failed: ${view.code}`);
      await store.fail({ id, run }, { error: view, serviceSays: sentenceOf(error) }, leadsNowhere(error));
      if (run.kind === 'sync') this.#deps.work?.walkEnded({ ...run.company, resource }, 'failed');
      return { resource, error, mayPass: mayPass(error, opened) };
    }
  }
}
