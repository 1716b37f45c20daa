import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';

// What a controller reads must name every place in which anything is kept, and what it names by a path must be there.

const DOCUMENT = readFileSync('docs/data-protection.md', 'utf8');

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

test('docs/data-protection.md names every table', async () => {
  const { rows } = await database.db.pool.query<{ name: string }>(
    `SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname IN ('muster', 'mirror') ORDER BY 1`,
  );
  expect(rows.length).toBeGreaterThan(30);
  expect(rows.map(({ name }) => name).filter((name) => !DOCUMENT.includes(`\`${name}\``))).toEqual([]);
});

test('its queries run', async () => {
  const queries = [...DOCUMENT.matchAll(/```sql\n(.*?)```/gs)].map(([, query]) => query!);
  expect(queries).not.toEqual([]);
  for (const query of queries) await expect(database.db.pool.query(query)).resolves.toBeDefined();
});
