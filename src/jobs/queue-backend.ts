import type { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Processor, Queue, Worker, WorkerOptions } from 'bullmq';
import { ENVIRONMENTS, type Environment } from '../core/company.js';
import type { Logger } from '../observability/logger.js';

/** Each environment has its own queue, so that runs which wait for one service's budget take no slots from the other's runs. */
export const runQueueOf = <E extends Environment>(environment: E) => `runs-${environment}` as const;

export const QUEUES = [...ENVIRONMENTS.map(runQueueOf), 'tokens', 'notifications', 'exports', 'sweeps'] as const;
export type QueueName = (typeof QUEUES)[number];

/** The store of BullMQ's jobs. Both backends run the same code, which uses only features that both have. */
export interface QueueBackend {
  queue(name: QueueName): Queue;
  worker(name: QueueName, processor: Processor, options: { readonly concurrency: number }): Worker;
  /** Throws if the backend cannot be reached. */
  ping(): Promise<void>;
  /** Whether it answers within a second. */
  answers(): Promise<boolean>;
  /** Checks the backend at the start of a process: throws `queue_unavailable` within seconds, with the reason. */
  requireReachable(): Promise<void>;
  /** Closes the connections, after the queues and workers were closed. */
  close(): Promise<void>;
}

/**
 * Completed jobs are not kept, since muster.runs has the outcome of runs. Whenever a job completes, PostgreSQL looks at all kept ones to
 * check their age or number.
 */
const RETENTION = { removeOnComplete: true, removeOnFail: { age: 86_400 } };

/** BullMQ would keep the last 10,000 events of each queue, which Muster does not read. */
export const QUEUE_OPTIONS = { defaultJobOptions: RETENTION, streams: { events: { maxLen: 100 } } };

/**
 * A dead worker is noticed within seconds. Jobs are only wake-up calls and safe to repeat, so it costs little to declare a worker dead too
 * early, and no number of deaths may fail a job permanently.
 */
export const WORKER_OPTIONS = {
  lockDuration: 6_000,
  stalledInterval: 2_000,
  maxStalledCount: 5,
  maxStartedAttempts: 10,
  removeOnFail: RETENTION.removeOnFail,
} as const satisfies Omit<WorkerOptions, 'connection'>;

export interface QueueWorkerOptions {
  readonly concurrency: number;
  /** How long a stop waits for running jobs before it calls `interrupt`. */
  readonly patienceMs?: number;
  readonly interrupt?: () => void;
}

/** A worker of one queue. `stop` may be called twice, and before `start`: then the worker never starts. */
export class QueueWorker {
  readonly #make: () => Worker;
  readonly #answers: () => Promise<boolean>;
  readonly #options: QueueWorkerOptions;
  readonly #underWay = new Set<Promise<unknown>>();
  #worker: Worker | undefined;
  #stopped: Promise<void> | undefined;

  constructor(backend: QueueBackend, queue: QueueName, processor: Processor, options: QueueWorkerOptions) {
    const work: Processor = async (job, ...rest) => {
      // Redis has lost the data of this job, for which the next sweep adds another.
      if (job.name) await this.#track(processor(job, ...rest));
    };
    this.#make = () => backend.worker(queue, work, { concurrency: options.concurrency });
    this.#answers = () => backend.answers();
    this.#options = options;
  }

  start(): void {
    if (!this.#stopped) this.#worker = this.#make();
  }

  /** Starts no more jobs but the one that it may be waiting for, and resolves once the running ones have ended. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const { interrupt, patienceMs } = this.#options;
    const patience = interrupt && setTimeout(interrupt, patienceMs);
    await this.#worker?.pause(true); // it would start jobs while the queue is asked whether it answers
    if (await this.#answers()) await this.#worker?.close();
    else await this.#leave((patienceMs ?? 0) + LEAVE_MS);
    clearTimeout(patience);
  }

  /** Stops without the queue: BullMQ, and any job that calls the queue, would wait until it answers again. */
  async #leave(limitMs: number): Promise<void> {
    await this.#worker?.close(true);
    await Promise.race([Promise.allSettled(this.#underWay), sleep(limitMs, undefined, { ref: false })]);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const ended = work.finally(() => this.#underWay.delete(ended));
    this.#underWay.add(ended);
    return ended;
  }
}

const ASK_EVERY_MS = 1_000;
const ANSWER_MS = 5_000;
/** A stop waits for less time. */
export const ANSWER_TO_STOP_MS = 1_000;
const LEAVE_MS = 1_000;

/**
 * Turns the errors of connections into one outage. Every connection reports an error at every attempt, many times a second. This class
 * pings the queue instead: while it does not answer there is one outage, logged once at its beginning and once at its end.
 */
export class QueueOutage {
  readonly #ping: () => Promise<unknown>;
  readonly #server: string;
  readonly #logger: Logger;
  #isAsked = false;
  #lasts = false;
  #closed = false;

  constructor(server: string, ping: () => Promise<unknown>, logger: Logger) {
    this.#server = server;
    this.#ping = ping;
    this.#logger = logger;
  }

  answers(withinMs = ANSWER_MS): Promise<boolean> {
    const late = sleep(withinMs, false, { ref: false });
    const answer = this.#ping().then(
      () => true,
      () => false,
    );
    return Promise.race([answer, late]);
  }

  /** Listens for errors of a queue or worker: without a listener, the `error` event would end the process. */
  watch<T extends Queue | Worker>(source: T): T {
    (source as EventEmitter).on('error', (error: Error) => void this.report(error, { queue: source.name }));
    return source;
  }

  /** Handles an error of the queue: as part of an outage, or as a log line. An error during the ping adds nothing. */
  async report(error: Error, of: object = {}): Promise<void> {
    if (this.#closed || this.#lasts || this.#isAsked) return;
    this.#isAsked = true;
    const answered = await this.answers();
    this.#isAsked = false;
    if (answered) {
      this.#logger.warn({ err: error, ...of }, 'queue error');
      return;
    }
    if (this.#closed) return;
    this.#lasts = true;
    this.#logger.warn(
      { err: error },
      `the connection of the queue to ${this.#server} is lost; it is tried again until it is back`,
    );
    await this.#end();
  }

  close(): void {
    this.#closed = true;
  }

  async #end(): Promise<void> {
    while (!this.#closed) {
      await sleep(ASK_EVERY_MS, undefined, { ref: false });
      if (!(await this.answers())) continue;
      this.#lasts = false;
      this.#logger.info(`the connection of the queue to ${this.#server} is back`);
      return;
    }
  }
}
