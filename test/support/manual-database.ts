import { openDatabase } from '../../src/db/connection/database.js';
import { type TestDatabase, testDatabase } from './database.js';

export interface ManualDatabase extends TestDatabase {
  /** The clock's time, in milliseconds since 1970. */
  readonly now: number;
  setClock(now: number): Promise<void>;
}

/**
 * A database whose clock stands still until it is set: where statements ask for `clock_timestamp()` or `now()`, they find functions of the test
 * before PostgreSQL's own. Of the tables, columns that default to the present time do so by that clock if they are named.
 */
export async function manualDatabase(columns: readonly { table: string; column: string }[]): Promise<ManualDatabase> {
  const database = await testDatabase();
  let now = Date.UTC(2026, 0, 15);
  const setClock = async (next: number) => {
    now = next;
    await database.db.pool.query('UPDATE manual.clock SET at = to_timestamp($1::float8 / 1000)', [next]);
  };
  await database.db.pool.query(`
    CREATE SCHEMA manual;
    CREATE TABLE manual.clock AS SELECT pg_catalog.now() AS at;
    CREATE FUNCTION manual.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM manual.clock';
    CREATE FUNCTION manual.clock_timestamp() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM manual.clock';
    ${columns.map(({ table, column }) => `ALTER TABLE ${table} ALTER COLUMN ${column} SET DEFAULT manual.now();`).join('\n')}
    DO 'BEGIN EXECUTE format(''ALTER DATABASE %I SET search_path = manual, pg_catalog, public'', current_database()); END'`);
  await setClock(now);
  const db = openDatabase({ url: database.url });
  return {
    ...database,
    db,
    get now() {
      return now;
    },
    setClock,
    close: async () => {
      await db.close();
      await database.close();
    },
  };
}
