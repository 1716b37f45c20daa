import type { Queue } from 'bullmq';
import type { Clock } from '../core/clock.js';
import { ENVIRONMENTS, type Environment } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import type { Service } from '../core/service.js';
import { singleFlight } from '../core/single-flight.js';
import { QUEUES, type QueueBackend, type QueueName, runQueueOf } from './queue-backend.js';

export interface QueueState {
  readonly queue: QueueName;
  /** null if the queue serves both environments. */
  readonly environment: Environment | null;
  readonly waiting: number;
  readonly active: number;
  /** Jobs that are not due yet: runs that wait to retry, and repeatable jobs. */
  readonly delayed: number;
  /** Jobs that failed in the last day. */
  readonly failed: number;
  /** How long the oldest waiting job has been due; null if none waits. */
  readonly oldestWaitingSeconds: number | null;
  /** Repeatable jobs, the next one first. */
  readonly repeatable: readonly { readonly name: string; readonly everySeconds: number; readonly nextAt: Date | null }[];
}

/** A look fails after this time. */
const LOOK_MS = 3_000;
/** Callers within this time share one look. */
const KEEP_MS = 1_000;

/** Reads the state of all queues, and changes nothing. */
export class QueueLook implements Pick<Service, 'name' | 'stop'> {
  readonly name = 'look at the queue';
  readonly #queues: ReadonlyMap<QueueName, Queue>;
  readonly #clock: Clock;
  readonly #look: () => Promise<QueueState[]>;

  constructor(backend: QueueBackend, clock: Clock) {
    this.#queues = new Map(QUEUES.map((name) => [name, backend.queue(name)]));
    this.#clock = clock;
    const all = () => Promise.all([...this.#queues].map(([name, queue]) => this.#stateOf(name, queue)));
    this.#look = singleFlight(() => within(LOOK_MS, all()), { clock, keepMs: KEEP_MS });
  }

  /** Throws `queue_unavailable`, within seconds. */
  look(): Promise<QueueState[]> {
    return this.#look();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }

  async #stateOf(name: QueueName, queue: Queue): Promise<QueueState> {
    const [counts, [oldest], schedulers] = await Promise.all([
      queue.getJobCounts('waiting', 'active', 'delayed', 'failed'),
      queue.getJobs(['waiting'], 0, 0, true),
      queue.getJobSchedulers(),
    ]);
    const { waiting = 0, active = 0, delayed = 0, failed = 0 } = counts;
    const dueAt = oldest && oldest.timestamp + (oldest.opts.delay ?? 0);
    const repeatable = schedulers
      .map(({ key, every, next }) => ({
        name: key,
        everySeconds: Number(every) / 1_000,
        nextAt: next === undefined ? null : new Date(next),
      }))
      .toSorted((one, other) => Number(one.nextAt) - Number(other.nextAt));
    return {
      queue: name,
      environment: ENVIRONMENTS.find((environment) => runQueueOf(environment) === name) ?? null,
      waiting,
      active,
      delayed,
      failed,
      oldestWaitingSeconds: dueAt === undefined ? null : Math.max(0, Math.round((this.#clock.now() - dueAt) / 1_000)),
      repeatable,
    };
  }
}

/** The result of `look` if it comes in time. A later result or failure is ignored. */
async function within<T>(limitMs: number, look: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unavailable('does not answer')), limitMs);
  });
  try {
    return await Promise.race([look, late]);
  } catch (error) {
    throw isMusterError(error) ? error : unavailable('cannot be read', error);
  } finally {
    clearTimeout(timer);
  }
}

function unavailable(what: string, cause?: unknown): MusterError {
  const advice =
    'make sure that Redis runs, or PostgreSQL if REDIS_URL is not set. Runs and their states are safe in the database';
  return new MusterError('queue_unavailable', `The queue ${what}: ${advice}.`, { cause });
}
