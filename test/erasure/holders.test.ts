import { afterAll, beforeAll, expect, test } from 'vitest';
import { HOLDERS } from '../../src/erasure/holders.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

// A table that is added must say how a record, a company and age leave it.

/** Tables with columns that could hold a record, and why they hold none. */
const WITHOUT_RECORDS: Readonly<Record<string, string>> = {
  audit: 'what operators did, with ids of companies',
  certificates: 'counts and times',
  connect_links: 'ids of links',
  connections: 'ids of connections',
  issues: 'a sample of companies',
  lists: 'paths of privacy rules',
  marks: 'keyed hashes, from which no id can be told',
  notifications: 'counts, and codes of errors',
  runs: 'errors, from which the holder of walks takes what they name',
};

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

/** Tables of schema muster with a company's id or a sample of such, and all whose rows belong to rows of these. */
async function tablesOfCompanies(): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ name: string }>(`
    WITH RECURSIVE own AS (
      SELECT DISTINCT attrelid AS table FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
      WHERE relnamespace = 'muster'::regnamespace AND relkind IN ('r', 'p') AND attname IN ('company_id', 'sample') AND NOT attisdropped
      UNION
      SELECT conrelid FROM pg_constraint JOIN own ON own.table = confrelid WHERE contype = 'f'
    )
    SELECT relname AS name FROM own JOIN pg_class ON oid = own.table ORDER BY 1`);
  return rows.map(({ name }) => name);
}

test('every table with data of a company has its holder', async () => {
  const known = HOLDERS.flatMap(({ tables }) => tables).filter((table) => table !== 'mirror');
  expect(known.toSorted()).toEqual(await tablesOfCompanies());
});

test('every table that can hold texts or ids of records says how a record leaves it', async () => {
  const { rows } = await database.db.pool.query<{ name: string }>(
    `SELECT DISTINCT relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE relnamespace = 'muster'::regnamespace AND relkind IN ('r', 'p') AND relname = ANY($1) AND attnum > 0 AND NOT attisdropped
       AND (atttypid IN ('jsonb'::regtype, 'bytea'::regtype, 'text[]'::regtype) OR attname IN ('text', 'record_id')
         OR attname = 'id' AND atttypid IN ('text'::regtype, 'uuid'::regtype))`,
    [await tablesOfCompanies()],
  );
  const byRecord = HOLDERS.filter((holder) => holder.byRecord).flatMap(({ tables }) => tables);
  const others = rows.map(({ name }) => name).filter((name) => !byRecord.includes(name));
  expect(others.toSorted()).toEqual(Object.keys(WITHOUT_RECORDS));
});
