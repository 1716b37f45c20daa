import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { pythonEnvironment, runProgram } from '../support/python-environment.js';
import { digits, exportNights, NIGHTS, type NightRow, RECORDS } from '../warehouse/forty-nights.js';

// pyarrow reads files of many nights as one table, as test/warehouse/export-together.test.ts does with DuckDB. It is stricter: it takes no column whose
// type differs between files.

const [PROGRAM, REQUIREMENTS] = ['read_nights.py', 'pyarrow-requirements.txt'].map((name) =>
  fileURLToPath(new URL(name, import.meta.url)),
);

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-pyarrow-'));
  database = await testDatabase();
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true });
});

test('forty nights of growing digits, a new column and a misfit are one table to pyarrow, to the digit', async () => {
  const expected = await exportNights(database.db, folder);
  const python = join(await pythonEnvironment(REQUIREMENTS!), 'python');
  const { code, output } = await runProgram(python, [PROGRAM!, folder], { PATH: process.env['PATH'] }, 120_000);
  expect(code, output).toBe(0);
  const { rows, columns } = JSON.parse(output) as { rows: NightRow[]; columns: Record<string, string> };
  expect(columns).toMatchObject({
    salary: 'decimal128(38, 18)',
    salary__text: 'string',
    bonus: 'decimal128(38, 18)',
    bonus_on: 'date32[day]',
  });
  expect(rows).toHaveLength(NIGHTS * RECORDS);
  expect(rows.map((row) => row.map(digits))).toEqual(expected.map((row) => row.map(digits)));
});
