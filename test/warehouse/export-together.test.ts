import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFileDestination } from '../../src/warehouse/export/destinations/file-destination.js';
import { exportResource, type Manifest } from '../../src/warehouse/export/export-resource.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { type Duck, openDuck } from './duck.js';
import { mirrorRecords } from './warehouse-fixture.js';

// Files of many nights are read as one table, as loaders do it, although columns and digits come with the nights.

const NIGHTS = 40;
const RECORDS = 30;
/** The nights on which something comes that was never there. */
const NEW_COLUMN = 12;
const MISFIT = 25;

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

/** Each night has a number with more digits than the one before: 1, 12, 123.4, … 9030.123456, and more. */
function salaryOf(night: number): string {
  const digits = '123456789012345678901234567890123456789'.slice(0, 1 + (night % 38));
  const places = Math.min(18, Math.floor(night / 2));
  return digits.length > places
    ? `${digits.slice(0, digits.length - places)}.${digits.slice(digits.length - places)}0`
    : '9030.123456';
}

async function exportNight(night: number): Promise<Manifest> {
  return exportResource({
    db: database.db,
    request: { resource: 'employees' },
    format: 'parquet',
    destination: await openFileDestination(join(folder, `night-${String(night).padStart(2, '0')}.parquet`)),
  });
}

test('forty nights of growing digits, a new column and a misfit are one table to the digit', async () => {
  const { db } = database;
  const company = await onboard(db);
  const history = new Map<string, unknown[]>();
  const types = new Map<string, string>();
  for (let night = 0; night < NIGHTS; night += 1) {
    await mirrorRecords(
      db,
      company,
      Array.from({ length: RECORDS }, (_, n) => ({
        id: `e${String(n).padStart(2, '0')}`,
        hired: '2024-02-29',
        salary: 0,
        ...(night >= NEW_COLUMN && { bonus: n + 0.5, bonusOn: '2026-01-31' }),
      })),
    );
    // JSON numbers lose digits in JavaScript, so the text goes in by itself.
    const salary = night === MISFIT ? '123456789012345678901.5' : salaryOf(night);
    await db.pool.query(`UPDATE mirror.employees SET data = jsonb_set(data, '{salary}', '${salary}')`);
    const manifest = await exportNight(night);
    for (const { name, stored_as } of manifest.columns) {
      expect(`${name} ${stored_as}`).toBe(`${name} ${types.get(name) ?? stored_as}`);
      types.set(name, stored_as!);
    }
    expect(manifest.misfits).toEqual(night === MISFIT ? { salary: RECORDS } : {});
    const { rows } = await db.pool.query({
      text: `SELECT id, salary::text, to_jsonb(e) ->> 'bonus', to_jsonb(e) ->> 'bonus_on' FROM warehouse.employees e ORDER BY id`,
      rowMode: 'array',
    });
    history.set(String(night).padStart(2, '0'), rows);
  }
  const found = await duck.rows(`
    SELECT substr(filename, -10, 2), id, salary::VARCHAR, salary__text, bonus::VARCHAR, bonus_on::VARCHAR
    FROM read_parquet('${folder}/night-*.parquet', union_by_name = true, filename = true) ORDER BY filename, id`);
  expect(found).toHaveLength(NIGHTS * RECORDS);
  const digits = (text: string | null) => text?.replace(/\.0+$|(\.\d*?)0+$/, '$1');
  const expected = [...history].flatMap(([night, rows]) => rows.map((row) => [night, ...(row as (string | null)[])]));
  expect(
    found.map(([night, id, salary, text, ...others]) => [
      night,
      id,
      digits((salary ?? text) as string),
      ...others.map((each) => digits(each as string)),
    ]),
  ).toEqual(
    expected.map(([night, id, salary, ...others]) => [night, id, digits(salary!), ...others.map((each) => digits(each ?? null))]),
  );
  // The sum of the last nights: 9030.123456 each.
  expect(
    await duck.rows(`SELECT DISTINCT sum(salary)::VARCHAR FROM read_parquet('${folder}/night-*.parquet', union_by_name = true, filename = true)
      WHERE filename[-10:-9]::int >= 38 GROUP BY filename`),
  ).toEqual([['270903.703680000000000000']]);
});
