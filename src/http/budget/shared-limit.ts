import type { Clock } from '../../core/clock.js';
import type { Environment } from '../../core/company.js';
import type { BudgetRow } from '../../db/tables/request-budgets.js';
import type { Logger } from '../../observability/logger.js';
import type { BudgetStore } from './budget-store.js';
import { BELOW_LIMIT, rateOf, refused } from './finding.js';

interface SharedLimitDependencies {
  readonly store: BudgetStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly environment: Environment;
  /** The configured requests a second. */
  readonly set: number | undefined;
}

/** The longest pause that one response can cause. The service can ask for another one afterwards. */
const MOST_PAUSE_SECONDS = 3_600;
/** Twice the interval at which a busy process reads the row. An idle process reads it again before it sends a request. */
const STALE_MS = 1_000;

/**
 * The limit of an environment that all workers share, as this process read it last. A refusal of a request sent under another
 * `version` has been handled already.
 */
export class SharedLimit {
  readonly #deps: SharedLimitDependencies;
  #known: BudgetRow | undefined;
  #readAt = -Infinity;
  #resumesAt = -Infinity;

  constructor(deps: SharedLimitDependencies) {
    this.#deps = deps;
  }

  /** The row was read just now. */
  get isFresh(): boolean {
    return this.#known !== undefined && this.#deps.clock.monotonic() - this.#readAt < STALE_MS;
  }

  /** Undefined until the row was read, and while it cannot be read. */
  get version(): number | undefined {
    return this.#known?.version;
  }

  /** Concurrent requests of one process that worked before. */
  get atOnce(): number | undefined {
    return this.#known?.atOnce ?? undefined;
  }

  /** When requests may be sent again, by `clock.monotonic`. */
  get resumesAt(): number {
    return this.#resumesAt;
  }

  /** The rate to send at; undefined while no limit is known. */
  get rate(): number | undefined {
    const lowest = Math.min(this.#known ? foundRate(this.#known) : Infinity, this.#most);
    return lowest === Infinity ? undefined : lowest;
  }

  /** The configured or announced limit, less the room for requests that arrive close together. */
  get #most(): number {
    return BELOW_LIMIT * Math.min(this.#deps.set ?? Infinity, this.#known?.announced ?? Infinity);
  }

  /** How far the schedule of that version has come, in seconds. */
  progressed(version: number, progress: number): void {
    if (this.#known?.version !== version) return;
    this.#known = { ...this.#known, progress };
    this.#readAt = this.#deps.clock.monotonic();
  }

  async read(): Promise<void> {
    const { store, clock } = this.#deps;
    let row = await store.read();
    if (!row) {
      await store.add();
      row = await store.read();
    }
    // An earlier read may end later.
    if (!row || row.version < (this.#known?.version ?? 0)) return;
    this.#known = row;
    this.#readAt = clock.monotonic();
    this.#resumesAt = this.#readAt + row.pause * 1_000;
  }

  forget(): void {
    this.#known = undefined;
  }

  /** A request sent under that version was refused. `accepted`: requests accepted in the second before. */
  async refusedAt(version: number, accepted: number, retryAfterMs: number | undefined): Promise<void> {
    const { store, environment, logger } = this.#deps;
    const row = await store.read();
    if (row?.version === version) {
      const isBound = foundRate(row) > this.#most;
      const known = isBound ? { rate: this.#most, fallback: null, seeking: false, progress: 0 } : row;
      const retryAfter = retryAfterMs === undefined ? undefined : secondsOf(retryAfterMs);
      const wasBound = isBound || (row.rate !== null && row.rate > 0.7 * this.#most);
      // The time before the first refusal of a configured limit has no meaning.
      const elapsed = row.rate === null ? Infinity : row.elapsed;
      const { finding, pause } = refused(known, { ...row, elapsed, accepted, retryAfter, isBound: wasBound });
      if (await store.change({ version, ...finding, pause }))
        logger.debug({ environment, ...finding, pause }, 'the service refused a request: the rate was changed');
    }
    await this.read();
  }

  async announce(announced: number): Promise<void> {
    if (announced === this.#known?.announced) return;
    await this.#deps.store.announce(announced);
    await this.read();
  }

  async pause(ms: number): Promise<void> {
    await this.#deps.store.pause(secondsOf(ms));
    await this.read();
  }

  /** Whether the announced limit differs from the known one. */
  isNews(announced: number): boolean {
    return this.#known !== undefined && announced !== this.#known.announced;
  }
}

function foundRate({ rate, seeking, progress }: BudgetRow): number {
  return rate === null ? Infinity : rateOf({ rate, seeking, progress });
}

function secondsOf(ms: number): number {
  return Math.min(MOST_PAUSE_SECONDS, ms / 1_000);
}
