import type { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Processor, Queue, Worker, WorkerOptions } from 'bullmq';
import type { Logger } from '../observability/logger.js';

/** Where BullMQ keeps its jobs. Both backends run the same code; only what both do alike is used. */
export interface QueueBackend {
  queue(name: string): Queue;
  worker(name: string, processor: Processor, options: { readonly concurrency: number }): Worker;
  /** Throws when the backend cannot be reached. */
  ping(): Promise<void>;
  /** The same before anything is built on it: throws `queue_unavailable` within seconds, and says why. */
  requireReachable(): Promise<void>;
  /** Closes the connections; the queues and workers were closed before. */
  close(): Promise<void>;
}

/**
 * What became of a run is in muster.runs. To keep completed jobs for a while would cost more with each one that is kept: PostgreSQL
 * looks at all of them whenever one completes, be it for their age or their number.
 */
export const RETENTION = { removeOnComplete: true, removeOnFail: { age: 86_400 } };

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
  readonly #options: QueueWorkerOptions;
  #worker: Worker | undefined;
  #stopped: Promise<void> | undefined;

  constructor(backend: QueueBackend, queue: string, processor: Processor, options: QueueWorkerOptions) {
    this.#make = () => backend.worker(queue, processor, { concurrency: options.concurrency });
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
    await this.#worker?.close();
    clearTimeout(patience);
  }
}

const ASK_EVERY_MS = 1_000;
const ANSWER_MS = 5_000;

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

  /** Takes the errors of a queue or worker: without a listener, the `error` event would end the process. */
  watch<T extends Queue | Worker>(source: T): T {
    (source as EventEmitter).on('error', (error: Error) => void this.report(error, { queue: source.name }));
    return source;
  }

  /** Takes an error of the queue: part of an outage, or logged by itself. One that comes while the queue is asked adds nothing. */
  async report(error: Error, of: object = {}): Promise<void> {
    if (this.#closed || this.#lasts || this.#isAsked) return;
    this.#isAsked = true;
    const answered = await this.#answers();
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
      if (!(await this.#answers())) continue;
      this.#lasts = false;
      this.#logger.info(`the connection of the queue to ${this.#server} is back`);
      return;
    }
  }

  #answers(): Promise<boolean> {
    const late = sleep(ANSWER_MS, false, { ref: false });
    const answer = this.#ping().then(
      () => true,
      () => false,
    );
    return Promise.race([answer, late]);
  }
}
