import { isMusterError } from '../core/errors.js';
import { PeriodicTask } from '../core/periodic-task.js';
import type { Service } from '../core/service.js';
import type { Database } from '../db/connection/database.js';
import { requireCompatible } from '../db/schema/compatibility.js';
import type { Logger } from '../observability/logger.js';

const LOOK_EVERY_MS = 5_000;

interface VersionWatchDependencies {
  readonly db: Pick<Database, 'pool'>;
  readonly logger: Logger;
  /** Ends the process in order. */
  readonly endProcess: () => void;
}

/** Ends a process that works on the queue when a newer version has changed the database so that it cannot go on. Runs go on in newer processes. */
export class VersionWatch implements Service {
  readonly name = 'version';
  readonly #deps: VersionWatchDependencies;
  readonly #looks = new PeriodicTask(LOOK_EVERY_MS, () => this.#look());
  #isOutdated = false;

  constructor(deps: VersionWatchDependencies) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    this.#looks.start();
  }

  stop(): Promise<void> {
    return this.#looks.stop();
  }

  async #look(): Promise<void> {
    const { db, logger, endProcess } = this.#deps;
    try {
      await requireCompatible(db.pool);
    } catch (error) {
      if (!isMusterError(error, 'process_outdated') || this.#isOutdated) return; // what else keeps it from looking is told elsewhere
      this.#isOutdated = true;
      logger.error(`${error.message} This process ends now.`);
      endProcess();
    }
  }
}
