import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, mirrorRecords } from './warehouse-fixture.js';

let database: TestDatabase;
let company: CompanyKey;

const catalogue = { endpoints: [{ resource: 'employees' }, { resource: 'departments' }] } as unknown as Catalogue;

beforeAll(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, catalogue);
});
afterAll(() => database.close());

const employee = (n: number) => ({
  id: `e${n}`,
  firstName: `First ${n}`,
  hireDate: `2020-01-${String(1 + (n % 28)).padStart(2, '0')}`,
  modifiedAt: `2024-05-01T10:00:00.12345${n % 10}Z`,
  active: n % 2 === 0,
  salary: n + 0.5,
  address: { street: `Street ${n}`, geo: { lat: 1 } },
  tags: ['a'],
  note: null,
});

test('a view is there before a record is', async () => {
  expect(await columnsOf(database.db, 'employees')).toEqual([
    'environment',
    'company_id',
    'id',
    '_first_seen_at',
    '_changed_at',
    '_verified_at',
    '_rest',
  ]);
});

test('each key becomes a column of its type', async () => {
  await mirrorRecords(
    database.db,
    company,
    Array.from({ length: 25 }, (_, n) => employee(n)),
  );
  const { rows } = await database.db.pool.query<{ name: string; type: string }>(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = 'warehouse' AND table_name = 'employees' ORDER BY ordinal_position`,
  );
  expect(rows.map(({ name, type }) => `${name} ${type}`)).toEqual([
    'environment text',
    'company_id uuid',
    'id text',
    'active boolean',
    'address__geo jsonb',
    'address__street text',
    'first_name text',
    'hire_date date',
    'id_2 text',
    'modified_at timestamp with time zone',
    'salary numeric',
    'tags jsonb',
    '_first_seen_at timestamp with time zone',
    '_changed_at timestamp with time zone',
    '_verified_at timestamp with time zone',
    '_rest jsonb',
  ]);
  const { rows: read } = await database.db.pool.query(`SELECT * FROM warehouse.employees WHERE id = 'e7'`);
  expect(read).toMatchObject([{ first_name: 'First 7', salary: '7.5', active: false, tags: ['a'], _rest: null }]);
});

test('an object that nobody has counted yet stands as a text where a text was, and beside it from then on', async () => {
  const changed = { ...employee(7), firstName: { given: 'Åse' } };
  await database.db.pool.query(`UPDATE mirror.employees SET data = $1 WHERE id = 'e7'`, [JSON.stringify(changed)]);
  const read = async () => (await database.db.pool.query(`SELECT * FROM warehouse.employees WHERE id = 'e7'`)).rows;
  expect(await read()).toMatchObject([{ first_name: '{"given": "Åse"}', _rest: null }]);
  await mirrorRecords(database.db, company, [{ ...changed, salary: 8 }]);
  expect(await read()).toMatchObject([{ first_name: null, first_name__text: '{"given": "Åse"}', first_name__given: 'Åse' }]);
});
