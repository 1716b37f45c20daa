import type pg from 'pg';
import { isMusterError } from '../../core/errors.js';
import { withDatabaseErrors } from '../connection/sql-state.js';

/** Rows that come to more than the least `work_mem`, so that PostgreSQL writes some 300 kB of them into a temporary file, which is gone afterwards. */
const ROWS = 20_000;

/**
 * Looks whether PostgreSQL answers, and whether it can write: a server with a full disk answers as long as it only reads. Nothing of the database is
 * changed, and no right is needed. Throws `database_full`, `database_unavailable`, and what else the server says; a `temp_file_limit` is no fault.
 */
export async function requireRoom(db: Pick<pg.Pool, 'query'>): Promise<void> {
  // Two statements in one message are one transaction, behind a pooler too.
  const look = db.query(`SET LOCAL work_mem = '64kB'; SELECT count(*) FROM generate_series(1, ${ROWS})`);
  await withDatabaseErrors(look).catch((error: unknown) => {
    if (!isMusterError(error, 'database_failing') || error.details['sql_state'] !== '53400') throw error;
  });
}
