import { setMaxListeners } from 'node:events';
import { PeriodicTask } from '../core/periodic-task.js';
import type { Database } from '../db/connection/database.js';
import { type ClaimedRun, claimRun, renewClaims } from '../db/tables/runs.js';
import type { Logger } from '../observability/logger.js';

export type Interruption = 'cancelled' | 'paused' | 'lost' | 'stopping';

/** A claimed run while this process works on it. */
export class LeasedRun {
  readonly #abort = new AbortController();
  interruption: Interruption | undefined;
  /** The quiet hours of the run's company, which a person may change while it runs. */
  quietHours: string | null;

  constructor(readonly run: ClaimedRun) {
    this.quietHours = run.quietHours;
    setMaxListeners(0, this.signal); // each of its requests listens
  }

  /** Aborts when the work must end at once. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  interrupt(why: Interruption): void {
    this.interruption ??= why;
    this.#abort.abort(new Error(`run ${why}`));
  }
}

/** A third of the time after which a claim lapses: two beats may be late before another worker takes the run. */
const HEARTBEAT_MS = 1_500;

/**
 * The runs that this process works on. PostgreSQL decides which worker has a run, by its own clock; the queue only says when to try. A lease
 * is a claim in the database that this process renews while it works. It is interrupted if its run is cancelled, paused or taken over.
 */
export class RunLeases {
  readonly #db: Database;
  readonly #worker: string;
  readonly #logger: Logger;
  readonly #leases = new Map<string, LeasedRun>();
  #isStopping = false;
  readonly heartbeat = new PeriodicTask(HEARTBEAT_MS, () => this.#beat());

  /** `worker` names this process in the database, unlike any other. */
  constructor(db: Database, worker: string, logger: Logger) {
    this.#db = db;
    this.#worker = worker;
    this.#logger = logger;
  }

  /** Claims the run and works on it. Undefined if the run cannot be claimed. */
  async work<T>(id: string, work: (leased: LeasedRun) => Promise<T>): Promise<T | undefined> {
    const run = await claimRun(this.#db, { id, worker: this.#worker });
    if (!run) return undefined;
    // If this process was frozen for long, its own earlier claim of the run has lapsed.
    this.#leases.get(id)?.interrupt('lost');
    const lease = new LeasedRun(run);
    this.#leases.set(id, lease);
    if (this.#isStopping) lease.interrupt('stopping');
    try {
      return await work(lease);
    } finally {
      if (this.#leases.get(id) === lease) this.#leases.delete(id);
    }
  }

  /** Ends all work at once, also on runs whose claim is under way: committed pages stay, and the runs are released. */
  interruptAll(): void {
    this.#isStopping = true;
    for (const lease of this.#leases.values()) lease.interrupt('stopping');
  }

  async #beat(): Promise<void> {
    if (this.#leases.size === 0) return;
    const leases = [...this.#leases.values()];
    try {
      const ids = leases.map(({ run }) => run.id);
      const claims = await renewClaims(this.#db, { ids, worker: this.#worker });
      const living = new Map(claims.map((claim) => [claim.id, claim]));
      for (const lease of leases) {
        const claim = living.get(lease.run.id);
        if (claim) lease.quietHours = claim.quietHours;
        if (claim?.epoch !== lease.run.epoch) lease.interrupt('lost');
        else if (claim.cancelRequested) lease.interrupt('cancelled');
        else if (claim.paused) lease.interrupt('paused');
      }
    } catch (error) {
      this.#logger.warn({ err: error }, 'heartbeat failed; trying again');
    }
  }
}
