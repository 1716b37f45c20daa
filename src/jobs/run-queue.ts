import type { Queue } from 'bullmq';
import type { Clock } from '../core/clock.js';
import { ENVIRONMENTS, type Environment } from '../core/company.js';
import { PeriodicTask } from '../core/periodic-task.js';
import type { Service } from '../core/service.js';
import type { ClaimableRun } from '../db/tables/runs.js';
import type { Logger } from '../observability/logger.js';
import type { RunExecutor } from '../runs/run-executor.js';
import type { RunLeases } from '../runs/run-leases.js';
import type { RunDispatcher } from '../runs/runs.js';
import { LONGEST_DELAY_MS, offerJobs } from './offer-jobs.js';
import { type QueueBackend, QueueWorker, runQueueOf } from './queue-backend.js';

/** Adds the job for a run's next claim. There is one job for each epoch, so a second call adds none. */
export class RunQueue implements RunDispatcher {
  readonly #queues: ReadonlyMap<Environment, Queue>;
  readonly #logger: Logger;

  constructor(backend: QueueBackend, logger: Logger) {
    this.#queues = new Map(ENVIRONMENTS.map((environment) => [environment, backend.queue(runQueueOf(environment))]));
    this.#logger = logger;
  }

  /** Never throws, since the sweeper finds runs without a job. `delayMs`: time before the job may start. */
  async dispatch(runs: readonly ClaimableRun[], delayMs = 0): Promise<void> {
    try {
      for (const [environment, queue] of this.#queues) {
        const jobs = runs
          .filter((run) => run.environment === environment)
          .map(({ id, epoch }) => ({ name: 'run', data: { runId: id }, key: `${id}/${epoch}`, delayMs }));
        if (jobs.length > 0) await offerJobs(queue, jobs);
      }
    } catch (error) {
      this.#logger.warn(
        { err: error, run_ids: runs.map(({ id }) => id) },
        'runs could not be queued; the sweeper will queue them',
      );
    }
  }

  /** Waiting jobs of one environment, or of all. */
  async waiting(environment?: Environment): Promise<number> {
    const queues = environment ? [this.#queues.get(environment)!] : [...this.#queues.values()];
    const counts = await Promise.all(queues.map((queue) => queue.getWaitingCount()));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }
}

/** How long a run keeps its slot while others wait. */
const SLICE_MS = 5_000;
/**
 * How long a run then steps back. Without this, a giant company's run would soon continue, since the queue is short: the runs of a night are
 * created while workers work on them. A giant loads the database like a dozen small companies, so it gets a fifth of the time.
 */
const STEP_BACK_MS = LONGEST_DELAY_MS;
/** How often a worker checks whether other runs wait. */
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
  /** Concurrent runs of each environment. */
  readonly concurrency: number;
}

/** Works on runs in slices: a run that is not done after its slice returns to the queue with a delay, so that no giant starves the rest. */
export class RunWorker implements Service {
  readonly name = 'run worker';
  readonly #deps: RunWorkerDependencies;
  readonly #workers: readonly QueueWorker[];
  readonly #poll = new PeriodicTask(POLL_MS, () => this.#look());
  /** Environments whose runs wait for a slot. */
  #othersWait: ReadonlySet<Environment> = new Set();
  #stopping = false;

  constructor(deps: RunWorkerDependencies) {
    const { backend, leases, concurrency } = deps;
    this.#deps = deps;
    this.#workers = ENVIRONMENTS.map(
      (environment) =>
        new QueueWorker(backend, runQueueOf(environment), (job) => this.#work(String(job.data.runId)), {
          concurrency,
          patienceMs: STOP_PATIENCE_MS,
          interrupt: () => leases.interruptAll(),
        }),
    );
  }

  async start(): Promise<void> {
    this.#deps.leases.heartbeat.start();
    for (const worker of this.#workers) worker.start();
    this.#poll.start();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    void this.#poll.stop(); // it may be waiting for a queue that does not answer
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    await this.#deps.leases.heartbeat.stop();
  }

  async #work(runId: string): Promise<void> {
    const { clock, executor, leases, queue } = this.#deps;
    await leases.work(runId, async (leased) => {
      const until = clock.monotonic() + SLICE_MS;
      const { environment } = leased.run.company;
      const shouldYield = () => this.#stopping || (this.#othersWait.has(environment) && clock.monotonic() > until);
      const end = await executor.execute(leased, shouldYield);
      if (end === 'continue') await queue.dispatch([{ ...leased.run, environment }], this.#stopping ? 0 : STEP_BACK_MS);
    });
  }

  async #look(): Promise<void> {
    try {
      const counts = await Promise.all(ENVIRONMENTS.map((environment) => this.#deps.queue.waiting(environment)));
      this.#othersWait = new Set(ENVIRONMENTS.filter((_, index) => counts[index]! > 0));
    } catch (error) {
      this.#deps.logger.debug({ err: error }, 'the length of the queue could not be read');
    }
  }
}
