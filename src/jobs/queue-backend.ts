import type { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Processor, Queue, Worker, WorkerOptions } from 'bullmq';
import { ENVIRONMENTS, type Environment } from '../core/company.js';
import type { Logger } from '../observability/logger.js';

/** One an environment, so that runs which wait for the budget of one service keep no slot from those of the other. */
export const runQueueOf = <E extends Environment>(environment: E) => `runs-${environment}` as const;

/** All queues that there are. */
export const QUEUES = [...ENVIRONMENTS.map(runQueueOf), 'tokens', 'notifications', 'exports', 'sweeps'] as const;
export type QueueName = (typeof QUEUES)[number];

/** Where BullMQ keeps its jobs. Both backends run the same code; only what both do alike is used. */
export interface QueueBackend {
  queue(name: QueueName): Queue;
  worker(name: QueueName, processor: Processor, options: { readonly concurrency: number }): Worker;
  /** Throws when the backend cannot be reached. */
  ping(): Promise<void>;
  /** Whether it answers within a second. */
  answers(): Promise<boolean>;
  /** The same before anything is built on it: throws `queue_unavailable` within seconds, and says why. */
  requireReachable(): Promise<void>;
  /** Closes the connections; the queues and workers were closed before. */
  close(): Promise<void>;
}

/**
 * What became of a run is in muster.runs. To keep completed jobs for a while would cost more with each one that is kept: PostgreSQL
 * looks at all of them whenever one completes, be it for their age or their number.
 */
const RETENTION = { removeOnComplete: true, removeOnFail: { age: 86_400 } };

/** Nobody reads BullMQ's events, of which it would keep the last 10,000 of each queue. */
export const QUEUE_OPTIONS = { defaultJobOptions: RETENTION, streams: { events: { maxLen: 100 } } };

/**
 * A worker that dies is noticed within seconds. Jobs are only wake-up calls and safe to repeat, so that being called
 * dead too early costs little, and no number of deaths may fail a job for good.
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
  /** How long a stop waits for the jobs under way before it calls `interrupt`. */
  readonly patienceMs?: number;
  readonly interrupt?: () => void;
}

/** A worker from its start to its stop. It may be stopped twice, and before its start: then it never starts. */
export class QueueWorker {
  readonly #make: () => Worker;
  readonly #answers: () => Promise<boolean>;
  readonly #options: QueueWorkerOptions;
  readonly #underWay = new Set<Promise<unknown>>();
  #worker: Worker | undefined;
  #stopped: Promise<void> | undefined;

  constructor(backend: QueueBackend, queue: QueueName, processor: Processor, options: QueueWorkerOptions) {
    this.#make = () => backend.worker(queue, (...job) => this.#track(processor(...job)), { concurrency: options.concurrency });
    this.#answers = () => backend.answers();
    this.#options = options;
  }

  start(): void {
    if (!this.#stopped) this.#worker = this.#make();
  }

  /** Resolves when the jobs under way have ended; no other is begun. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const { interrupt, patienceMs } = this.#options;
    const patience = interrupt && setTimeout(interrupt, patienceMs);
    if (await this.#answers()) await this.#worker?.close();
    else await this.#leave((patienceMs ?? 0) + LEAVE_MS);
    clearTimeout(patience);
  }

  /** BullMQ would take leave of a queue that does not answer for as long as it does not, and so would a job that asks the queue for something. */
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
/** A stop has less time, for an answer as for what is left to do without one. */
export const ANSWER_TO_STOP_MS = 1_000;
const LEAVE_MS = 1_000;

/**
 * Every connection of the queue reports its own error at every attempt, many times a second. The outage asks the queue itself:
 * while it does not answer there is one outage, logged once at its begin and once at its end.
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

  /** Whether the queue answers within so many milliseconds. */
  answers(withinMs = ANSWER_MS): Promise<boolean> {
    const late = sleep(withinMs, false, { ref: false });
    const answer = this.#ping().then(
      () => true,
      () => false,
    );
    return Promise.race([answer, late]);
  }

  /** Takes the errors of a queue or worker: without a listener, the `error` event would end the process. */
  watch<T extends Queue | Worker>(source: T): T {
    (source as EventEmitter).on('error', (error: Error) => void this.report(error, { queue: source.name }));
    return source;
  }

  /** Takes an error of the queue: part of an outage, or logged by itself. One that comes while the queue is asked adds nothing. */
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
