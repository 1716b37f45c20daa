import type pg from 'pg';
import { TRANSACTION_SETTINGS } from './session.js';

/**
 * Executes a step behind a pooler, where no session keeps its settings: in a transaction that brings them along. Without them it would wait for a
 * lock without end, and its worker would renew the claim meanwhile. It takes two round trips more.
 */
export async function runPooledStep<Row extends object>(pool: pg.Pool, statement: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
  const client = await pool.connect();
  try {
    await client.query(`BEGIN; ${TRANSACTION_SETTINGS}`);
    const result = await client.query<Row>(statement);
    await client.query('COMMIT');
    client.release();
    return result;
  } catch (error) {
    // A connection that cannot end its transaction is closed, which ends it.
    await client.query('ROLLBACK').then(
      () => client.release(),
      (failure: Error) => client.release(failure),
    );
    throw error;
  }
}
