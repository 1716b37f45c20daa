import { createHash } from 'node:crypto';
import { createReadStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFileDestination } from '../../src/warehouse/export/destinations/file-destination.js';
import { exportResource, type Manifest } from '../../src/warehouse/export/export-resource.js';
import type { ExportFormat } from '../../src/warehouse/export/export-settings.js';
import type { ExportRequest } from '../../src/warehouse/export/source.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { asText, misfit, partedColumns, quoted } from './column-texts.js';
import { type Duck, openDuck } from './duck.js';
import { makeGadgets } from './gadgets.js';

const RECORDS = 3_000;

let database: TestDatabase;
let folder: string;
let duck: Duck;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-export-'));
  database = await testDatabase();
  await makeGadgets(database.db.pool, RECORDS);
  duck = await openDuck();
});
afterAll(async () => {
  duck.close();
  await database.close();
  rmSync(folder, { recursive: true });
});

async function exported(
  format: ExportFormat,
  request: Partial<ExportRequest> = {},
): Promise<{ path: string; manifest: Manifest }> {
  const path = join(folder, `${Math.random()}.${format}`);
  const manifest = await exportResource({
    db: database.db,
    request: { resource: 'gadgets', ...request },
    format,
    destination: await openFileDestination(path),
  });
  expect(JSON.parse(readFileSync(`${path}.manifest.json`, 'utf8'))).toEqual(manifest);
  expect(manifest.sha256).toBe(createHash('sha256').update(readFileSync(path)).digest('hex'));
  return { path, manifest };
}

async function postgresRows(sql: string): Promise<unknown[][]> {
  return (await database.db.pool.query({ text: sql, rowMode: 'array' })).rows;
}

test('a Parquet file, read by DuckDB, is the view to the digit', async () => {
  const { path, manifest } = await exported('parquet');
  expect(manifest).toMatchObject({ resource: 'gadgets', format: 'parquet', rows: RECORDS });
  const stored = Object.fromEntries(manifest.columns.map(({ name, stored_as }) => [name, stored_as]));
  expect(stored).toEqual({
    environment: 'STRING',
    company_id: 'UUID',
    id: 'STRING',
    name: 'STRING',
    'a "quoted", 😀 name': 'STRING',
    often: 'STRING',
    'dotted.name,': 'STRING',
    active: 'BOOLEAN',
    hours: 'DECIMAL(38,18)',
    price: 'DECIMAL(38,18)',
    exact: 'DECIMAL(38,18)',
    beyond: 'DECIMAL(38,18)',
    odd: 'DECIMAL(38,18)',
    born: 'DATE',
    ends: 'DATE',
    at: 'TIMESTAMP',
    local: 'LOCAL TIMESTAMP',
    until: 'TIMESTAMP',
    tags: 'JSON',
    never: 'DECIMAL(38,18)',
    _first_seen_at: 'TIMESTAMP',
    _changed_at: 'TIMESTAMP',
    exact__text: 'STRING',
    beyond__text: 'STRING',
    odd__text: 'STRING',
    ends__text: 'STRING',
    local__text: 'STRING',
    until__text: 'STRING',
  });
  const { own, appended } = partedColumns(manifest, new Set());
  expect(appended.map(({ name }) => name)).toEqual(manifest.columns.slice(own.length).map(({ name }) => name));
  const texts = appended.map(({ of }) => `CASE WHEN ${misfit(of)} THEN ${quoted(of.name)}::text END`);
  const [expected, found] = await Promise.all([
    postgresRows(`SELECT ${[...own.map(asText.postgres), ...texts].join(', ')} FROM warehouse.gadgets ORDER BY id COLLATE "C"`),
    duck.rows(
      `SELECT ${[...own.map(asText.duck), ...appended.map(({ name }) => quoted(name))].join(', ')} FROM '${path}' ORDER BY id`,
    ),
  ]);
  expect(found).toEqual(expected);
  const counts = appended.map(({ of }) => `count(*) FILTER (WHERE ${misfit(of)})::int`);
  const [counted] = await postgresRows(`SELECT ${counts.join(', ')} FROM warehouse.gadgets`);
  expect(manifest.misfits).toEqual(Object.fromEntries(appended.map(({ of }, n) => [of.name, counted![n]])));
  expect(Math.min(...(counted as number[]))).toBeGreaterThan(0);
  expect(
    await duck.rows(
      `SELECT column_type FROM (DESCRIBE FROM '${path}') WHERE column_name IN ('company_id', 'exact', 'at', 'local', 'born', 'tags')`,
    ),
  ).toEqual([['UUID'], ['DECIMAL(38,18)'], ['DATE'], ['TIMESTAMP WITH TIME ZONE'], ['TIMESTAMP'], ['JSON']]);
});

