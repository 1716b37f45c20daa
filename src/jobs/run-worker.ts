import type { Worker } from 'bullmq';
import type { Clock } from '../core/clock.js';
import { Repetition } from '../core/repetition.js';
import type { Service } from '../core/service.js';
import type { Logger } from '../observability/logger.js';
import type { RunExecutor } from '../runs/run-executor.js';
import type { RunHolder } from '../runs/run-leases.js';
import type { QueueBackend } from './queue-backend.js';
import { RUNS, type RunQueue } from './run-queue.js';

/** How long a run keeps its slot while others wait. */
const SLICE_MS = 5_000;
/** How often a worker looks whether others wait. */
const POLL_MS = 1_000;
/** How long a stop waits for the pages in flight before it interrupts their requests. */
const STOP_PATIENCE_MS = 5_000;

/** Works on runs: a slice of one, then its continuation goes to the tail of the queue, so that no giant starves the rest. */
export class RunWorker implements Service {
  readonly name = 'run worker';
  readonly #backend: QueueBackend;
  readonly #queue: RunQueue;
  readonly #executor: RunExecutor;
  readonly #holder: RunHolder;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #concurrency: number;
  #worker: Worker | undefined;
  readonly #poll = new Repetition(POLL_MS, () => this.#look());
  #othersWait = false;
  #stopping = false;

  constructor(deps: {
    backend: QueueBackend;
    queue: RunQueue;
    executor: RunExecutor;
    holder: RunHolder;
    clock: Clock;
    logger: Logger;
    concurrency: number;
  }) {
    this.#backend = deps.backend;
    this.#queue = deps.queue;
    this.#executor = deps.executor;
    this.#holder = deps.holder;
    this.#clock = deps.clock;
    this.#logger = deps.logger;
    this.#concurrency = deps.concurrency;
  }

  async start(): Promise<void> {
    await this.#holder.start();
    this.#worker = this.#backend.worker(RUNS, (job) => this.#work(String(job.data.runId)), { concurrency: this.#concurrency });
    this.#poll.start();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    void this.#poll.stop(); // may be waiting for a queue that is not there
    const patience = setTimeout(() => this.#holder.interruptAll(), STOP_PATIENCE_MS);
    await this.#worker?.close();
    clearTimeout(patience);
    await this.#holder.stop();
  }

  async #work(runId: string): Promise<void> {
    await this.#holder.hold(runId, async (held) => {
      const until = this.#clock.monotonic() + SLICE_MS;
      const shouldYield = () => this.#stopping || (this.#othersWait && this.#clock.monotonic() > until);
      const end = await this.#executor.execute(held, shouldYield);
      if (end === 'continue') await this.#queue.dispatch([held.run]);
    });
  }

  async #look(): Promise<void> {
    try {
      this.#othersWait = (await this.#queue.waiting()) > 0;
    } catch (error) {
      this.#logger.debug({ err: error }, 'the queue could not be asked for its length');
    }
  }
}
