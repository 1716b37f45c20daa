import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import type { Prisma } from '../generated/prisma/client.js';

/** Values of statements under way, by the key that stands for them. */
const VALUES = new Map<string, readonly unknown[]>();

/**
 * Executes a statement whose values are large: they go to the driver (`pg`) as they are. Prisma would write them into a JSON text,
 * bytes as base64, and parse that again, which takes it longer than all else it does for a page. Returns the number of rows.
 */
export async function executeBulk(
  tx: Pick<Prisma.TransactionClient, '$executeRawUnsafe'>,
  sql: string,
  values: readonly unknown[],
): Promise<number> {
  const key = randomUUID();
  VALUES.set(key, values);
  try {
    return await tx.$executeRawUnsafe(sql, key);
  } finally {
    VALUES.delete(key);
  }
}

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>;
type Statement = Parameters<Adapter['executeRaw']>[0];

/** Prisma's adapter for `pg`, which puts the values of executeBulk in the place of their key. */
export class BulkAdapter extends PrismaPg {
  override async connect(): Promise<Adapter> {
    const adapter = await super.connect();
    const startTransaction = adapter.startTransaction.bind(adapter);
    return Object.assign(adapter, {
      startTransaction: async (...options: Parameters<Adapter['startTransaction']>) => {
        const transaction = await startTransaction(...options);
        const executeRaw = transaction.executeRaw.bind(transaction);
        return Object.assign(transaction, { executeRaw: (statement: Statement) => executeRaw(withValues(statement)) });
      },
    });
  }
}

function withValues(statement: Statement): Statement {
  const values = statement.args.length === 1 ? VALUES.get(statement.args[0] as string) : undefined;
  if (!values) return statement;
  return { ...statement, args: [...values], argTypes: values.map(() => ({ scalarType: 'unknown', arity: 'scalar' })) };
}
