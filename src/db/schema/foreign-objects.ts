import { MusterError } from '../../core/errors.js';
import { sqlState } from '../connection/sql-state.js';

/** SQLSTATEs for "already exists": a database or schema, a table, another object, a function. */
const ALREADY_EXISTS: ReadonlySet<string | undefined> = new Set(['42P04', '42P06', '42P07', '42710', '42723']);

/** Explains that another object has a name that we need; undefined for any other error. */
export function foreignObject(error: unknown, what: string): MusterError | undefined {
  if (!ALREADY_EXISTS.has(sqlState(error))) return undefined;
  return new MusterError(
    'migration_failed',
    `${what}: ${(error as Error).message}, and Muster did not make it. What stands there was not touched. Give Muster a database of its own, ` +
      'or rename what stands there',
    { cause: error },
  );
}
