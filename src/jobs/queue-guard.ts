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
 * Resumes a queue that was paused, or that has lost BullMQ's own data: nothing else would, and without the queue of sweeps no issue would
 * report it. It therefore runs on a timer, not as a job. The database has all work, so lost jobs are added again.
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
    void this.#looks.stop(); // it may be waiting for a queue that does not answer
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }

  async #look(): Promise<void> {
    const { db, logger } = this.#deps;
    for (const [name, queue] of this.#queues) {
      try {
        const [isPaused, version] = await Promise.all([queue.isPaused(), queue.getVersion()]);
        const isWrecked = version === null;
        if (!isPaused && !isWrecked) continue;
        // A queue that has lost its data may still have jobs in the list of a pause.
        await queue.resume();
        if (isWrecked) await this.#recreate(name);
        logger.warn({ queue: name }, `the queue ${isWrecked ? 'had lost its own data' : 'was paused'}, and was resumed`);
        await recordQueueStop(db, { queue: name });
      } catch (error) {
        logger.debug({ err: error, queue: name }, 'the queue could not be looked at; trying again');
      }
    }
  }

  /** BullMQ writes its own data about a queue when the queue is opened. */
  async #recreate(name: QueueName): Promise<void> {
    const queue = this.#deps.backend.queue(name);
    await queue.getVersion();
    await queue.close();
  }
}
