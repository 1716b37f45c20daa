import { afterAll, beforeAll, expect, test } from 'vitest';
import { MIRROR_COLUMNS } from '../../src/mirror/mirror-columns.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints: endpointsOf(ENTRIES), get: () => undefined });
});
afterAll(() => database.close());

test('the table of every resource has the columns of the list, and no other', async () => {
  const { rows } = await database.db.pool.query<{ columns: string[]; tables: number }>(
    `SELECT columns, count(*)::int AS tables FROM (
       SELECT array_agg(column_name::text ORDER BY ordinal_position) AS columns FROM information_schema.columns JOIN information_schema.tables
         USING (table_schema, table_name) WHERE table_schema = 'mirror' AND table_type = 'BASE TABLE' AND table_name <> 'companies' GROUP BY table_name) t
     GROUP BY columns`,
  );
  expect(rows).toEqual([
    { columns: ['environment', 'company_id', 'id', 'data', ...Object.keys(MIRROR_COLUMNS)], tables: rows[0]!.tables },
  ]);
  expect(rows[0]!.tables).toBeGreaterThan(2);
});
