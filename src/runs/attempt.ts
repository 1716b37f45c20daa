import type { Clock } from '../core/clock.js';
import { type ErrorView, isMusterError } from '../core/errors.js';
import { inQuietHours, type QuietHours } from '../core/quiet-hours.js';
import type { Database } from '../db/connection/database.js';
import { isPassingTrouble } from '../db/connection/sql-state.js';
import { postponeRun, putOffRun, releaseRun } from '../db/tables/run-releases.js';
import { type ClaimedRun, endRun, type RunTrigger, type WalkToDo } from '../db/tables/runs.js';
import type { EndStatus } from '../db/tables/walks.js';
import type { Requester } from '../http/budget/request-budget.js';
import { newsOfRunEnd } from '../notifications/events.js';
import type { Logger } from '../observability/logger.js';
import { type ListSpan, type RunTrace, traceRun, type WorkSpan } from '../observability/tracing.js';
import type { WorkMetrics } from '../observability/work-metrics.js';
import { goesOnLater, mayPass, retryDelay, viewError, type WalkFailure } from './run-failures.js';
import type { LeasedRun } from './run-leases.js';
import { tracedAttempt, tracedList, tracedRun } from './traced-run.js';

export interface AttemptDependencies {
  readonly db: Database;
  readonly clock: Clock;
  readonly quiet: QuietHours;
  readonly logger: Logger;
  readonly work?: WorkMetrics | undefined;
}

/** `continue`: the run was released and has more to do. `over`: it ended, waits to retry or for the end of quiet hours, or was lost. */
export type AttemptEnd = 'continue' | 'over';

/** One attempt at a claimed run: its log, its spans, and the ways in which it ends. */
export class Attempt {
  readonly leased: LeasedRun;
  readonly log: Logger;
  readonly #deps: AttemptDependencies;
  readonly #trace: RunTrace | undefined;
  readonly #span: WorkSpan | undefined;

  constructor(deps: AttemptDependencies, leased: LeasedRun) {
    const { run } = leased;
    this.leased = leased;
    this.#deps = deps;
    this.#trace = traceRun(tracedRun(run));
    this.#span = this.#trace?.startAttempt(tracedAttempt(run));
    this.log = this.logOf(this.#span);
  }

  /** The run's log, with the ids of the span. */
  logOf(span: WorkSpan | undefined): Logger {
    const { id, company } = this.leased.run;
    return this.#deps.logger.child({
      run_id: id,
      environment: company.environment,
      company_id: company.companyId,
      ...span?.ids,
    });
  }

  spanOf(walk: WalkToDo): ListSpan | undefined {
    return this.#trace?.list(tracedList(walk));
  }

  /** The end of the quiet hours that the company is in; undefined if it is in none. */
  quietEnd(): number | undefined {
    const { quiet, clock } = this.#deps;
    return quiet.endOf(this.leased.quietHours, clock.now());
  }

  /** A run is urgent, since a person waits for it, unless the schedule or a request for many companies has made it. */
  requester(): Requester {
    const { company, trigger } = this.leased.run;
    return {
      company: company.companyId,
      urgent: !UNATTENDED.has(trigger),
      requireMayLeave: () => {
        const end = this.quietEnd();
        if (end !== undefined) throw inQuietHours(end);
      },
    };
  }

  /** Ends the run by finishRun, and counts it. */
  async finish(status: EndStatus, error?: ErrorView): Promise<boolean> {
    const { run } = this.leased;
    const hasEnded = await finishRun(this.#deps.db, run, status, error);
    if (hasEnded) {
      this.#trace?.end({ 'muster.run.status': status }, error);
      this.#deps.work?.runEnded({ ...run.company, trigger: run.trigger, status });
    }
    return hasEnded;
  }

  /** Gives the claim up on a run that goes on: in quiet hours it is put off to their end, otherwise any worker may go on with it. */
  async giveUp({ isAsked }: { isAsked: boolean }): Promise<AttemptEnd> {
    const { db } = this.#deps;
    const { run, quietHours } = this.leased;
    const end = this.quietEnd();
    const quietUntil = end === undefined ? undefined : new Date(end);
    if (!quietUntil || !(await putOffRun(db, { ...run, quietHours, quietUntil, isAsked })))
      return (await releaseRun(db, run)) ? 'continue' : 'over';
    this.#span?.add({ 'muster.attempt.interrupted': 'quiet_hours' });
    this.log.info({ until: quietUntil.toISOString() }, 'the run waits for the end of the quiet hours');
    return 'over';
  }

  async retryOrFail(failures: readonly Pick<WalkFailure, 'error' | 'mayPass'>[], error: ErrorView): Promise<void> {
    const { run } = this.leased;
    const delaySeconds = retryDelay(run.attempts, failures);
    this.#span?.fail(error);
    this.#span?.add({ 'muster.attempt.retry_in_seconds': delaySeconds });
    if (delaySeconds === undefined) {
      this.log.error({ err: failures[0]?.error }, `run failed: ${error.code}`);
      await this.finish('failed', error);
    } else {
      this.log.warn({ err: failures[0]?.error, retry_in_seconds: delaySeconds }, `run waits to retry: ${error.code}`);
      await postponeRun(this.#deps.db, { ...run, delaySeconds, error });
    }
  }

  /** Something threw, or the lease was interrupted. */
  async interrupted(error: unknown): Promise<AttemptEnd> {
    const { run, interruption } = this.leased;
    const why = interruption ?? (isMusterError(error, 'stopping') ? 'stopping' : undefined);
    this.#span?.add({ 'muster.attempt.interrupted': why });
    if (interruption === 'cancelled') {
      await this.finish('cancelled');
      return 'over';
    }
    if (interruption === 'stopping' || (interruption === undefined && goesOnLater(error))) return this.giveUp({ isAsked: true });
    if (interruption === 'paused') {
      this.log.info('the company was paused; its run goes on when it is resumed');
    } else if (interruption === 'lost' || isMusterError(error, 'fenced')) {
      this.#span?.fail(error);
      this.log.warn({ err: error }, 'another worker has taken the run over');
    } else if (isPassingTrouble(error)) {
      this.#span?.fail(error);
      this.log.warn({ err: error }, 'the database interrupted the run; the sweeper puts it before the workers again');
    } else {
      await this.retryOrFail([{ error, mayPass: mayPass(error) }], viewError(error));
      return 'over';
    }
    await releaseRun(this.#deps.db, run);
    return 'over';
  }

  /** Sends its span. */
  close(): void {
    this.#span?.end();
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
  return endRun(db, { id, epoch, status, error, news });
}

/** The schedule or a request for many companies has made such a run. */
const UNATTENDED: ReadonlySet<RunTrigger> = new Set(['nightly', 'scheduled', 'resync', 'nightly_verify']);
