import type { Clock } from '../../core/clock.js';
import { SHARE_TIMEOUT_SECONDS, type Share } from '../../db/tables/request-shares.js';
import type { Logger } from '../../observability/logger.js';
import type { BudgetStore } from './budget-store.js';
import { divideShare } from './divide-share.js';

/** The activity of this process, for the other workers. `bound`: the limit that it sets itself if none is configured. */
export type Activity = Pick<Share, 'waiting' | 'used' | 'refused'> & { readonly inFlight: number; readonly bound: number };

export interface ShareReportDependencies {
  readonly store: BudgetStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Names this process, unlike any other. */
  readonly worker: string;
  /** The configured limit for concurrent requests of all workers together. */
  readonly total: number | undefined;
  readonly activity: () => Activity;
  /** Called after every report. */
  readonly onReport: () => Promise<void>;
}

const REPORT_MS = 500;
/** With a configured limit, a worker may keep a share this long while another one waits for it. */
const DIVIDE_MS = 200;
/** Interval while nothing is sent and only the figures of the last minute change. */
const IDLE_MS = 5_000;
/** One worker keeps a remainder that cannot be divided this long. */
const TURN_SECONDS = 2;
/** The share lapses well before the other workers take over that of a silent one. */
const LAPSE_MS = (SHARE_TIMEOUT_SECONDS - 2) * 1_000;

/** Reports this process's use of an environment's API to the other workers, and takes its share if concurrent requests are limited. */
export class ShareReport {
  readonly #deps: ShareReportDependencies;
  readonly #closed = new AbortController();
  #granted = 0;
  #lapsesAt = -Infinity;
  #running: Promise<void> | undefined;
  #reporting: Promise<void> | undefined;
  /** The row to lock exists. */
  #isPrepared = false;

  constructor(deps: ShareReportDependencies) {
    this.#deps = deps;
  }

  /** Concurrent requests allowed for this process. */
  get allowed(): number {
    if (this.#deps.total === undefined) return Infinity;
    return this.#deps.clock.monotonic() < this.#lapsesAt ? this.#granted : 0;
  }

  /** Call it when there is a request to send. */
  begin(): void {
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    if (this.allowed === 0) void this.#report();
  }

  /** Gives the share back. */
  async close(): Promise<void> {
    const wasUsed = this.#lapsesAt > -Infinity;
    this.#closed.abort();
    await this.#running;
    await this.#reporting;
    if (wasUsed) await this.#write({ inFlight: 0, bound: 0, waiting: 0 });
  }

  async #run(): Promise<void> {
    const { clock, activity, total } = this.#deps;
    while (!this.#closed.signal.aborted) {
      await this.#report();
      const { inFlight, waiting, used } = activity();
      const isBusy = inFlight + waiting > 0 || (total !== undefined && this.#granted > 0);
      if (!isBusy && used === 0) return;
      const pause = !isBusy ? IDLE_MS : total === undefined ? REPORT_MS : DIVIDE_MS;
      await clock.sleep(pause, this.#closed.signal).catch(() => {});
    }
  }

  #report(): Promise<void> {
    return (this.#reporting ??= this.#write({}).finally(() => (this.#reporting = undefined)));
  }

  async #write(instead: Partial<Activity>): Promise<void> {
    const { store, logger, onReport } = this.#deps;
    try {
      if (!this.#isPrepared) await Promise.all([store.add(), store.removeOldShares()]);
      this.#isPrepared = true;
      await this.#exchange({ ...this.#deps.activity(), ...instead });
    } catch (error) {
      logger.debug({ err: error }, 'the use of the request budget could not be reported; trying again');
    }
    await onReport();
  }

  async #exchange({ inFlight, bound, waiting, used, refused }: Activity): Promise<void> {
    const { store, clock, worker, total } = this.#deps;
    const share = { worker, wanted: inFlight + waiting, waiting, used, refused };
    const askedAt = clock.monotonic();
    if (total === undefined) {
      await store.report({ ...share, held: bound });
    } else {
      await store.divide(({ shares, now }) => {
        const others = shares.filter((other) => other.worker !== worker);
        this.#granted = divideShare(total, share, others, Math.floor(now / TURN_SECONDS));
        // A share is not released while its requests run.
        return { ...share, held: Math.max(this.#granted, this.#deps.activity().inFlight) };
      });
    }
    this.#lapsesAt = askedAt + LAPSE_MS;
  }
}
