import type { Queue } from 'bullmq';
import { systemClock } from '../core/clock.js';
import { PeriodicTask } from '../core/periodic-task.js';
import type { Service } from '../core/service.js';
import { isPassingTrouble } from '../db/connection/sql-state.js';
import type { Logger } from '../observability/logger.js';
import { type QueueBackend, QueueWorker } from './queue-backend.js';

const SWEEPS = 'sweeps';

/** Looks in the database for due work and offers it to the workers. */
export interface Sweep {
  readonly name: string;
  readonly everyMs: number;
  run(): Promise<void>;
}

/** How often each worker checks that the schedules exist: the queue may have been flushed. */
const GUARD_MS = 5_000;
/** How far the next occurrence of a sweep may be outside its interval: clocks of workers differ, and a worker may be busy. */
const TOLERANCE_MS = 30_000;

/**
 * Runs the sweeps as repeatable jobs: each sweep has one schedule, whatever the number of companies and workers, and each occurrence runs
 * in one worker only. The database knows which work is due, so a lost occurrence costs one interval.
 */
export class Sweeper implements Service {
  readonly name = 'sweeper';
  readonly #sweeps: ReadonlyMap<string, Sweep>;
  readonly #logger: Logger;
  readonly #queue: Queue;
  readonly #worker: QueueWorker;
  #starting: Promise<void> | undefined;
  #isStopped = false;
  readonly #guard = new PeriodicTask(GUARD_MS, () =>
    this.#schedule().catch((error: unknown) => this.#logger.warn({ err: error }, 'schedules could not be checked')),
  );

  constructor(backend: QueueBackend, sweeps: readonly Sweep[], logger: Logger) {
    this.#sweeps = new Map(sweeps.map((sweep) => [sweep.name, sweep]));
    this.#logger = logger;
    this.#queue = backend.queue(SWEEPS);
    const concurrency = sweeps.length;
    this.#worker = new QueueWorker(backend, SWEEPS, async (job) => this.#sweeps.get(job.name)?.run(), { concurrency });
  }

  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    void this.#guard.stop(); // it may be waiting for a queue that does not answer
    await this.#worker.stop();
    // BullMQ never settles a call to a closed queue, so a start that is under way would hang forever.
    await this.#starting?.catch(() => {});
    await this.#queue.close();
  }

  async #start(): Promise<void> {
    if (this.#isStopped) return;
    this.#worker.start();
    // Workers that start together may conflict; the guard checks again soon.
    await this.#schedule().catch((error: unknown) => {
      if (!isPassingTrouble(error)) throw error;
      this.#logger.debug({ err: error }, 'schedules could not be written; the next check follows soon');
    });
    this.#guard.start();
  }

  /**
   * Writes only schedules that are missing, differ or are stuck: writing a schedule while its job waits loses that occurrence. A schedule is
   * stuck if its next occurrence is far in the past, because its job was lost, or far in the future, because the clock of the worker that
   * wrote it was fast. BullMQ would not continue before that occurrence.
   */
  async #schedule(): Promise<void> {
    const known = new Map((await this.#queue.getJobSchedulers()).map((scheduler) => [scheduler.key, scheduler]));
    // BullMQ uses the clock of the process.
    const now = systemClock.now();
    for (const { name, everyMs } of this.#sweeps.values()) {
      const found = known.get(name);
      const isStuck = found !== undefined && Math.abs((found.next ?? 0) - now) > everyMs + TOLERANCE_MS;
      if (Number(found?.every) === everyMs && !isStuck) continue;
      // Otherwise BullMQ continues from the occurrence that it knows.
      if (isStuck) await this.#queue.removeJobScheduler(name);
      await this.#queue.upsertJobScheduler(name, { every: everyMs }, { name });
    }
  }
}
