import type { Clock } from '../../core/clock.js';
import { SHARE_TIMEOUT_SECONDS, type Share } from '../../db/tables/request-shares.js';
import type { Logger } from '../../observability/logger.js';
import type { BudgetStore } from './budget-store.js';
import { divideShare } from './divide-share.js';

/** What this process does, as the others should see it. `bound`: the requests at once that it allows itself where nobody has set them. */
export type Activity = Pick<Share, 'waiting' | 'used' | 'refused'> & { readonly inFlight: number; readonly bound: number };

export interface ShareReportDependencies {
  readonly store: BudgetStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Names this process, unlike any other. */
  readonly worker: string;
  /** The most requests at once of all workers together, where it is set. */
  readonly total: number | undefined;
  readonly activity: () => Activity;
  /** Called behind every report. */
  readonly onReport: () => Promise<void>;
}

const REPORT_MS = 500;
/** With a set bound, so long may a worker keep what another one waits for. */
const DIVIDE_MS = 200;
/** While nothing is asked, and only the figures of the last minute grow old. */
const IDLE_MS = 5_000;
/** For so long a rest that cannot be divided is one worker's. */
const TURN_SECONDS = 2;
/** Well before the others take a silent worker's share for theirs. */
const LAPSE_MS = (SHARE_TIMEOUT_SECONDS - 2) * 1_000;

/** Tells the others what this process asks of an environment's API, while it does, and takes its share where requests at once are bounded. */
export class ShareReport {
  readonly #deps: ShareReportDependencies;
  readonly #closed = new AbortController();
  #granted = 0;
  #lapsesAt = -Infinity;
  #running: Promise<void> | undefined;
  #reporting: Promise<void> | undefined;
  /** Whether there is a row to lock. */
  #isPrepared = false;

  constructor(deps: ShareReportDependencies) {
    this.#deps = deps;
  }

  /** Requests that this process may have under way at once. */
  get allowed(): number {
    if (this.#deps.total === undefined) return Infinity;
    return this.#deps.clock.monotonic() < this.#lapsesAt ? this.#granted : 0;
  }

  /** To be called when there is something to ask. */
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
      logger.debug({ err: error }, 'what is asked of the service could not be reported; trying again');
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
        // What is under way is not given back before it has ended, whosesoever turn it is.
        return { ...share, held: Math.max(this.#granted, this.#deps.activity().inFlight) };
      });
    }
    this.#lapsesAt = askedAt + LAPSE_MS;
  }
}
