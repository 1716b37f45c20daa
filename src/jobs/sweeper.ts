import type { Queue, Worker } from 'bullmq';
import { Repetition } from '../core/repetition.js';
import type { Service } from '../core/service.js';
import type { Logger } from '../observability/logger.js';
import type { QueueBackend } from './queue-backend.js';

const SWEEPS = 'sweeps';

/** Looks in the database for what is due and puts it before the workers. */
export interface Sweep {
  readonly name: string;
  readonly everyMs: number;
  run(): Promise<void>;
}

/** How often each worker makes sure that the schedules exist: the queue may have been flushed. */
const GUARD_MS = 5_000;

/**
 * Runs the sweeps as repeatable jobs: one schedule a sweep, whatever the number of companies and workers, and each
 * occurrence runs in one worker only. What is due is in the database, so a lost occurrence costs one interval.
 */
export class Sweeper implements Service {
  readonly name = 'sweeper';
  readonly #backend: QueueBackend;
  readonly #sweeps: ReadonlyMap<string, Sweep>;
  readonly #logger: Logger;
  readonly #queue: Queue;
  #worker: Worker | undefined;
  readonly #guard = new Repetition(GUARD_MS, () => this.#check());

  constructor(backend: QueueBackend, sweeps: readonly Sweep[], logger: Logger) {
    this.#backend = backend;
    this.#sweeps = new Map(sweeps.map((sweep) => [sweep.name, sweep]));
    this.#logger = logger;
    this.#queue = backend.queue(SWEEPS);
  }

  async start(): Promise<void> {
    this.#worker = this.#backend.worker(SWEEPS, (job) => this.#sweep(job.name), { concurrency: this.#sweeps.size });
    await this.#schedule();
    this.#guard.start();
  }

  async stop(): Promise<void> {
    void this.#guard.stop(); // may be waiting for a queue that is not there
    await this.#worker?.close();
    await this.#queue.close();
  }

  async #check(): Promise<void> {
    try {
      await this.#schedule();
    } catch (error) {
      this.#logger.warn({ err: error }, 'schedules could not be checked');
    }
  }

  /** Only what is missing or differs is put: putting a schedule again while its job waits loses that occurrence. */
  async #schedule(): Promise<void> {
    const known = new Map((await this.#queue.getJobSchedulers()).map((scheduler) => [scheduler.key, Number(scheduler.every)]));
    for (const { name, everyMs } of this.#sweeps.values()) {
      if (known.get(name) !== everyMs) await this.#queue.upsertJobScheduler(name, { every: everyMs }, { name });
    }
  }

  async #sweep(name: string): Promise<void> {
    await this.#sweeps.get(name)?.run();
  }
}
