import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFileDestination } from '../../src/warehouse/export/destinations/file-destination.js';
import { exportResource } from '../../src/warehouse/export/export-resource.js';
import type { ExportFormat } from '../../src/warehouse/export/export-settings.js';
import type { ExportRequest } from '../../src/warehouse/export/source.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { asText } from './column-texts.js';
import { type Duck, openDuck } from './duck.js';
import { mirrorRecords } from './warehouse-fixture.js';

const RECORDS = 300;

let database: TestDatabase;
let folder: string;
let duck: Duck;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-export-'));
  database = await testDatabase();
  duck = await openDuck();
  const company = await onboard(database.db);
  const record = (n: number) => ({
    id: `e${n}`,
    firstName: `Name ${n}`,
    hireDate: new Date(Date.UTC(2000, 0, 1 + n)).toISOString().slice(0, 10),
    updatedAt: `2026-01-31T02:11:09.${String(100 + n)}456+02:00`,
    weeklyHours: n + 0.25,
    active: n % 2 === 0,
    address: { city: 'Łódź', zipCode: `0${n}`, lines: ['a', n] },
    tags: [n, 'x'],
  });
  await mirrorRecords(
    database.db,
    company,
    Array.from({ length: RECORDS }, (_, n) => record(n)),
  );
  // What comes once the types are decided and does not fit them.
  await mirrorRecords(database.db, company, [
    { ...record(1), weeklyHours: 'as agreed', hireDate: 'soon', updatedAt: '2026-02-30T00:00:00Z', active: 'yes' },
    { ...record(2), firstName: { given: 'Ada', titles: [1] }, address: 'unknown' },
  ]);
  // More digits than a float has.
  await database.db.pool.query(
    `UPDATE mirror.employees SET data = jsonb_set(data, '{weeklyHours}', '12345678901234567890123.4500') WHERE id = 'e3'`,
  );
});
afterAll(async () => {
  duck.close();
  await database.close();
  rmSync(folder, { recursive: true });
});

async function exported(format: ExportFormat, request: Partial<ExportRequest> = {}) {
  const path = join(folder, `${Math.random()}.${format}`);
  const destination = await openFileDestination(path);
  const manifest = await exportResource({ db: database.db, request: { resource: 'employees', ...request }, format, destination });
  return { path, manifest };
}

test('without --raw a file has the typed columns, with every digit, and misfits beside them', async () => {
  const { path, manifest } = await exported('parquet');
  expect(manifest).toMatchObject({ raw: false, rows: RECORDS });
  expect(Object.fromEntries(manifest.columns.map(({ name, stored_as }) => [name, stored_as]))).toMatchObject({
    first_name: 'STRING',
    hire_date: 'DATE',
    updated_at: 'TIMESTAMP',
    weekly_hours: 'DECIMAL(38,18)',
    active: 'BOOLEAN',
    address__city: 'STRING',
    address__zip_code: 'STRING',
    address__lines: 'JSON',
    tags: 'JSON',
    weekly_hours__text: 'STRING',
    hire_date__text: 'STRING',
    _verified_at: 'TIMESTAMP',
  });
  // One number has too many digits for Parquet. Its text is in the column of texts that the view has.
  expect(manifest.misfits).toEqual({ weekly_hours: 1 });
  const shown = manifest.columns.filter(({ name }) => name !== 'weekly_hours__text');
  const expected = await database.db.pool.query({
    text: `SELECT ${shown.map(asText.postgres).join(', ')} FROM warehouse.employees ORDER BY id COLLATE "C"`,
    rowMode: 'array',
  });
  expect(await duck.rows(`SELECT ${shown.map(asText.duck).join(', ')} FROM '${path}' ORDER BY id`)).toEqual(expected.rows);
  const one = (columns: string, id: string) => duck.rows(`SELECT ${columns} FROM '${path}' WHERE id = '${id}'`);
  expect(await one('weekly_hours, weekly_hours__text, hire_date::VARCHAR, address__city, address__zip_code, tags', 'e3')).toEqual(
    [[null, '12345678901234567890123.4500', '2000-01-04', 'Łódź', '03', '[3, "x"]']],
  );
  expect(await one("updated_at = TIMESTAMPTZ '2026-01-31 00:11:09.103456Z'", 'e3')).toEqual([[true]]);
  expect(
    await one('weekly_hours, weekly_hours__text, hire_date, hire_date__text, updated_at__text, active, active__text', 'e1'),
  ).toEqual([[null, 'as agreed', null, 'soon', '2026-02-30T00:00:00Z', null, 'yes']]);
});

test.each(['csv', 'ndjson'] as const)('%s has the same columns, misfits and digits', async (format) => {
  const { path, manifest } = await exported(format);
  const reader = format === 'csv' ? `read_csv('${path}', all_varchar = true)` : `read_ndjson_objects('${path}')`;
  expect(manifest.columns.map(({ name }) => name)).toEqual((await exported('parquet')).manifest.columns.map(({ name }) => name));
  const value = (name: string) => (format === 'csv' ? name : `json->>'${name}'`);
  expect(
    await duck.rows(`SELECT ${value('hire_date')}, ${value('hire_date__text')}, ${value('weekly_hours__text')}
      FROM ${reader} WHERE ${value('id')} IN ('e1', 'e3') ORDER BY ${value('id')}`),
  ).toEqual([
    [null, 'soon', 'as agreed'],
    ['2000-01-04', null, null],
  ]);
});

test('with --raw the manifest says so, and the file has the records as sent', async () => {
  const { path, manifest } = await exported('parquet', { isRaw: true });
  expect(manifest).toMatchObject({ raw: true, rows: RECORDS });
  expect(await duck.rows(`SELECT data->>'weeklyHours' FROM '${path}' WHERE id = 'e1'`)).toEqual([['as agreed']]);
});
