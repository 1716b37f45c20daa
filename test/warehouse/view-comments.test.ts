import { afterAll, beforeAll, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, mirrorRecords } from './warehouse-fixture.js';

const CATALOGUE = validateCatalogue(
  {
    employees: {
      method: 'GET',
      path: '/api/companies/{company_id}/employees',
      pager: { style: 'skip-take', in: 'query', size: 10 },
    },
  },
  'a test',
);

let database: TestDatabase;
let company: CompanyKey;
beforeAll(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
});
afterAll(() => database.close());

async function comments(view: string): Promise<{ view: string | null; columns: Record<string, string | null> }> {
  const { rows } = await database.db.pool.query<{ name: string | null; comment: string | null }>(
    `SELECT a.attname AS name, col_description(a.attrelid, a.attnum) AS comment FROM pg_attribute a
     WHERE a.attrelid = to_regclass('warehouse.' || quote_ident($1)) AND a.attnum > 0
     UNION ALL SELECT NULL, obj_description(to_regclass('warehouse.' || quote_ident($1)), 'pg_class')`,
    [view],
  );
  return {
    view: rows.find(({ name }) => name === null)!.comment,
    columns: Object.fromEntries(rows.flatMap(({ name, comment }) => (name === null ? [] : [[name, comment]]))),
  };
}

/** Versions of the rows that hold comments: a row that is written gets another one. */
async function written(): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ version: string }>(
    `SELECT format('%s.%s %s %s', c.relname, d.objsubid, d.ctid, d.xmin) AS version FROM pg_description d
     JOIN pg_class c ON c.oid = d.objoid AND c.relnamespace = 'warehouse'::regnamespace WHERE d.classoid = 'pg_class'::regclass`,
  );
  return rows.map(({ version }) => version);
}

test('every view, and every column of it, says what it is', async () => {
  const { rows } = await database.db.pool.query(
    `SELECT c.relname, a.attname FROM pg_class c CROSS JOIN LATERAL (
       SELECT attname, attnum FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 UNION ALL SELECT NULL, 0) a
     WHERE c.relnamespace = 'warehouse'::regnamespace
       AND NOT EXISTS (SELECT FROM pg_description WHERE classoid = 'pg_class'::regclass AND objoid = c.oid AND objsubid = a.attnum)`,
  );
  expect(rows).toEqual([]);
});

test('a column of a key says its path, its type and when it was first seen', async () => {
  const keys = { 'a.b': 1, "it's": 'x', 'with "quotes"\n$do$ \\': 'y', Дата: '2024-02-29', address: { 'postal code': '1' } };
  const records = Array.from({ length: 30 }, (_, n) => ({ id: `${n}`, ...keys }));
  await mirrorRecords(database.db, company, records);
  await mirrorRecords(database.db, company, [{ id: '1', ...keys, Дата: 'soon' }]);
  for (const view of ['employees', 'employees_history']) {
    const { columns } = await comments(view);
    expect(columns).toMatchObject({
      id: 'The id of the record within its list and company',
      a_b: expect.stringMatching(/^"a\.b": numeric, first seen \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      it_s: expect.stringMatching(/^it's: text, first seen /),
      with_quotes_do: expect.stringMatching(/^"with \\"quotes\\"\\n\$do\$ \\\\": text, /),
      data: expect.stringMatching(/^Дата: date, first seen /),
      data__text: 'Дата: text, the values that are not date',
      address__postal_code: expect.stringMatching(/^address\."postal code": text, /),
      _rest: 'Members without a column; null where there are none',
    });
    expect(Object.values(columns)).not.toContain(null);
    expect(Object.keys(columns)).toEqual(await columnsOf(database.db, view));
  }
  expect((await comments('employees')).view).toBe('The living records of the list employees');
  expect((await comments('employees_history')).view).toBe(
    'Every version of each record of the list employees, from the change feed',
  );
});

test('a view of array elements says which array it is of', async () => {
  const jobs = [{ title: 'a', 'work.lines': [{ code: 'x' }] }];
  await mirrorRecords(
    database.db,
    company,
    Array.from({ length: 30 }, (_, n) => ({ id: `${n}`, jobs })),
  );
  const within = 'in the living records of the list employees; paths begin in the element';
  expect((await comments('employees__jobs')).view).toBe(`The elements of jobs ${within}`);
  expect((await comments('employees__jobs__work_lines')).view).toBe(`The elements of jobs."work.lines" ${within}`);
});

test('a long key is cut in its comment', async () => {
  const key = `${'k'.repeat(499)}😀${'k'.repeat(400)}`;
  await mirrorRecords(
    database.db,
    company,
    Array.from({ length: 30 }, (_, n) => ({ id: `${n}`, [key]: n })),
  );
  const { columns } = await comments('employees');
  const [, comment] = Object.entries(columns).find(([name]) => name.startsWith('kkk'))!;
  expect(comment).toMatch(/^k{499}.?…: numeric, first seen /u);
});

test('a comment is written where it differs, and nowhere else', async () => {
  const before = await written();
  await mirrorRecords(database.db, company, [{ id: '1', newest: 1 }]);
  const after = await written();
  expect(after).toEqual(expect.arrayContaining(before));
  expect(after).toHaveLength(before.length + 3);
  await ensureTypedViews(database.db, CATALOGUE);
  expect(await written()).toEqual(after);
});

test('views that an earlier release made get their comments at the next start', async () => {
  const before = await comments('employees');
  await database.db.pool.query(`COMMENT ON VIEW warehouse.employees IS NULL; COMMENT ON COLUMN warehouse.employees.a_b IS NULL`);
  await ensureTypedViews(database.db, CATALOGUE);
  expect(await comments('employees')).toEqual(before);
});

test('a start does not wait for a view that is locked', async () => {
  const client = await database.db.pool.connect();
  await client.query('COMMENT ON VIEW warehouse.employees IS NULL');
  await client.query('BEGIN; LOCK TABLE warehouse.employees IN ACCESS EXCLUSIVE MODE');
  await ensureTypedViews(database.db, CATALOGUE);
  await client.query('ROLLBACK');
  client.release();
  expect((await comments('employees')).view).toBeNull();
  await ensureTypedViews(database.db, CATALOGUE);
  expect((await comments('employees')).view).not.toBeNull();
});

test('names are written down: a key keeps the name that an earlier release gave it', async () => {
  const { pool } = database.db;
  await mirrorRecords(database.db, company, [{ id: 'd1', Имя: 'Анна' }], { resource: 'departments' });
  await pool.query(`UPDATE muster.schema_columns SET name = 'key' WHERE resource = 'departments' AND name = 'imya'`);
  await pool.query('DROP VIEW warehouse.departments_history, warehouse.departments CASCADE');
  await mirrorRecords(database.db, company, [{ id: 'd2', Имя: 'Ida', Отдел: 'IT' }], { resource: 'departments' });
  const { rows } = await pool.query(`SELECT key, otdel FROM warehouse.departments WHERE id = 'd2'`);
  expect(rows).toEqual([{ key: 'Ida', otdel: 'IT' }]);
});
