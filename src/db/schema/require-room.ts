import type pg from 'pg';
import { isMusterError } from '../../core/errors.js';
import { withDatabaseErrors } from '../connection/sql-state.js';

/** Rows larger than the smallest `work_mem`, so that PostgreSQL writes some 300 kB of them into a temporary file, which it deletes afterwards. */
const ROWS = 20_000;

/**
 * Checks that PostgreSQL answers and can write: a server with a full disk answers reads. It changes nothing in the database and
 * needs no right. Throws `database_full`, `database_unavailable`, and other errors of the server; a `temp_file_limit` is not a fault.
 */
export async function requireRoom(db: Pick<pg.Pool, 'query'>): Promise<void> {
  // Two statements in one message are one transaction, also through a pooler.
  const look = db.query(`SET LOCAL work_mem = '64kB'; SELECT count(*) FROM generate_series(1, ${ROWS})`);
  await withDatabaseErrors(look).catch((error: unknown) => {
    if (!isMusterError(error, 'database_failing') || error.details['sql_state'] !== '53400') throw error;
  });
}
