import type { Queue } from 'bullmq';
import type { Clock } from '../core/clock.js';
import { Repetition } from '../core/repetition.js';
import type { Service } from '../core/service.js';
import type { RunClaim } from '../db/tables/runs.js';
import type { Logger } from '../observability/logger.js';
import type { RunExecutor } from '../runs/run-executor.js';
import type { RunLeases } from '../runs/run-leases.js';
import type { RunDispatcher } from '../runs/runs.js';
import { type QueueBackend, QueueWorker } from './queue-backend.js';

const RUNS = 'runs';

/** Adds the job that serves a run's next claim. One job an epoch: asking twice adds none. */
export class RunQueue implements RunDispatcher {
  readonly #queue: Queue;
  readonly #logger: Logger;

  constructor(backend: QueueBackend, logger: Logger) {
    this.#queue = backend.queue(RUNS);
    this.#logger = logger;
  }

  /** Never throws: a run without a job is found by the sweeper. */
  async dispatch(runs: readonly RunClaim[]): Promise<void> {
    if (runs.length === 0) return;
    try {
      await this.#queue.addBulk(
        runs.map(({ id, epoch }) => ({ name: 'run', data: { runId: id }, opts: { deduplication: { id: `${id}/${epoch}` } } })),
      );
    } catch (error) {
      this.#logger.warn({ err: error, run_ids: runs.map(({ id }) => id) }, 'runs could not be queued; the sweeper will');
    }
  }

  waiting(): Promise<number> {
    return this.#queue.getWaitingCount();
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}

/** How long a run keeps its slot while others wait. */
const SLICE_MS = 5_000;
/** How often a worker looks whether others wait. */
const POLL_MS = 1_000;
/** How long a stop waits for the pages in flight before it interrupts their requests. */
const STOP_PATIENCE_MS = 5_000;

export interface RunWorkerDependencies {
  readonly backend: QueueBackend;
  readonly queue: RunQueue;
  readonly executor: Pick<RunExecutor, 'execute'>;
  readonly leases: RunLeases;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly concurrency: number;
}

/** Works on runs: a slice of one, then its continuation goes to the tail of the queue, so that no giant starves the rest. */
export class RunWorker implements Service {
  readonly name = 'run worker';
  readonly #deps: RunWorkerDependencies;
  readonly #worker: QueueWorker;
  readonly #poll = new Repetition(POLL_MS, () => this.#look());
  #othersWait = false;
  #stopping = false;

  constructor(deps: RunWorkerDependencies) {
    const { backend, leases, concurrency } = deps;
    this.#deps = deps;
    this.#worker = new QueueWorker(backend, RUNS, (job) => this.#work(String(job.data.runId)), {
      concurrency,
      patienceMs: STOP_PATIENCE_MS,
      interrupt: () => leases.interruptAll(),
    });
  }

  async start(): Promise<void> {
    this.#deps.leases.heartbeat.start();
    this.#worker.start();
    this.#poll.start();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    void this.#poll.stop(); // may be waiting for a queue that is not there
    await this.#worker.stop();
    await this.#deps.leases.heartbeat.stop();
  }

  async #work(runId: string): Promise<void> {
    const { clock, executor, leases, queue } = this.#deps;
    await leases.work(runId, async (leased) => {
      const until = clock.monotonic() + SLICE_MS;
      const shouldYield = () => this.#stopping || (this.#othersWait && clock.monotonic() > until);
      const end = await executor.execute(leased, shouldYield);
      if (end === 'continue') await queue.dispatch([leased.run]);
    });
  }

  async #look(): Promise<void> {
    try {
      this.#othersWait = (await this.#deps.queue.waiting()) > 0;
    } catch (error) {
      this.#deps.logger.debug({ err: error }, 'the queue could not be asked for its length');
    }
  }
}
