import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { READ_TIMEOUT } from '../connection/session.js';
import { inTransaction, type Transaction } from '../connection/transaction.js';

/** Makes the statements that follow in the transaction use indexes: "by index" in docs/internals/planner.md. JIT is off wherever an `enable_…` is. */
export const BY_INDEX = Prisma.sql`set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`;

/** Reads for an answer of the API, in one transaction, with one connection, by indexes. */
export function readByIndex<T>(db: Pick<Database, 'prisma'>, read: (tx: Transaction) => Promise<T>): Promise<T> {
  return inTransaction(db, async (tx) => {
    await tx.$queryRaw`SELECT ${BY_INDEX}, set_config('statement_timeout', ${READ_TIMEOUT}, true)`;
    return read(tx);
  });
}