test('rows are sorted by environment, company and id, in pages of zstd', async () => {
  for (const format of ['parquet', 'csv', 'ndjson'] as const) {
    for (const isRaw of [false, true]) {
      const { path } = await exported(format, { isRaw });
      const reader = { parquet: `'${path}'`, csv: `read_csv('${path}')`, ndjson: `read_ndjson('${path}')` }[format];
      const found = await duck.rows(`SELECT environment, company_id::VARCHAR, id FROM ${reader}`);
      expect(found).toEqual(
        await postgresRows(`SELECT environment, company_id, id FROM mirror.gadgets WHERE deleted_at IS NULL
        ORDER BY environment COLLATE "C", company_id, id COLLATE "C"`),
      );
      if (format === 'parquet')
        expect(await duck.rows(`SELECT DISTINCT compression FROM parquet_metadata('${path}')`)).toEqual([['ZSTD']]);
    }
  }
});

test('what DuckDB skips by the statistics of a Parquet file is right to be skipped', async () => {
  const { path } = await exported('parquet');
  for (const name of ['a "quoted", 😀 name', 'hours', 'company_id', 'at', 'local', 'id']) {
    const column = quoted(name);
    const [[least]] = (await duck.rows(`SELECT min(${column})::VARCHAR FROM '${path}'`)) as [[string]];
    const [[greatest]] = (await duck.rows(`SELECT max(${column})::VARCHAR FROM '${path}'`)) as [[string]];
    for (const value of [least, greatest]) {
      const condition = `${column} = '${value.replaceAll("'", "''")}'`;
      const [[count]] = (await duck.rows(`SELECT count(*)::INT FROM '${path}' WHERE ${condition}`)) as [[number]];
      expect(count, `${name} ${value}`).toBeGreaterThan(0);
    }
  }
});

test('a CSV file is read to the same rows by PostgreSQL and by DuckDB, an empty text apart from none', async () => {
  const { path, manifest } = await exported('csv');
  expect(readFileSync(path, 'utf8')).toMatch(/^environment,company_id,id,name,"a ""quoted"", 😀 name",often,/);
  const client = await database.db.pool.connect();
  try {
    await client.query(`CREATE TEMPORARY TABLE loaded AS SELECT * FROM warehouse.gadgets WHERE false`);
    await pipeline(createReadStream(path), client.query(copyFrom('COPY loaded FROM STDIN (FORMAT csv, HEADER)')));
    const columns = manifest.columns.map(({ name }) => `${quoted(name)}::text`).join(', ');
    const different = await client.query(`
      (SELECT ${columns} FROM loaded EXCEPT SELECT ${columns} FROM warehouse.gadgets)
      UNION ALL (SELECT ${columns} FROM warehouse.gadgets EXCEPT SELECT ${columns} FROM loaded)`);
    expect(different.rows).toEqual([]);
    expect((await client.query('SELECT count(*)::int FROM loaded')).rows).toEqual([{ count: RECORDS }]);
    await client.query('DROP TABLE loaded');
  } finally {
    client.release();
  }
  const expected = await postgresRows(
    `SELECT id, '.' || ${quoted('a "quoted", 😀 name')}, tags::text FROM warehouse.gadgets ORDER BY id COLLATE "C"`,
  );
  const found = await duck.rows(
    `SELECT id, '.' || ${quoted('a "quoted", 😀 name')}, tags FROM read_csv('${path}', header = true, all_varchar = true, allow_quoted_nulls = false) ORDER BY id`,
  );
  expect(found).toEqual(expected);
});

test('NDJSON has one object a line, with every digit', async () => {
  const { path, manifest } = await exported('ndjson');
  const lines = readFileSync(path, 'utf8').split('\n');
  expect(lines.pop()).toBe('');
  expect(lines).toHaveLength(RECORDS);
  expect(Object.keys(JSON.parse(lines[0]!))).toEqual(manifest.columns.map(({ name }) => name));
  const written = await postgresRows(`SELECT row_to_json(g)::text FROM warehouse.gadgets g`);
  expect(lines.toSorted()).toEqual(written.map(([line]) => line as string).toSorted());
  expect(lines.some((line) => line.includes('1234567890123456789012345678901234567940.123'))).toBe(true);
});

