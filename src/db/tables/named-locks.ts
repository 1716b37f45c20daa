import type pg from 'pg';
import { inPassingTransaction } from '../connection/passing-transaction.js';
import { sqlState } from '../connection/sql-state.js';
import { addName } from './locks.js';

/**
 * A process that was frozen gives its locks back after the first: longer than any work takes, a request that gets no answer and a minute to store
 * one. After the second, somebody else has the lock.
 */
const BEGIN = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5min'; SET LOCAL lock_timeout = '200ms'`;
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Keeps work to one process at a time where there is no row yet that a lease could stand in. Texts name the work. A lock is a row of
 * muster.locks that is never committed: whoever would add it again waits for the transaction, which does nothing else. Whatever becomes of the
 * connection, and whoever pools it, the lock ends with it. The connection stays taken until the work is done. Work needs another one
 * meanwhile, so at most half of the pool is given away; further work waits.
 */
export class NamedLocks {
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
