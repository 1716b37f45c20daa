import type { Clock } from '../../core/clock.js';
import type { Environment } from '../../core/company.js';
import { isMusterError, MusterError } from '../../core/errors.js';
import { translateDatabaseError } from '../../db/connection/sql-state.js';
import type { Logger } from '../../observability/logger.js';
import type { HttpResponse } from '../http-client.js';
import { parseRetryAfter } from '../retry-after.js';
import { ServiceError } from '../service-error.js';
import { announcedLimit, exhaustedForMs } from './announced-limit.js';
import type { BudgetStore } from './budget-store.js';
import { FairQueue } from './fair-queue.js';
import { InFlightWindow } from './in-flight-window.js';
import type { Permit, RequestBudget, Requester } from './request-budget.js';
import { RollingCount } from './rolling-count.js';
import { ShareReport } from './share-report.js';
import { SharedLimit } from './shared-limit.js';
import { SlotSchedule } from './slot-schedule.js';

/** Configured limits for all workers together. Muster finds the limits that are not set. */
export interface SetLimits {
  readonly requestsPerSecond?: number | undefined;
  readonly maxConcurrentRequests?: number | undefined;
}

export interface BudgetDependencies {
  readonly store: BudgetStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly environment: Environment;
  /** Names this process, unlike any other. */
  readonly worker: string;
  readonly limits: SetLimits;
}

interface Waiting {
  readonly since: number;
  resolve(permit: Permit): void;
  reject(error: unknown): void;
}

/** For a longer pause, whole runs are postponed instead of single requests. */
const LONGEST_PAUSE_MS = 60_000;
/** Refusals that ask for a pause until about the same moment belong together. */
const ONE_EPISODE_MS = 500;

/**
 * The request budget of an environment, which all workers share in a row of muster.request_budgets.
 *
 * An admitted request counts as one of the concurrent requests and, once a limit is set, announced or found, has a slot of the schedule.
 * A waiting request holds nothing but its place in a queue. Every response is examined: a 429 shows how much the
 * service accepts (finding.ts). The first worker that gets one writes it down, and the others follow with their next lease.
 */
export class SharedRequestBudget implements RequestBudget {
  readonly name: string;
  readonly #deps: BudgetDependencies;
  readonly #queue = new FairQueue<Waiting>();
  readonly #limit: SharedLimit;
  readonly #slots: SlotSchedule;
  readonly #share: ShareReport;
  #window = new InFlightWindow();
  #inFlight = 0;
  /** The row is being read or changed. No request is sent until then. */
  #learning: Promise<void> | undefined;
  #leasing: Promise<void> | undefined;
  #wakesAt = Infinity;
  readonly #closed = new AbortController();
  readonly #used = new RollingCount(60_000, 60);
  readonly #refused = new RollingCount(60_000, 60);
  readonly #accepted = new RollingCount(1_000, 20);
  #remembered = 0;

  constructor(deps: BudgetDependencies) {
    this.#deps = deps;
    this.name = `request budget of ${deps.environment}`;
    this.#limit = new SharedLimit({ ...deps, set: deps.limits.requestsPerSecond });
    this.#slots = new SlotSchedule(deps);
    this.#share = new ShareReport({
      ...deps,
      total: deps.limits.maxConcurrentRequests,
      activity: () => {
        const now = deps.clock.monotonic();
        const counts = { used: this.#used.total(now), refused: this.#refused.total(now) };
        return { ...counts, waiting: this.#queue.size, inFlight: this.#inFlight, bound: this.#window.size };
      },
      onReport: () => this.#afterReport(),
    });
  }

