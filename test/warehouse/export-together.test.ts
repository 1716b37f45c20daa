import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { type Duck, openDuck } from './duck.js';
import { digits, exportNights, NIGHTS, RECORDS } from './forty-nights.js';

// Files of many nights are read as one table, as loaders do it, although columns and digits come with the nights. test/dbt/pyarrow.test.ts does it with
// another reader.

let database: TestDatabase;
let folder: string;
let duck: Duck;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-together-'));
  database = await testDatabase();
  duck = await openDuck();
});
afterAll(async () => {
  duck.close();
  await database.close();
  rmSync(folder, { recursive: true });
});

test('forty nights of growing digits, a new column and a misfit are one table to the digit', async () => {
  const expected = await exportNights(database.db, folder);
  const found = (await duck.rows(`
    SELECT substr(filename, -10, 2), id, coalesce(salary::VARCHAR, salary__text), bonus::VARCHAR, bonus_on::VARCHAR
    FROM read_parquet('${folder}/night-*.parquet', union_by_name = true, filename = true) ORDER BY filename, id`)) as (
    | string
    | null
  )[][];
  expect(found).toHaveLength(NIGHTS * RECORDS);
  expect(found.map((row) => row.map(digits))).toEqual(expected.map((row) => row.map(digits)));
  // The sum of the last nights: 9030.123456 each.
  expect(
    await duck.rows(`SELECT DISTINCT sum(salary)::VARCHAR FROM read_parquet('${folder}/night-*.parquet', union_by_name = true, filename = true)
      WHERE filename[-10:-9]::int >= 38 GROUP BY filename`),
  ).toEqual([['270903.703680000000000000']]);
});
