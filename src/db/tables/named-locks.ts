import type pg from 'pg';
import { inPassingTransaction } from './passing-transaction.js';

/** A process that was frozen gives its locks back after this long. Longer than any work takes: a request that gets no answer, and a minute to store one. */
const BEGIN = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5min'`;

/**
 * Keeps work to one process at a time where there is no row yet that a lease could stand in. Texts name the work. The locks are
 * advisory locks of a transaction that does nothing else: whatever becomes of the connection, and whoever pools it, they end with it. The
 * connection stays taken until the work is done. Work needs another one meanwhile, so at most half of the pool is given away; further work waits.
 */
export class AdvisoryLocks {
  readonly #pool: pg.Pool;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(pool: pg.Pool) {
    this.#pool = pool;
    this.#free = Math.max(1, Math.floor(pool.options.max / 2));
  }

  /** Undefined, and nothing done, while somebody else has locked one of the names. */
  async run<T>(names: readonly string[], work: () => Promise<T>): Promise<{ result: T } | undefined> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await this.#locked(names, work);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }

  #locked<T>(names: readonly string[], work: () => Promise<T>): Promise<{ result: T } | undefined> {
    const query = 'SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS ours';
    return inPassingTransaction(this.#pool, BEGIN, async (client) => {
      for (const name of names) {
        const { rows } = await client.query<{ ours: boolean }>(query, [name]);
        if (!rows[0]?.ours) return undefined;
      }
      return { result: await work() };
    });
  }
}