  admit(requester: Requester, signal?: AbortSignal): Permit | Promise<Permit> {
    signal?.throwIfAborted();
    if (this.#closed.signal.aborted) throw new MusterError('stopping', 'Nothing is asked of the service any more.');
    this.#share.begin();
    const since = this.#deps.clock.monotonic();
    if (this.#queue.size === 0 && this.#mayLeave(1)) return this.#permit(since);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        leave();
        reject(signal?.reason);
      };
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => (signal?.removeEventListener('abort', onAbort), settle(value));
      const leave = this.#queue.add(requester, { since, resolve: settled(resolve), reject: settled(reject) });
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#pump();
    });
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#rejectAll(new MusterError('stopping', 'Nothing is asked of the service any more.'));
    await this.#learning;
    await this.#leasing;
    await this.#share.close();
  }

  #pump(): void {
    while (this.#queue.size > 0 && this.#mayLeave(this.#queue.size)) {
      const { since, resolve } = this.#queue.take()!;
      resolve(this.#permit(since));
    }
  }

  /** Whether a request may be sent now. If so it must be sent, because its slot is used; if not, the queue is looked at again later. */
  #mayLeave(waiting: number): boolean {
    if (this.#closed.signal.aborted || this.#learning) return false;
    // While requests run, every report reads the row again, and no request waits for it.
    if (this.#limit.version === undefined || (this.#inFlight === 0 && !this.#limit.isFresh)) {
      this.#learn(() => this.#limit.read());
      return false;
    }
    const pauseMs = this.#limit.resumesAt - this.#deps.clock.monotonic();
    if (pauseMs > LONGEST_PAUSE_MS) this.#rejectAll(leftAlone(this.#deps.environment, pauseMs));
    if (pauseMs > 0) return this.#wake(this.#limit.resumesAt);
    if (this.#inFlight >= (this.#deps.limits.maxConcurrentRequests === undefined ? this.#window.size : this.#share.allowed))
      return false;
    const { rate } = this.#limit;
    if (rate === undefined) return true;
    const isDue = this.#slots.take();
    if (this.#slots.isShort(waiting - (isDue ? 1 : 0))) this.#leasing = this.#lease(rate, waiting);
    if (!isDue && this.#slots.next !== undefined) this.#wake(this.#slots.next);
    return isDue;
  }

  #wake(at: number): false {
    if (at < this.#wakesAt) void this.#pumpAt(at);
    return false;
  }

  async #pumpAt(at: number): Promise<void> {
    const { clock } = this.#deps;
    this.#wakesAt = at;
    await clock.sleep(Math.max(0, at - clock.monotonic()), this.#closed.signal).catch(() => {});
    if (this.#wakesAt === at) this.#wakesAt = Infinity;
    this.#pump();
  }

  #permit(since: number): Permit {
    const { clock } = this.#deps;
    const sentAt = clock.monotonic();
    const version = this.#limit.version!;
    this.#inFlight += 1;
    const end = (look: () => void) => {
      this.#inFlight -= 1;
      look();
      this.#pump();
    };
    return {
      waitedMs: sentAt - since,
      answered: (response) => end(() => this.#look(response, version, sentAt)),
      failed: (error) =>
        end(() => {
          this.#used.add(clock.monotonic());
          if (isMusterError(error, 'service_timeout')) this.#window.narrow(sentAt, clock.monotonic());
        }),
      unused: () => end(() => {}),
    };
  }

  #look({ status, headers }: Pick<HttpResponse, 'status' | 'headers'>, version: number, sentAt: number): void {
    const { clock } = this.#deps;
    const now = clock.monotonic();
    this.#used.add(now);
    const announced = announcedLimit(headers);
    if (announced !== undefined && this.#limit.isNews(announced)) this.#learn(() => this.#limit.announce(announced));
    if (status === 429 || status === 503) {
      this.#window.narrow(sentAt, now);
      const retryAfterMs = parseRetryAfter(headers['retry-after'], clock.now());
      if (status === 429) this.#refused.add(now);
      if (status === 429 && version === this.#limit.version) this.#refusedAt(version, retryAfterMs);
      else if (retryAfterMs !== undefined && now + retryAfterMs > this.#limit.resumesAt + ONE_EPISODE_MS)
        this.#learn(() => this.#limit.pause(retryAfterMs));
      return;
    }
    this.#accepted.add(now);
    this.#window.answered(now - sentAt, this.#queue.size > 0 || this.#inFlight + 1 >= this.#window.size);
    // The service's window is used up: the next request would be refused.
    const exhaustedMs = this.#limit.rate === undefined ? exhaustedForMs(headers, clock.now()) : undefined;
    if (exhaustedMs !== undefined) this.#refusedAt(version, Math.min(exhaustedMs, LONGEST_PAUSE_MS));
  }

  #refusedAt(version: number, retryAfterMs: number | undefined): void {
    const accepted = this.#accepted.total(this.#deps.clock.monotonic());
    this.#learn(() => this.#limit.refusedAt(version, accepted, retryAfterMs));
  }

  async #lease(rate: number, waiting: number): Promise<void> {
    const version = this.#limit.version!;
    try {
      const progress = await this.#slots.lease(version, rate, waiting);
      if (progress === undefined) this.#learn(() => this.#limit.read());
      else this.#limit.progressed(version, progress);
    } catch (error) {
      this.#fail(error);
    }
    this.#pump();
  }

  /** Stops requests until the limit is known again. A second call does nothing: the same refusal is handled once. */
  #learn(work: () => Promise<void>): void {
    if (this.#learning || this.#closed.signal.aborted) return;
    this.#learning = this.#whileLearning(work);
  }

  async #whileLearning(work: () => Promise<void>): Promise<void> {
    const before = this.#limit.version;
    try {
      await work();
      this.#adopt(before);
    } catch (error) {
      this.#fail(error);
    }
    this.#learning = undefined;
    this.#pump();
  }

  async #read(): Promise<void> {
    const before = this.#limit.version;
    try {
      await this.#limit.read();
      this.#adopt(before);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Drops the slots of another version. */
  #adopt(before: number | undefined): void {
    if (before === undefined) this.#window = new InFlightWindow(this.#limit.atOnce);
    if (before !== this.#limit.version) this.#slots.clear();
  }

  /** Reads the row again: other workers may have been refused, or have paused. */
  async #afterReport(): Promise<void> {
    if (this.#inFlight + this.#queue.size === 0 || this.#closed.signal.aborted) return;
    await this.#read();
    this.#pump();
    if (this.#limit.rate === undefined && this.#window.size > 1.5 * this.#remembered) {
      this.#remembered = this.#window.size;
      await this.#deps.store.rememberAtOnce(this.#remembered).catch(() => {});
    }
  }

  /** Without the database no request may be sent: all waiting callers get the error and try again later. */
  #fail(error: unknown): void {
    this.#limit.forget();
    this.#slots.clear();
    this.#rejectAll(translateDatabaseError(error));
  }

  #rejectAll(error: unknown): void {
    for (let next = this.#queue.take(); next; next = this.#queue.take()) next.reject(error);
  }
}

function leftAlone(environment: Environment, pauseMs: number): ServiceError {
  return new ServiceError(
    'service_throttled',
    `The API of the ${environment} environment asked Muster to wait; Muster asks it again later`,
    {
      sent: false,
      retryAfterMs: pauseMs,
    },
  );
}
