import pRetry from 'p-retry';
import { isMusterError } from '../../core/errors.js';
import type { Prisma } from '../../generated/prisma/client.js';
import type { Database } from './database.js';
import { withDatabaseErrors } from './sql-state.js';

/** The client inside a transaction. The outer client would wait there for a second connection, and with a full pool for ever. */
export type Transaction = Prisma.TransactionClient;

/**
 * For work on a whole list or company, however large: a giant of some million records takes minutes, and work that is ended half way
 * has to begin again.
 */
export const WHOLE_LIST_MS = 3_600_000;

/** Longer than any page takes to write. What hangs inside is ended much sooner, by the session's timeouts (database.ts). */
const TIMEOUT_MS = 60_000;

/** How long to wait for a connection of the pool. */
const MAX_WAIT_MS = 30_000;

/**
 * Runs `work` in one transaction and commits it; rolls back when `work` throws, and rethrows that error. A lost connection
 * throws `database_unavailable`, and then it is unknown whether the commit took effect.
 * After an SQL error inside, the transaction is aborted: catching it and going on fails with 25P02.
 */
export function inTransaction<T>(
  db: Pick<Database, 'prisma'>,
  work: (tx: Transaction) => Promise<T>,
  { timeoutMs: timeout = TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): Promise<T> {
  return withDatabaseErrors(db.prisma.$transaction(work, { timeout, maxWait: MAX_WAIT_MS }));
}

/**
 * Repeats a write that must not be given up, such as that of a token pair, which exists nowhere else: for about a minute,
 * whatever the database's error; then the error passes. The work must be harmless when repeated, since a commit whose answer was
 * lost may have taken effect.
 */
export function untilCommitted<T>(work: () => Promise<T>, retries = 14): Promise<T> {
  return pRetry(work, {
    retries,
    minTimeout: 200,
    maxTimeout: 5_000,
    randomize: true,
    shouldRetry: ({ error }) => !isMusterError(error) || error.retryable,
  });
}
