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
  /** Requests a second that are set. */
  readonly set: number | undefined;
}

/** The longest that an environment is left alone because one answer asked for it: then it is asked again, and may say so again. */
const MOST_PAUSE_SECONDS = 3_600;
/** Twice as long as it takes until a busy process reads it anyway: what one that was idle knows is older, and read before it asks. */
const STALE_MS = 1_000;

/**
 * What all workers know of an environment's limit, as this process has read it last. `version` names it: a refusal of a request that left
 * under another one has been learned from already.
 */
export class SharedLimit {
  readonly #deps: SharedLimitDependencies;
  #known: BudgetRow | undefined;
  #readAt = -Infinity;
  #resumesAt = -Infinity;

  constructor(deps: SharedLimitDependencies) {
    this.#deps = deps;
  }

  /** Whether it was read just now. */
  get isFresh(): boolean {
    return this.#known !== undefined && this.#deps.clock.monotonic() - this.#readAt < STALE_MS;
  }

  /** Undefined until it was read, and while it cannot be. */
  get version(): number | undefined {
    return this.#known?.version;
  }

  /** Requests of a process at once that went well before. */
  get atOnce(): number | undefined {
    return this.#known?.atOnce ?? undefined;
  }

  /** When somebody may ask again, by `clock.monotonic`. */
  get resumesAt(): number {
    return this.#resumesAt;
  }

  /** The rate to send at; undefined while no limit is known. */
  get rate(): number | undefined {
    const lowest = Math.min(this.#known ? foundRate(this.#known) : Infinity, this.#most);
    return lowest === Infinity ? undefined : lowest;
  }

  /** What is set or announced, less the room for requests that come close behind each other. */
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
    // What was read earlier may come later.
    if (!row || row.version < (this.#known?.version ?? 0)) return;
    this.#known = row;
    this.#readAt = clock.monotonic();
    this.#resumesAt = this.#readAt + row.pause * 1_000;
  }

  forget(): void {
    this.#known = undefined;
  }

  /** A request that left under that version was refused. `accepted`: requests of the second before. */
  async refusedAt(version: number, accepted: number, retryAfterMs: number | undefined): Promise<void> {
    const { store, environment, logger } = this.#deps;
    const row = await store.read();
    if (row?.version === version) {
      const isBound = foundRate(row) > this.#most;
      const known = isBound ? { rate: this.#most, fallback: null, seeking: false, progress: 0 } : row;
      const retryAfter = retryAfterMs === undefined ? undefined : secondsOf(retryAfterMs);
      const wasBound = isBound || (row.rate !== null && row.rate > 0.7 * this.#most);
      // A first refusal of what is set says nothing of the time before.
      const elapsed = row.rate === null ? Infinity : row.elapsed;
      const { finding, pause } = refused(known, { ...row, elapsed, accepted, retryAfter, isBound: wasBound });
      if (await store.change({ version, ...finding, pause }))
        logger.debug({ environment, ...finding, pause }, 'the service refused a request: another rate is held');
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

  /** Whether it differs from what is known that the service's headers allow so much. */
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
