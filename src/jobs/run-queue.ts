import type { Queue } from 'bullmq';
import type { Logger } from '../observability/logger.js';
import type { RunDispatcher } from '../runs/runs.js';
import type { QueueBackend } from './queue-backend.js';

/** Name of the queue. */
export const RUNS = 'runs';

/** Adds the job that serves a run's next claim. One job an epoch: asking twice adds none. */
export class RunQueue implements RunDispatcher {
  readonly #queue: Queue;
  readonly #logger: Logger;

  constructor(backend: QueueBackend, logger: Logger) {
    this.#queue = backend.queue(RUNS);
    this.#logger = logger;
  }

  /** Never throws: a run without a job is found by the sweeper. */
  async dispatch(runs: readonly { readonly id: string; readonly epoch: bigint }[]): Promise<void> {
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