test('of nothing there is a file, too, with its columns', async () => {
  const none = { environment: 'test', companyId: 'a0000000-0000-4000-8000-000000000001' } as const;
  for (const format of ['parquet', 'csv', 'ndjson'] as const) {
    const { path, manifest } = await exported(format, none);
    expect(manifest).toMatchObject({ rows: 0, lists: [] });
    if (format === 'ndjson') expect(readFileSync(path, 'utf8')).toBe('');
    else {
      const reader = format === 'parquet' ? `'${path}'` : `read_csv('${path}', header = true)`;
      expect(await duck.rows(`SELECT column_name FROM (DESCRIBE FROM ${reader})`)).toEqual(
        manifest.columns.map(({ name }) => [name]),
      );
    }
  }
});

test('a view of 1,600 columns, the most that there can be, is exported in every format', async () => {
  const { pool } = database.db;
  await pool.query('CREATE TABLE mirror.wide (LIKE mirror.employees INCLUDING ALL)');
  const more = Array.from({ length: 1_597 }, (_, n) => `(data->>'n')::numeric + ${n} AS "column ${n} ${'é'.repeat(20)}"`);
  await pool.query(`CREATE VIEW warehouse.wide AS SELECT environment, company_id, id, ${more.join(', ')} FROM mirror.wide`);
  await pool.query(
    `INSERT INTO mirror.wide (environment, company_id, id, data) SELECT 'test', gen_random_uuid(), n, '{"n": 0.5}' FROM generate_series(1, 20) n`,
  );
  for (const format of ['parquet', 'csv', 'ndjson'] as const) {
    const { path, manifest } = await exported(format, { resource: 'wide' });
    expect(manifest.columns).toHaveLength(1_600);
    const reader = { parquet: `'${path}'`, csv: `read_csv('${path}')`, ndjson: `read_ndjson('${path}')` }[format];
    const sum = `sum(${quoted(manifest.columns[1_599]!.name)})::VARCHAR`;
    expect(await duck.rows(`SELECT count(*)::INT, ${sum} FROM ${reader}`)).toEqual([
      [20, expect.stringMatching(/^31930(\.0+)?$/)],
    ]);
  }
  expect((await exported('csv', { resource: 'wide', since: '0' })).manifest.columns).toHaveLength(1_602);
});

test('one company, one environment, and the records as sent', async () => {
  const { manifest: one } = await exported('ndjson', { companyId: 'a0000000-0000-4000-8000-000000000001' });
  expect(one.rows).toBe(RECORDS / 2);
  expect(one.lists).toEqual([
    {
      environment: 'production',
      company_id: 'a0000000-0000-4000-8000-000000000001',
      verified_at: null,
      is_late: false,
      proof: null,
      records: RECORDS / 2,
      certificates: [],
    },
  ]);
  const { path, manifest } = await exported('parquet', { environment: 'test', isRaw: true });
  expect(manifest.columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
    'environment text',
    'company_id uuid',
    'id text',
    'data jsonb',
    'first_seen_at timestamptz',
    'changed_at timestamptz',
  ]);
  const expected = await postgresRows(
    `SELECT id, data::text FROM mirror.gadgets WHERE environment = 'test' AND deleted_at IS NULL ORDER BY id COLLATE "C"`,
  );
  expect(await duck.rows(`SELECT id, data FROM '${path}' ORDER BY id`)).toEqual(expected);
});

test('what there is not is named, with what there is', async () => {
  await expect(exported('csv', { resource: 'gadget' })).rejects.toMatchObject({
    code: 'unknown_resource',
    message: expect.stringMatching(/no resource "gadget".*departments, employees, gadgets/),
  });
  await database.db.pool.query('CREATE TABLE mirror.viewless (LIKE mirror.employees INCLUDING ALL)');
  await expect(exported('csv', { resource: 'viewless' })).rejects.toMatchObject({
    code: 'unknown_resource',
    message: expect.stringMatching(/--raw/),
  });
  expect((await exported('csv', { resource: 'viewless', isRaw: true })).manifest.rows).toBe(0);
});
