import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { runMuster } from '../cli/run-muster.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, mirrorRecords } from '../warehouse/warehouse-fixture.js';
import { dbtIn } from './run-dbt.js';

// Records of names and ids as services have them, without a service: ids that are numbers, keys that are words of SQL or Jinja, keys and lists of the
// longest names.

const entry = (path: string, more: object = {}) => ({
  method: 'GET',
  path: `/api/companies/{company_id}/${path}`,
  pager: { style: 'odata', size: 200 },
  ...more,
});
const LONG_KEY = `the_department_${'x'.repeat(48)}_id`;
const LONGEST_LIST = `l${'o'.repeat(38)}ng`;
const CATALOGUE = {
  employees: entry('employees', {
    references: { [LONG_KEY]: 'departments', 'manager.nr': 'employees', 'lost.id': 'departments' },
  }),
  departments: entry('departments'),
  cost_centers: entry('cost-centers'),
  centers: entry('centers'),
  order: entry('order'),
  absences: entry('employees/{id}/absences', { parent: 'employees' }),
  [LONGEST_LIST]: entry('long'),
};

const folder = mkdtempSync(join(tmpdir(), 'muster-dbt-names-'));
const dir = join(folder, 'package');
let database: TestDatabase;
let dbt: Awaited<ReturnType<typeof dbtIn>>;
let env: Record<string, string>;

beforeAll(async () => {
  database = await testDatabase();
  const { db } = database;
  const catalogue = validateCatalogue(CATALOGUE, 'test');
  await ensureMirrorTables(db, catalogue);
  await ensureTypedViews(db, catalogue);
  const companies = [await onboard(db), await onboard(db)];
  for (const company of companies) {
    const many = (record: (n: number) => object) => Array.from({ length: 30 }, (_, n) => record(n));
    await mirrorRecords(
      db,
      company,
      many((n) => ({ id: n, name: `Department ${n}`, parentDepartment: { id: n === 0 ? null : n - 1 } })),
      {
        resource: 'departments',
      },
    );
    await mirrorRecords(
      db,
      company,
      many((n) => ({
        id: n,
        select: n,
        Order: `o ${n}`,
        '{{ user }}': 'x',
        '{% raw %}': 'x',
        'a "quoted" key': 'x',
        '50 % of.it': 'x',
        Größe: 1.5,
        department: { id: n },
        homeDepartmentId: `${n}`,
        costCenterId: `${n}`,
        level: n,
        departmentCount: n + 1_000,
        [LONG_KEY]: n,
        manager: { nr: n === 0 ? null : 0 },
      })),
    );
    for (const resource of ['cost_centers', 'centers', 'order', LONGEST_LIST])
      await mirrorRecords(
        db,
        company,
        many((n) => ({ id: `${n}`, group: 'a', employeeId: n })),
        { resource },
      );
    await mirrorRecords(
      db,
      company,
      many((n) => ({ id: `${n}`, days: n })),
      { resource: 'absences' },
    );
  }
  // As a walk writes the ids of children.
  await db.pool.query(`UPDATE mirror.employees SET id = 'ä/b %' WHERE id = '7'`);
  await db.pool.query(`UPDATE mirror.absences SET id = CASE id WHEN '7' THEN '%C3%A4%2Fb%20%25' ELSE id END || '/' || id`);
  await db.pool.query('UPDATE muster.lists SET last_verified_at = now()');
  const cataloguePath = join(folder, 'catalogue.json');
  writeFileSync(cataloguePath, JSON.stringify(CATALOGUE));
  env = {
    DATABASE_URL: database.url,
    MUSTER_CATALOGUE: cataloguePath,
    MUSTER_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
  };
  dbt = await dbtIn(dir, database.url);
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Model {
  readonly columns: readonly { readonly name: string; readonly description: string; readonly data_tests?: readonly unknown[] }[];
}

function columnsIn(model: string): Model['columns'] {
  const { models } = parse(readFileSync(join(dir, `models/staging/stg_muster__${model}.yml`), 'utf8')) as { models: Model[] };
  return models[0]!.columns;
}

/** Each key column with the list to which it refers. */
function referencesOf(model: string): Record<string, string> {
  return Object.fromEntries(
    columnsIn(model).flatMap(({ name, data_tests: tests }) => {
      const [, to, severity] = /stg_muster__(\w+)'.*"severity":"(\w+)"/.exec(JSON.stringify(tests ?? [])) ?? [];
      return to === undefined ? [] : [[name, `${to} ${severity}`]];
    }),
  );
}

test('is built from names and keys of every kind', async () => {
  const { code, stderr } = await runMuster(['dbt', 'init', dir], env);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringMatching(/^No test of employees\.lost\.id[^\n]*\n$/) as string,
  });
  const build = await dbt('build');
  expect(build.output).toMatch(/PASS=\d+ WARN=0 ERROR=0/);
  expect(build.code).toBe(0);
  expect(await dbt('source', 'freshness')).toMatchObject({ code: 0 });
  expect(await dbt('docs', 'generate')).toMatchObject({ code: 0 });
  const docs = readFileSync(join(dir, 'target/manifest.json'), 'utf8');
  expect(docs).toContain(String.raw`\"{{ user }}\": text, first seen `);
  expect(docs).toContain(String.raw`\"{% raw %}\": text, first seen `);
});

