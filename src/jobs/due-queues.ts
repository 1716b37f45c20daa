import type { Queue } from 'bullmq';
import { type CompanyKey, keyText } from '../core/company.js';
import { isMusterError } from '../core/errors.js';
import type { Service } from '../core/service.js';
import type { NightExportClaim } from '../db/tables/night-exports.js';
import type { DeliveryClaim } from '../db/tables/notifications.js';
import type { Deliverer } from '../notifications/deliverer.js';
import type { AccessTokenManager } from '../oauth/access-token-manager.js';
import type { NightExports } from '../warehouse/export/night-exports.js';
import { offerJobs } from './offer-jobs.js';
import { type QueueBackend, type QueueName, QueueWorker, type QueueWorkerOptions } from './queue-backend.js';

interface DueWork<T extends object> extends QueueWorkerOptions {
  readonly queue: QueueName;
  /** The most items of one sweep; the others are still due at the next. */
  readonly batch: number;
  /** Due items, longest due first. */
  due(limit: number): Promise<readonly T[]>;
  /** While a job with this id waits or runs, no second one is added. */
  idOf(item: T): string;
  work(item: T): Promise<unknown>;
}

/** More jobs than one worker finishes between two sweeps. */
const ENOUGH = 1_000;

/** A queue of work that is due by the database: the sweeper adds jobs, the worker does them. */
export class DueQueue<T extends object> implements Service {
  readonly name: string;
  readonly #work: DueWork<T>;
  readonly #queue: Queue;
  readonly #worker: QueueWorker;

  constructor(backend: QueueBackend, work: DueWork<T>) {
    this.name = `worker of ${work.queue}`;
    this.#work = work;
    this.#queue = backend.queue(work.queue);
    this.#worker = new QueueWorker(backend, work.queue, (job) => work.work(job.data as T), work);
  }

  async enqueueDue(): Promise<void> {
    // Waiting items are still due, so they would all be added again for nothing.
    if ((await this.#queue.getWaitingCount()) > ENOUGH) return;
    const due = await this.#work.due(this.#work.batch);
    if (due.length === 0) return;
    await offerJobs(
      this.#queue,
      due.map((item) => ({ name: this.#work.queue, data: item, key: this.#work.idOf(item) })),
    );
  }

  async start(): Promise<void> {
    this.#worker.start();
  }

  /** Begins no more jobs. The sweeper may go on adding some. */
  endJobs(): Promise<void> {
    return this.#worker.stop();
  }

  async stop(): Promise<void> {
    await this.endJobs();
    await this.#queue.close();
  }
}

/** Concurrent refreshes of one worker. Each is one short request to the authorization server. */
export const TOKEN_CONCURRENCY = 32;

/** The queue on which tokens are refreshed ahead of their expiry. */
export function tokenQueue(backend: QueueBackend, manager: Pick<AccessTokenManager, 'due' | 'refresh'>): DueQueue<CompanyKey> {
  return new DueQueue<CompanyKey>(backend, {
    queue: 'tokens',
    batch: 2_000,
    concurrency: TOKEN_CONCURRENCY,
    due: (limit) => manager.due(limit),
    idOf: keyText,
    // The token's row has the outcome of a refresh. Otherwise an outage would leave a failed job for each company and attempt, for a day.
    work: (company) =>
      manager.refresh(company).catch((error: unknown) => {
        if (!isMusterError(error)) throw error;
      }),
  });
}

/** The queue of notifications. It is separate, so that a hanging receiver delays neither runs nor tokens. */
export function notificationQueue(backend: QueueBackend, deliverer: Pick<Deliverer, 'due' | 'deliver'>): DueQueue<DeliveryClaim> {
  const stopping = new AbortController();
  return new DueQueue<DeliveryClaim>(backend, {
    queue: 'notifications',
    batch: 500,
    // This many attempts may hang, each until its deadline, before the next one has to wait.
    concurrency: 8,
    // A stop waits this long for a response before it interrupts the attempt, which another worker then repeats.
    patienceMs: 2_000,
    interrupt: () => stopping.abort(),
    due: (limit) => deliverer.due(limit),
    idOf: ({ id, attempts }) => `${id}/${attempts}`,
    work: ({ id }) => deliverer.deliver(id, stopping.signal),
  });
}

/** The queue of nightly exports: one resource at a time in a worker, since each takes much memory. */
export function exportQueue(backend: QueueBackend, exports: Pick<NightExports, 'due' | 'export'>): DueQueue<NightExportClaim> {
  const stopping = new AbortController();
  return new DueQueue<NightExportClaim>(backend, {
    queue: 'exports',
    batch: 100,
    concurrency: 1,
    // The next worker cannot continue a half-written export, so a stop does not wait for long.
    patienceMs: 2_000,
    interrupt: () => stopping.abort(),
    due: (limit) => exports.due(limit),
    idOf: ({ night, environment, resource, attempts }) => `${night}/${environment}/${resource}/${attempts}`,
    work: (claim) => exports.export(claim, stopping.signal),
  });
}
