import type { Database } from '../../src/db/connection/database.js';

/** A table with more than this is truncated: dead rows would slow down those who read it next. */
const GROWN_BYTES = 2_000_000;

/**
 * Empties tables, and all that refer to them, as `TRUNCATE … CASCADE` does. It deletes the rows, because a TRUNCATE costs a test 30 ms for the
 * new files of all indexes, and makes every session plan its statements again.
 */
export async function emptyTables({ pool }: Pick<Database, 'pool'>, ...tables: readonly string[]): Promise<void> {
  const { rows } = await pool.query<{ name: string; isGrown: boolean }>(
    `WITH RECURSIVE emptied AS (
       SELECT unnest($1::text[])::regclass::oid AS id
       UNION SELECT conrelid FROM pg_constraint JOIN emptied ON confrelid = emptied.id WHERE contype = 'f'
     )
     SELECT format('%I.%I', nspname, relname) AS name, pg_table_size(emptied.id) > $2 AS "isGrown"
     FROM emptied JOIN pg_class ON pg_class.oid = emptied.id JOIN pg_namespace ON pg_namespace.oid = relnamespace`,
    [tables, GROWN_BYTES],
  );
  const statements = rows.map(({ name, isGrown }) => (isGrown ? `TRUNCATE ${name} CASCADE` : `DELETE FROM ${name}`));
  // One transaction. As a replica it fires no trigger and checks no reference, so the order of the tables does not matter.
  await pool.query([`SELECT set_config('session_replication_role', 'replica', true)`, ...statements].join('; '));
}
