import {
  type ArgType,
  type ColumnType,
  ColumnTypeEnum,
  isDriverAdapterError,
  type SqlResultSet,
} from '@prisma/driver-adapter-utils';
import type { Database } from './database.js';
import { sqlState, translateDatabaseError } from './sql-state.js';

/** A statement and its values, `$1` to `$n`: a `Prisma.sql`, or what `named` gives. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * Runs a step: one statement that is a transaction by itself; returns its rows. It takes one round trip where a transaction takes four, and a
 * worker that freezes holds no lock; behind a pooler see runPooledStep. It goes through Prisma's driver adapter, since `$queryRaw`
 * would write a page into JSON and parse it again. Rows are as `$queryRaw` gives them: a bigint as BigInt, a time as Date, json parsed. A column of
 * type void or interval fails after the statement has taken effect: a step must not return one.
 *
 * The statement locks first what it writes under (`FOR UPDATE`, by epoch) in a WITH query that all of its other parts draw from, so that
 * nothing is written without the lock. Its snapshot may be older than the lock. It still sees all of the list: the worker that took the
 * list at that epoch waited for every earlier writer, and only that worker has written since (docs/decisions/0025).
 */
export async function runStep<Row extends object>(db: Pick<Database, 'steps'>, { text, values }: Statement): Promise<Row[]> {
  const args = [...values];
  try {
    return rowsOf<Row>(await db.steps.queryRaw({ sql: text, args, argTypes: args.map(() => AS_IT_IS) }));
  } catch (error) {
    throw translateDatabaseError(shown(error));
  } finally {
    // Prisma keeps its last hundred queries for bug reports: with their values, a hundred pages would stay in memory.
    args.length = 0;
  }
}

/** Whether a step was rolled back by itself (`muster.require`): nothing of it has happened. */
export function wasRolledBack(error: unknown): boolean {
  return sqlState(error) === 'MU001';
}

/** The adapter's error with the SQLSTATE and the words of the server, which it keeps inside, where no log shows them. Other errors are as they came. */
function shown(error: unknown): unknown {
  const code = sqlState(error);
  if (code === undefined || !(error instanceof Error) || !isDriverAdapterError(error)) return error;
  return Object.assign(error, { code, message: error.cause.originalMessage ?? error.message });
}

/** The driver turns values into text, and sends bytes as they are. */
const AS_IT_IS: ArgType = { scalarType: 'unknown', arity: 'scalar' };

const READERS = new Map<ColumnType, (text: string) => unknown>([
  [ColumnTypeEnum.Int64, BigInt],
  [ColumnTypeEnum.DateTime, (text) => new Date(text)],
  [ColumnTypeEnum.Json, (text) => JSON.parse(text) as unknown],
]);

function rowsOf<Row extends object>({ columnNames, columnTypes, rows }: SqlResultSet): Row[] {
  const readers = columnTypes.map((type) => READERS.get(type));
  return rows.map((row) => {
    const values = row.map((value, column) => (value === null ? null : (readers[column]?.(value as string) ?? value)));
    return Object.fromEntries(columnNames.map((name, column) => [name, values[column]])) as Row;
  });
}
