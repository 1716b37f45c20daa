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
  /** Stops the services, then ends the process. */
  readonly endProcess: () => void;
}

/** Ends a worker process if a newer version has changed the database incompatibly. Runs continue in newer processes. */
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
      if (!isMusterError(error, 'process_outdated') || this.#isOutdated) return; // other services report other errors
      this.#isOutdated = true;
      logger.error(`${error.message} This process ends now.`);
      endProcess();
    }
  }
}
