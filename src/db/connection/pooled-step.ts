import type { SqlDriverAdapter, SqlQuery, SqlResultSet } from '@prisma/driver-adapter-utils';

/**
 * Executes a step behind a pooler, where no session keeps its settings: in a transaction, which brings them along (PoolerAdapter). Without them it
 * would wait for a lock without end, and its worker would renew the claim all the while. It takes three round trips more.
 */
export async function runPooledStep(adapter: SqlDriverAdapter, query: SqlQuery): Promise<SqlResultSet> {
  const transaction = await adapter.startTransaction();
  const execute = (sql: string) => transaction.executeRaw({ sql, args: [], argTypes: [] });
  try {
    const result = await transaction.queryRaw(query);
    await execute('COMMIT');
    await transaction.commit();
    return result;
  } catch (error) {
    // The pool closes a connection that broke, which ends its transaction.
    await execute('ROLLBACK').catch(() => {});
    await transaction.rollback();
    throw error;
  }
}
