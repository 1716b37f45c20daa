import { PrismaPg } from '@prisma/adapter-pg';
import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils';
import type pg from 'pg';
import { TRANSACTION_SETTINGS } from './session.js';

type PrismaPgOptions = NonNullable<ConstructorParameters<typeof PrismaPg>[1]>;

/** Prisma's adapter for `pg`, whose transactions bring along what they need where no session keeps it. */
export class PoolerAdapter extends PrismaPg {
  readonly #isPooled: () => boolean;

  /** `isPooled`: whether a pooler stands between. */
  constructor(pool: pg.Pool, { isPooled, ...options }: PrismaPgOptions & { readonly isPooled: () => boolean }) {
    super(pool, options);
    this.#isPooled = isPooled;
  }

  override async connect(): ReturnType<PrismaPg['connect']> {
    const adapter = await super.connect();
    const startTransaction = adapter.startTransaction.bind(adapter);
    return Object.assign(adapter, {
      startTransaction: async (...options: Parameters<SqlDriverAdapter['startTransaction']>) => {
        const transaction = await startTransaction(...options);
        if (!this.#isPooled()) return transaction;
        const execute = (sql: string) => transaction.executeRaw({ sql, args: [], argTypes: [] });
        await execute(TRANSACTION_SETTINGS).catch(async (error: unknown) => {
          await execute('ROLLBACK').catch(() => {}); // the connection is gone, and with it the transaction
          await transaction.rollback();
          throw error;
        });
        return transaction;
      },
    });
  }
}
