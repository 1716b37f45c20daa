import type { Queue } from 'bullmq';
import { type CompanyKey, keyText } from '../core/company.js';
import { isMusterError } from '../core/errors.js';
import type { Service } from '../core/service.js';
import { type QueueBackend, QueueWorker } from './queue-backend.js';

const TOKENS = 'tokens';

/** Refreshes tokens ahead of their expiry; the manager of access tokens does. */
export interface TokenRefresher {
  /** Companies whose token is due, those due longest first. */
  due(limit: number): Promise<CompanyKey[]>;
  refresh(company: CompanyKey): Promise<unknown>;
}

/** Companies asked for at once; the others are due at the next sweep. */
const BATCH = 2_000;
/** More than one worker finishes between two sweeps. */
const ENOUGH = 1_000;
/** Refreshes side by side in one worker. Each is one short request to the authorization server. */
export const TOKEN_CONCURRENCY = 32;

/** The queue on which tokens are refreshed: the sweeper adds who is due, the worker refreshes. */
export class TokenQueue implements Service {
  readonly name = 'token worker';
  readonly #refresher: TokenRefresher;
  readonly #queue: Queue;
  readonly #worker: QueueWorker;

  constructor(backend: QueueBackend, refresher: TokenRefresher) {
    this.#refresher = refresher;
    this.#queue = backend.queue(TOKENS);
    const concurrency = TOKEN_CONCURRENCY;
    this.#worker = new QueueWorker(backend, TOKENS, (job) => this.#refresh(job.data as CompanyKey), { concurrency });
  }

  async enqueueDue(): Promise<void> {
    // Companies that wait are due still, and would all be added again, each time for nothing.
    if ((await this.#queue.getWaitingCount()) > ENOUGH) return;
    const due = await this.#refresher.due(BATCH);
    if (due.length === 0) return;
    await this.#queue.addBulk(
      due.map((company) => ({
        name: 'refresh',
        data: { ...company },
        opts: { deduplication: { id: keyText(company) } },
      })),
    );
  }

  async start(): Promise<void> {
    this.#worker.start();
  }

  async stop(): Promise<void> {
    await this.#worker.stop();
    await this.#queue.close();
  }

  /** What came of it stands in the token's row. An outage would leave a failed job a company and attempt behind, for a day. */
  async #refresh(company: CompanyKey): Promise<void> {
    await this.#refresher.refresh(company).catch((error: unknown) => {
      if (!isMusterError(error)) throw error;
    });
  }
}
