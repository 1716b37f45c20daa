import type pg from 'pg';

/**
 * Runs `work` on one connection in a transaction that is always rolled back. `begin` begins it and sets what it needs, so that it is the
 * same behind a pooler. Rethrows what `work` throws, and the driver's error where the connection fails.
 */
export async function inPassingTransaction<T>(
  pool: Pick<pg.Pool, 'connect'>,
  begin: string,
  work: (client: pg.ClientBase) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query(begin);
    return await work(client);
  } finally {
    // A connection that cannot end its transaction is closed, which ends it.
    await client.query('ROLLBACK').then(
      () => client.release(),
      (error: Error) => client.release(error),
    );
  }
}
