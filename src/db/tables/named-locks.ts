import type pg from 'pg';
import { inPassingTransaction } from '../connection/passing-transaction.js';
import { sqlState } from '../connection/sql-state.js';
import { addName } from './locks.js';

/**
 * A frozen process gives its locks back after the first: longer than any work takes, which is a request without an answer and a minute to store
 * one. After the second, another process has the lock.
 */
const BEGIN = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5min'; SET LOCAL lock_timeout = '200ms'`;
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Limits work to one process at a time where no row exists yet that could hold a lease. Texts name the work. A lock is a row of
 * muster.locks that is never committed: a process that adds it again waits for the transaction, which does nothing else. However the
 * connection ends, pooled or not, the lock ends with it. The connection stays taken until the work is done. The work needs another one
 * at the same time, so at most half of the pool is given away; further work waits.
 */
export class NamedLocks {
  readonly #pool: pg.Pool;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(pool: pg.Pool) {
    this.#pool = pool;
    this.#free = Math.max(1, Math.floor(pool.options.max / 2));
  }

  /** Undefined, and nothing done, while another caller has locked one of the names. */
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
    return inPassingTransaction(this.#pool, BEGIN, async (client) =>
      (await haveBeenLocked(client, names)) ? { result: await work() } : undefined,
    );
  }
}

async function haveBeenLocked(client: pg.ClientBase, names: readonly string[]): Promise<boolean> {
  try {
    for (const name of names) await addName(client, name);
    return true;
  } catch (error) {
    if (sqlState(error) === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
}
