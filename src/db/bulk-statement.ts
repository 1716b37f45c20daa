import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import type { Prisma } from '../generated/prisma/client.js';

interface Bulk {
  readonly values: readonly unknown[];
  readonly onSent: () => void;
}

/** Statements under way, by the key that stands for their values. */
const UNDER_WAY = new Map<string, Bulk>();

/**
 * Executes a statement whose values are large: they go to the driver (`pg`) as they are. Prisma would write them into a JSON text,
 * bytes as base64, and parse that again, which takes it longer than all else it does for a page. `onSent` is called when the statement
 * is on its way: what is done from then on, is done while the server works. Returns the number of rows.
 */
export async function executeBulk(
  tx: Pick<Prisma.TransactionClient, '$executeRawUnsafe'>,
  sql: string,
  values: readonly unknown[],
  onSent: () => void = () => {},
): Promise<number> {
  const key = randomUUID();
  UNDER_WAY.set(key, { values, onSent });
  try {
    return await tx.$executeRawUnsafe(sql, key);
  } finally {
    UNDER_WAY.delete(key);
  }
}

/** A text[] as PostgreSQL reads it. The driver's own way takes a microsecond an element. */
export function textArray(values: readonly string[]): string {
  return `{${values.map(quoted).join(',')}}`;
}

function quoted(value: string): string {
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** An array of numbers as PostgreSQL reads it. */
export function numberArray(values: readonly number[]): string {
  return `{${values.join(',')}}`;
}

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>;
type Statement = Parameters<Adapter['executeRaw']>[0];

const AS_IT_IS: Statement['argTypes'][number] = { scalarType: 'unknown', arity: 'scalar' };

/** Prisma's adapter for `pg`, which puts the values of executeBulk in the place of their key. */
export class BulkAdapter extends PrismaPg {
  override async connect(): Promise<Adapter> {
    const adapter = await super.connect();
    const startTransaction = adapter.startTransaction.bind(adapter);
    return Object.assign(adapter, {
      startTransaction: async (...options: Parameters<Adapter['startTransaction']>) => {
        const transaction = await startTransaction(...options);
        const executeRaw = transaction.executeRaw.bind(transaction);
        return Object.assign(transaction, {
          executeRaw: (statement: Statement) => {
            const bulk = statement.args.length === 1 ? UNDER_WAY.get(statement.args[0] as string) : undefined;
            const rows = executeRaw(
              bulk ? { ...statement, args: [...bulk.values], argTypes: bulk.values.map(() => AS_IT_IS) } : statement,
            );
            bulk?.onSent();
            return rows;
          },
        });
      },
    });
  }
}
