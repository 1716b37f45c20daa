import type pg from 'pg';

/**
 * Keeps work to one process at a time where there is no row yet that a lease could stand in. Texts name the work. The locks are
 * advisory locks of a session, on a connection of the pool that stays taken until the work is done. Work needs another connection
 * meanwhile, so at most half of the pool is given away; further work waits.
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

  async #locked<T>(names: readonly string[], work: () => Promise<T>): Promise<{ result: T } | undefined> {
    const client = await this.#pool.connect();
    const query = 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS ours';
    try {
      for (const name of names) {
        const { rows } = await client.query<{ ours: boolean }>(query, [name]);
        if (!rows[0]?.ours) return undefined;
      }
      return { result: await work() };
    } finally {
      // A connection that cannot give its locks back is closed, which gives them back.
      await client.query('SELECT pg_advisory_unlock_all()').then(
        () => client.release(),
        (error: Error) => client.release(error),
      );
    }
  }
}
