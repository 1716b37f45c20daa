import type pg from 'pg';
import { MusterError } from '../../core/errors.js';
import { withDatabaseErrors } from '../../db/connection/sql-state.js';

/**
 * Rows come in the order of an index where there is one: a sort would write every row to the disk first. A COPY may take hours, and while a destination is slow the server waits for it, during
 * the COPY and after its last row, so no time limit applies. SET LOCAL, since any other setting would stay in the connection of a pooler.
 */
const BEGIN = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
  SET LOCAL jit = off; SET LOCAL enable_sort = off`;

/**
 * Runs `work` in one snapshot that can write nothing. Where it fails or is called off, the connection is closed, which ends the
 * transaction in any case. Connections that break are `database_unavailable`.
 */
export async function inSnapshot<T>(
  pool: Pick<pg.Pool, 'connect'>,
  work: (client: pg.ClientBase) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const client = await withDatabaseErrors(pool.connect());
  // Ends the statement under way, too. The pool's type hides that clients have `end`.
  const end = () => void (client as unknown as pg.Client).end().catch(() => {});
  signal?.addEventListener('abort', end, { once: true });
  let isDone = false;
  try {
    signal?.throwIfAborted();
    const result = await withDatabaseErrors(
      (async () => {
        await client.query(BEGIN);
        const outcome = await work(client);
        await client.query('COMMIT');
        return outcome;
      })(),
    );
    isDone = true;
    return result;
  } catch (error) {
    throw signal?.aborted ? new MusterError('stopping', 'The export was called off.', { cause: error }) : error;
  } finally {
    signal?.removeEventListener('abort', end);
    client.release(!isDone);
  }
}
