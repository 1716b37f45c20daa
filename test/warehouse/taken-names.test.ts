import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import { isOwnName } from '../../src/catalogue/view-names.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrorRecords } from './warehouse-fixture.js';

const catalogueOf = (...names: string[]) => ({ endpoints: names.map((resource) => ({ resource })) }) as unknown as Catalogue;

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

async function start(...names: string[]): Promise<void> {
  await ensureMirrorTables(database.db, catalogueOf(...names));
  await ensureTypedViews(database.db, catalogueOf(...names));
}

test('names of what belongs to no list are no names of lists', async () => {
  const { rows } = await database.db.pool.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'warehouse'::regnamespace
     UNION SELECT proname FROM pg_proc WHERE pronamespace = 'warehouse'::regnamespace ORDER BY 1`,
  );
  expect(rows.length).toBeGreaterThan(8);
  expect(rows.map(({ name }) => name).filter((name) => !isOwnName(name))).toEqual([]);
});

test.each(['employees_changes', 'employees__jobs'])('a list %s of an earlier release must go before a start', async (name) => {
  await start(name);
  await mirrorRecords(database.db, await onboard(database.db), [{ id: '1', name: 'one' }], { resource: name });
  await start('departments', name);
  await expect(start('employees', 'departments')).rejects.toMatchObject({
    code: 'invalid_configuration',
    message: expect.stringMatching(
      new RegExp(`list ${name},.* kept for the views and functions of employees\\..*: DROP TABLE mirror\\."${name}" CASCADE$`),
    ),
  });
  await database.db.pool.query(`DROP TABLE mirror."${name}" CASCADE`);
  await expect(start('employees', 'departments')).resolves.toBeUndefined();
});

test('tables and views of others are left alone', async () => {
  await database.db.pool.query(
    `CREATE TABLE mirror.employees__mine (n int); CREATE VIEW warehouse.employees__my_view AS SELECT * FROM mirror.employees__mine`,
  );
  await expect(start('employees', 'departments')).resolves.toBeUndefined();
});
