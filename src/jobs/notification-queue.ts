import type { Queue, Worker } from 'bullmq';
import type { Service } from '../core/service.js';
import type { Deliverer } from '../notifications/deliverer.js';
import type { QueueBackend } from './queue-backend.js';
import type { Sweep } from './sweeper.js';

const NOTIFICATIONS = 'notifications';
/** Notifications asked for at once; what is left is due at the next sweep. */
const BATCH = 500;
/** Attempts side by side in one worker: so many may hang, each for its deadline, before the next has to wait. */
const CONCURRENCY = 8;
/** How long a stop waits for an answer before it interrupts the attempt, which is then made again elsewhere. */
const STOP_PATIENCE_MS = 2_000;

/** The queue on which notifications are delivered: beside runs and tokens, so that a receiver that hangs holds up neither. */
export class NotificationQueue implements Service {
  readonly name = 'notification worker';
  readonly #backend: QueueBackend;
  readonly #deliverer: Deliverer;
  readonly #queue: Queue;
  readonly #stopping = new AbortController();
  #worker: Worker | undefined;

  constructor(backend: QueueBackend, deliverer: Deliverer) {
    this.#backend = backend;
    this.#deliverer = deliverer;
    this.#queue = backend.queue(NOTIFICATIONS);
  }

  get sweeps(): Sweep[] {
    return [
      { name: 'due-notifications', everyMs: 1_000, run: () => this.#enqueueDue() },
      { name: 'old-notifications', everyMs: 3_600_000, run: () => this.#deliverer.tidy() },
    ];
  }

  async start(): Promise<void> {
    this.#worker = this.#backend.worker(
      NOTIFICATIONS,
      (job) => this.#deliverer.deliver(String(job.data.id), this.#stopping.signal),
      { concurrency: CONCURRENCY },
    );
  }

  async stop(): Promise<void> {
    const patience = setTimeout(() => this.#stopping.abort(), STOP_PATIENCE_MS);
    await this.#worker?.close();
    clearTimeout(patience);
    await this.#queue.close();
  }

  async #enqueueDue(): Promise<void> {
    const due = await this.#deliverer.due(BATCH);
    if (due.length === 0) return;
    await this.#queue.addBulk(
      due.map(({ id, attempts }) => ({ name: 'deliver', data: { id }, opts: { deduplication: { id: `${id}/${attempts}` } } })),
    );
  }
}
