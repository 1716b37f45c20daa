import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { PeriodicTask } from '../core/periodic-task.js';
import type { Service } from '../core/service.js';
import type { Database } from '../db/connection/database.js';
import { recordWorker, removeWorker } from '../db/tables/workers.js';
import type { Logger } from '../observability/logger.js';

const BEAT_MS = 5_000;
/** Beats of a minute. */
const BEATS = 12;
const TICK_MS = 10;
const NANOSECONDS = 1e9;

/** Records in the database that this process works on the queue. Only the count of workers and the issue `no_worker` depend on it. */
export class WorkerPresence implements Service {
  readonly name = 'worker presence';
  readonly #db: Database;
  readonly #worker: string;
  readonly #logger: Logger;
  readonly #beats = new PeriodicTask(BEAT_MS, () => this.#beat());
  readonly #turns = monitorEventLoopDelay({ resolution: TICK_MS });
  /** The longest delay of the event loop before each of the last beats, in seconds. */
  #delays: number[] = [];
  #starting: Promise<void> | undefined;
  #isStopped = false;

  /** `worker` names this process in the database, unlike any other. */
  constructor(db: Database, worker: string, logger: Logger) {
    this.#db = db;
    this.#worker = worker;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    if (this.#isStopped) return;
    this.#turns.enable();
    this.#starting = this.#beat();
    await this.#starting;
    this.#beats.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#turns.disable();
    await this.#starting;
    await this.#beats.stop();
    if (!this.#starting) return;
    await removeWorker(this.#db, { name: this.#worker }).catch((error: unknown) =>
      this.#logger.debug({ err: error }, 'the worker could not be taken off the list; it lapses by itself'),
    );
  }

  async #beat(): Promise<void> {
    // The delay of this very beat is recorded by the next tick.
    await sleep(2 * TICK_MS);
    this.#delays = [...this.#delays, this.#turns.max / NANOSECONDS].slice(-BEATS);
    this.#turns.reset();
    try {
      await recordWorker(this.#db, { name: this.#worker, eventLoopDelay: Math.max(...this.#delays) });
    } catch (error) {
      this.#logger.debug({ err: error }, 'the worker could not record that it lives; trying again');
    }
  }
}