test('joins numbers with ids, and takes no number for a reference by its values alone', () => {
  expect(referencesOf('employees')).toEqual({
    _department__id_key: 'departments warn',
    _home_department_id_key: 'departments warn',
    _cost_center_id_key: 'cost_centers warn',
    [Object.keys(referencesOf('employees')).find((name) => name.startsWith('_the_department_x'))!]: 'departments error',
    _manager__nr_key: 'employees error',
  });
  expect(referencesOf('departments')).toEqual({ _parent_department__id_key: 'departments warn' });
  expect(referencesOf('absences')).toEqual({ _parent_key: 'employees error' });
});

test('leaves a key out of the staging model that is the id again, and keeps it where it is another', async () => {
  expect(await columnsOf(database.db, 'departments')).toContain('id_2');
  expect(columnsIn('departments').map(({ name }) => name)).not.toContain('id_2');
  // One record of each company has another id than its key says.
  expect(columnsIn('employees').map(({ name }) => name)).toContain('id_2');
  expect(columnsIn('absences').map(({ name }) => name)).toContain('id_2');
});

test('fails where a declared reference or a parent leads nowhere, and warns where a found one does', async () => {
  const { pool } = database.db;
  await pool.query(`DELETE FROM mirror.departments WHERE id = '29'`);
  const found = await dbt('build', '--select', 'stg_muster__departments', 'stg_muster__employees');
  expect(found.output).toMatch(/WARN 2 relationships_stg_muster__employees_+home_department_id/);
  expect(found.output).toMatch(/ERROR=1/);
  expect(found.code).toBe(1);
  await pool.query(`UPDATE mirror.absences SET id = 'x' || id WHERE id = '3/3'`);
  const child = await dbt('build', '--select', 'stg_muster__absences');
  expect(child.output).toMatch(/FAIL 2 relationships_stg_muster__absences_+parent_key/);
});

test('takes its own files away whose lists are gone, and no other', async () => {
  const mine = join(dir, 'models/staging/mine.sql');
  writeFileSync(mine, 'SELECT 1 AS one\n');
  const { order: _, ...fewer } = CATALOGUE;
  const cataloguePath = join(folder, 'fewer.json');
  writeFileSync(cataloguePath, JSON.stringify(fewer));
  expect(await runMuster(['dbt', 'init', dir, '--force'], { ...env, MUSTER_CATALOGUE: cataloguePath })).toMatchObject({
    code: 0,
  });
  expect(() => readFileSync(join(dir, 'models/staging/stg_muster__order.sql'))).toThrow(/ENOENT/);
  expect(readFileSync(mine, 'utf8')).toContain('one');
  expect(await dbt('build', '--exclude', 'stg_muster__absences', 'stg_muster__employees')).toMatchObject({ code: 0 });
});
