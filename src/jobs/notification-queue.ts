import type { Queue } from 'bullmq';
import type { Service } from '../core/service.js';
import type { Deliverer } from '../notifications/deliverer.js';
import { type QueueBackend, QueueWorker } from './queue-backend.js';

const NOTIFICATIONS = 'notifications';
/** Notifications asked for at once; the others are due at the next sweep. */
const BATCH = 500;
/** Attempts side by side in one worker: so many may hang, each for its deadline, before the next has to wait. */
const CONCURRENCY = 8;
/** How long a stop waits for an answer before it interrupts the attempt, which is then made again elsewhere. */
const STOP_PATIENCE_MS = 2_000;

/** The queue on which notifications are delivered: beside runs and tokens, so that a receiver that hangs holds up neither. */
export class NotificationQueue implements Service {
  readonly name = 'notification worker';
  readonly #deliverer: Pick<Deliverer, 'due' | 'deliver'>;
  readonly #queue: Queue;
  readonly #worker: QueueWorker;

  constructor(backend: QueueBackend, deliverer: Pick<Deliverer, 'due' | 'deliver'>) {
    const stopping = new AbortController();
    this.#deliverer = deliverer;
    this.#queue = backend.queue(NOTIFICATIONS);
    this.#worker = new QueueWorker(backend, NOTIFICATIONS, (job) => deliverer.deliver(String(job.data.id), stopping.signal), {
      concurrency: CONCURRENCY,
      patienceMs: STOP_PATIENCE_MS,
      interrupt: () => stopping.abort(),
    });
  }

  async start(): Promise<void> {
    this.#worker.start();
  }

  async stop(): Promise<void> {
    await this.#worker.stop();
    await this.#queue.close();
  }

  async enqueueDue(): Promise<void> {
    const due = await this.#deliverer.due(BATCH);
    if (due.length === 0) return;
    await this.#queue.addBulk(
      due.map(({ id, attempts }) => ({ name: 'deliver', data: { id }, opts: { deduplication: { id: `${id}/${attempts}` } } })),
    );
  }
}
