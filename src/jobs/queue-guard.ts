import type { Queue } from 'bullmq';
import { PeriodicTask } from '../core/periodic-task.js';
import type { Service } from '../core/service.js';
import type { Database } from '../db/connection/database.js';
import { recordQueueStop } from '../db/tables/queue-stops.js';
import type { Logger } from '../observability/logger.js';
import { QUEUES, type QueueBackend, type QueueName } from './queue-backend.js';

const LOOK_EVERY_MS = 5_000;

interface QueueGuardDependencies {
  readonly backend: QueueBackend;
  readonly db: Database;
  readonly logger: Logger;
}

/**
 * Sets a queue going again that somebody has paused or whose own data is gone: nobody else would, and without the queue of sweeps nobody would say so. So
 * it looks by a timer and not by a job. Jobs that are lost come back from the database.
 */
export class QueueGuard implements Service {
  readonly name = 'queue guard';
  readonly #deps: QueueGuardDependencies;
  readonly #queues: ReadonlyMap<QueueName, Queue>;
  readonly #looks = new PeriodicTask(LOOK_EVERY_MS, () => this.#look());

  constructor(deps: QueueGuardDependencies) {
    this.#deps = deps;
    this.#queues = new Map(QUEUES.map((name) => [name, deps.backend.queue(name)]));
  }

  async start(): Promise<void> {
    this.#looks.start();
  }

  async stop(): Promise<void> {
    void this.#looks.stop(); // may be waiting for a queue that is not there
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }

  async #look(): Promise<void> {
    const { db, logger } = this.#deps;
    for (const [name, queue] of this.#queues) {
      try {
        const [isPaused, version] = await Promise.all([queue.isPaused(), queue.getVersion()]);
        const isWrecked = version === null;
        if (!isPaused && !isWrecked) continue;
        // Also where nothing says any more that it is paused: jobs may lie where a pause has put them.
        await queue.resume();
        if (isWrecked) await this.#recreate(name);
        logger.warn({ queue: name }, `the queue was ${isWrecked ? 'without its own data' : 'paused'}, and was set going again`);
        await recordQueueStop(db, { queue: name });
      } catch (error) {
        logger.debug({ err: error, queue: name }, 'the queue could not be looked at; trying again');
      }
    }
  }

  /** BullMQ writes what it knows of a queue when it is opened. */
  async #recreate(name: QueueName): Promise<void> {
    const queue = this.#deps.backend.queue(name);
    await queue.getVersion();
    await queue.close();
  }
}
