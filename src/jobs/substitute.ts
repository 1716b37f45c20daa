import type { Clock } from '../core/clock.js';
import { PeriodicTask } from '../core/periodic-task.js';
import type { Service } from '../core/service.js';
import type { Database } from '../db/connection/database.js';
import { countWorkers } from '../db/tables/workers.js';
import type { Deliverer } from '../notifications/deliverer.js';
import type { Logger } from '../observability/logger.js';

interface SubstituteDependencies {
  readonly db: Database;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly sweepIssues: () => Promise<void>;
  readonly deliverer: Pick<Deliverer, 'due' | 'deliver'>;
  readonly logger: Logger;
}

const LOOK_EVERY_MS = 5_000;

/**
 * A shorter absence is not reported, since the only worker may be about to be replaced. A dead worker counts as living for another 15 s, so
 * that the report comes within a minute.
 */
const PATIENCE_MS = 30_000;

/** Concurrent deliveries, as in a worker. */
const CONCURRENCY = 8;

/** While no worker lives, this process opens and resolves issues and delivers notifications, so that people learn of it. */
export class Substitute implements Service {
  readonly name = 'substitute for workers';
  readonly #deps: SubstituteDependencies;
  readonly #looks = new PeriodicTask(LOOK_EVERY_MS, () => this.#look());
  readonly #stopping = new AbortController();
  /** When this process first saw that no worker lives. */
  #absentSince: number | undefined;

  constructor(deps: SubstituteDependencies) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    this.#looks.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#looks.stop();
  }

  async #look(): Promise<void> {
    const { db, clock, sweepIssues, logger } = this.#deps;
    try {
      if ((await countWorkers(db.prisma)) > 0) {
        this.#absentSince = undefined;
        return;
      }
      this.#absentSince ??= clock.monotonic();
      if (clock.monotonic() - this.#absentSince < PATIENCE_MS) return;
      await sweepIssues();
      await this.#deliverDue();
    } catch (error) {
      logger.warn(
        { err: error },
        'no worker lives, and this process could not do all of the work for issues and notifications; trying again',
      );
    }
  }

  async #deliverDue(): Promise<void> {
    const { deliverer } = this.#deps;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const due = await deliverer.due(CONCURRENCY);
      if (due.length === 0) return;
      await Promise.all(due.map(({ id }) => deliverer.deliver(id, signal)));
    }
  }
}
