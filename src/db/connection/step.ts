import pg from 'pg';
import type { Database } from './database.js';
import { sqlState, withDatabaseErrors } from './sql-state.js';

/** A statement and its values, `$1` to `$n`. What Prisma.sql gives is one. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** As Prisma gives them: a bigint as BigInt. */
const TYPES = {
  getTypeParser: (oid: typeof pg.types.builtins.INT8, format?: 'text') =>
    oid === pg.types.builtins.INT8 ? BigInt : pg.types.getTypeParser(oid, format),
} as pg.CustomTypesConfig;

/**
 * Takes a step: executes one statement that is a transaction by itself, and returns its rows. It takes one round trip where a transaction
 * takes four, and nobody can freeze in the middle of it; behind a pooler see runPooledStep. Values go to the driver as they are.
 *
 * The statement locks first what it writes under (`FOR UPDATE`, by epoch) in a WITH query that all of its other parts draw from, so that
 * nothing is written without the lock. Its snapshot may be older than the lock. It still sees all of the list: whoever took the
 * list at that epoch waited for every earlier writer, and nobody has written since but who takes this step (docs/decisions/0025).
 */
export async function runStep<Row extends object>(db: Pick<Database, 'steps'>, { text, values }: Statement): Promise<Row[]> {
  return (await withDatabaseErrors(db.steps.query<Row>({ text, values: [...values], types: TYPES }))).rows;
}

/** Whether a step took itself back (`muster.require`): nothing of it has happened. */
export function wasRolledBack(error: unknown): boolean {
  return sqlState(error) === 'MU001';
}
