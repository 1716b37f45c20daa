import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFileDestination } from '../../src/warehouse/export/destinations/file-destination.js';
import { exportResource } from '../../src/warehouse/export/export-resource.js';
import type { ExportFormat } from '../../src/warehouse/export/export-settings.js';
import type { ExportRequest } from '../../src/warehouse/export/source.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrorRecords } from './warehouse-fixture.js';

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-views-'));
  database = await testDatabase();
  const { db } = database;
  const company = await onboard(db);
  const records = Array.from({ length: 120 }, (_, n) => ({
    id: `e${100 + n}`,
    salary: 0,
    jobs: [
      { title: 'a', pay: 1.5 },
      { title: 'b', pay: 2 },
    ],
  }));
  await mirrorRecords(db, company, records);
  await mirrorRecords(db, company, [{ ...records[0]!, salary: 9 }]);
  await db.pool.query(`CREATE OR REPLACE VIEW warehouse.employees__stand_in AS
    SELECT environment, company_id, id, (j.n - 1)::bigint AS _idx, j.job ->> 'title' AS title
    FROM mirror.employees, jsonb_array_elements(data -> 'jobs') WITH ORDINALITY AS j(job, n) WHERE deleted_at IS NULL`);
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true });
});

async function exported(request: ExportRequest, format: ExportFormat = 'ndjson') {
  const path = join(folder, `${Math.random()}.${format}`);
  const manifest = await exportResource({ db: database.db, request, format, destination: await openFileDestination(path) });
  const rows = format === 'ndjson' ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
  return { manifest, rows: rows.map((line) => JSON.parse(line)) };
}

test('a view of a list is exported with the proofs of the list', async () => {
  const { manifest, rows } = await exported({ resource: 'employees_history' });
  expect(manifest).toMatchObject({ resource: 'employees_history', view_of: 'employees', rows: 121 });
  expect(manifest.lists).toEqual((await exported({ resource: 'employees' })).manifest.lists);
  expect(rows.slice(0, 3).map(({ id, salary, _is_current }) => [id, salary, _is_current])).toEqual([
    ['e100', 0, false],
    ['e100', 9, true],
    ['e101', 0, true],
  ]);
  const last = rows.find(({ id, _is_current }) => id === 'e100' && _is_current)! as Readonly<Record<string, unknown>>;
  expect((await exported({ resource: 'employees_history', since: String(Number(last['_seq']) - 1) })).rows).toEqual([last]);

  const elements = await exported({ resource: 'employees__stand_in' });
  expect(elements.manifest).toMatchObject({ view_of: 'employees', rows: 240 });
  expect(elements.rows.slice(0, 3).map(({ id, _idx, title }) => [id, _idx, title])).toEqual([
    ['e100', 0, 'a'],
    ['e100', 1, 'b'],
    ['e101', 0, 'a'],
  ]);
});

test('a view has no records as sent, and one without numbers of the feed no changes', async () => {
  const refused = (request: ExportRequest, message: RegExp) =>
    expect(exported(request)).rejects.toMatchObject({ code: 'unknown_resource', message: expect.stringMatching(message) });
  await refused({ resource: 'employees_history', isRaw: true }, /employees_history is a view of employees.*--raw/);
  await refused({ resource: 'employees__stand_in', since: '0' }, /--since.*employees__stand_in is a view of employees/);
  await refused({ resource: 'lists' }, /no resource "lists"/);
  await refused({ resource: 'employees_histories' }, /no resource "employees_histories".*LIST_history/);
});

test('a declared numeric type is the type in Parquet, of the column or of its numeric twin, in the history, too', async () => {
  const { pool } = database.db;
  await pool.query(`ALTER TABLE muster.schema_columns ADD COLUMN IF NOT EXISTS declared text`);
  const typeOf = async (resource: string) => {
    const { manifest } = await exported({ resource }, 'parquet');
    return [manifest.columns.find(({ name }) => name === 'salary')!.stored_as, manifest.misfits];
  };
  expect(await typeOf('employees')).toEqual(['DECIMAL(38,18)', {}]);
  for (const [declared, stored] of [
    ['numeric(12,2)', 'DECIMAL(12,2)'],
    ['numeric(30, 0)', 'DECIMAL(30,0)'],
    ['numeric', 'DECIMAL(38,18)'],
    ['date', 'DECIMAL(38,18)'],
  ]) {
    await pool.query(`UPDATE muster.schema_columns SET declared = $1 WHERE resource = 'employees' AND name = 'salary'`, [
      declared,
    ]);
    expect([await typeOf('employees'), await typeOf('employees_history')]).toEqual([
      [stored, {}],
      [stored, {}],
    ]);
  }
  await pool.query(`UPDATE muster.schema_columns SET declared = 'numeric(2,2)' WHERE name = 'salary'`);
  expect(await typeOf('employees')).toEqual(['DECIMAL(2,2)', { salary: 1 }]);
});

test('a type that is declared for a member of array elements is the type in Parquet of their view', async () => {
  await database.db.pool.query(
    `UPDATE muster.schema_columns SET declared = 'numeric(9,2)' WHERE list = 'employees' AND resource = 'employees__jobs' AND name = 'pay'`,
  );
  const { manifest } = await exported({ resource: 'employees__jobs' }, 'parquet');
  expect(manifest.columns.find(({ name }) => name === 'pay')!.stored_as).toBe('DECIMAL(9,2)');
});
