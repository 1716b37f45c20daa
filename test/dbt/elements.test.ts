import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { type Outcome, runMuster } from '../cli/run-muster.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrorRecords } from '../warehouse/warehouse-fixture.js';
import { dbtIn } from './run-dbt.js';

// Views of array elements in the package: they belong to their record, and refer to others.

const entry = (path: string, more: object = {}) => ({
  method: 'GET',
  path: `/api/companies/{company_id}/${path}`,
  pager: { style: 'odata', size: 200 },
  ...more,
});
const CATALOGUE = {
  employees: entry('employees', { references: { 'jobs.unit': 'departments', 'jobs.shares.boss': 'employees' } }),
  departments: entry('departments'),
};
const LONG_KEY = `positions_${'x'.repeat(60)}`;

const folder = mkdtempSync(join(tmpdir(), 'muster-dbt-elements-'));
const dir = join(folder, 'package');
let database: TestDatabase;
let written: Outcome;
let dbt: Awaited<ReturnType<typeof dbtIn>>;

beforeAll(async () => {
  database = await testDatabase();
  const { db } = database;
  await ensureTypedViews(db, validateCatalogue(CATALOGUE, 'test'));
  const company = await onboard(db);
  const many = (record: (n: number) => object) => Array.from({ length: 30 }, (_, n) => record(n));
  await mirrorRecords(
    db,
    company,
    many((n) => ({ id: n, name: `Department ${n}` })),
    { resource: 'departments' },
  );
  const job = (n: number) => ({ title: 'Clerk', unit: n, departmentId: `${n}`, shares: [{ boss: n }, { boss: 0 }] });
  await mirrorRecords(
    db,
    company,
    many((n) => ({ id: n, jobs: [job(n), job(0)], [LONG_KEY]: [{ title: 'Clerk' }] })),
  );
  await db.pool.query('UPDATE muster.lists SET last_verified_at = now()');
  const cataloguePath = join(folder, 'catalogue.json');
  writeFileSync(cataloguePath, JSON.stringify(CATALOGUE));
  written = await runMuster(['dbt', 'init', dir], {
    DATABASE_URL: database.url,
    MUSTER_CATALOGUE: cataloguePath,
    MUSTER_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
  });
  dbt = await dbtIn(dir, database.url);
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

const docs = (view: string) => readFileSync(join(dir, `models/staging/stg_muster__${view}.yml`), 'utf8');

test('is built, each element with a key of its own', async () => {
  expect(written).toMatchObject({ code: 0, stderr: '' });
  const build = await dbt('build');
  expect(build.output).toMatch(/PASS=\d+ WARN=0 ERROR=0/);
  expect(build.code).toBe(0);
  const { rows } = await database.db.pool.query<{ n: string; parents: string }>(
    `SELECT count(DISTINCT j._key) AS n, count(DISTINCT e._key) AS parents
     FROM analytics.stg_muster__employees__jobs__shares j JOIN analytics.stg_muster__employees e ON e._key = j._parent_key`,
  );
  expect(rows).toEqual([{ n: '120', parents: '30' }]);
});

test('knows what the members of elements refer to', () => {
  const jobs = docs('employees__jobs');
  expect(jobs).toMatch(/_unit_key[^]*?ref\('stg_muster__departments'\)[^]*?severity: error/);
  expect(jobs).toMatch(/_department_id_key[^]*?ref\('stg_muster__departments'\)[^]*?severity: warn/);
  expect(docs('employees__jobs__shares')).toMatch(/_boss_key[^]*?ref\('stg_muster__employees'\)[^]*?severity: error/);
});

test('fails where an element refers to nothing', async () => {
  await database.db.pool.query(`DELETE FROM mirror.departments WHERE id = '29'`);
  const { code, output } = await dbt('build', '--select', 'stg_muster__departments', 'stg_muster__employees__jobs');
  expect(code).toBe(1);
  expect(output).toMatch(/FAIL 1 relationships_stg_muster__employees__jobs_+unit_key/);
});
