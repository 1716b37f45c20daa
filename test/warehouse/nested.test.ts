import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, mirrorRecords } from './warehouse-fixture.js';

// Objects within objects, as deep as the catalogue says.

let database: TestDatabase;
let company: CompanyKey;

const flatten = (levels?: number): Catalogue => {
  const endpoint = { resource: 'employees', ...(levels !== undefined && { flatten: levels }) };
  return { endpoints: [endpoint], get: () => endpoint } as unknown as Catalogue;
};

beforeAll(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, flatten());
});
afterAll(() => database.close());

const employee = (n: number, amount: unknown = n * 100) => ({
  id: `e${n}`,
  employment: {
    contract: { salary: { amount, currency: { code: 'NOK', digits: { count: 2 } } }, type: 'fixed' },
    since: '2020-01-01',
  },
});
const mirror = (records: readonly object[], levels?: number) =>
  mirrorRecords(database.db, company, records, { catalogue: flatten(levels) });
const keys = async () => (await columnsOf(database.db, 'employees')).filter((name) => name.startsWith('employment'));
const read = async (id: string) =>
  (await database.db.pool.query<Record<string, unknown>>(`SELECT * FROM warehouse.employees WHERE id = $1`, [id])).rows[0]!;

test('one level is flattened unless the catalogue says more', async () => {
  await mirror([employee(1), employee(2)]);
  expect(await keys()).toEqual(['employment__contract', 'employment__since']);
});

test('more levels append columns, and the column of the object goes on', async () => {
  await mirror([employee(3)], 3);
  expect(await keys()).toEqual([
    'employment__contract',
    'employment__since',
    'employment__contract__salary__amount',
    'employment__contract__salary__currency',
    'employment__contract__type',
  ]);
  expect(await read('e1')).toMatchObject({
    employment__contract: employee(1).employment.contract,
    employment__contract__salary__amount: '100',
    employment__contract__salary__currency: { code: 'NOK', digits: { count: 2 } },
    _rest: null,
  });
  await mirror([employee(4)], 4);
  expect((await keys()).slice(5)).toEqual([
    'employment__contract__salary__currency__code',
    'employment__contract__salary__currency__digits',
  ]);
});

test('fewer levels change nothing of what is there', async () => {
  const before = await keys();
  const odd = employee(5, { gross: 1 });
  await mirror([{ ...odd, other: { deep: { deeper: { x: 1 } } } }], 1);
  expect(await keys()).toEqual([...before, 'employment__contract__salary__amount__text']);
  expect(await columnsOf(database.db, 'employees')).toContain('other__deep');
  expect(await read('e5')).toMatchObject({
    employment__contract__salary__amount: null,
    employment__contract__salary__amount__text: '{"gross": 1}',
    other__deep: { deeper: { x: 1 } },
  });
});

test('what has no column is in _rest, at any depth', async () => {
  const rest = async (id: string, data: object) => {
    await database.db.pool.query(
      `INSERT INTO mirror.employees (environment, company_id, id, data, changed_at, first_seen_at)
       SELECT environment, company_id, $1, $2, changed_at, first_seen_at FROM mirror.employees WHERE id = 'e4'`,
      [id, JSON.stringify(data)],
    );
    return (await read(id))['_rest'];
  };
  await mirror([{ id: 'p1', person: { name: { first: { given: 'Ada', family: 'L' } } } }], 3);
  const person = (first: unknown) => ({ person: { name: { first, none: null } } });
  expect(await rest('r1', person({ given: 'A' }))).toBeNull();
  expect(await rest('r2', person({ given: 'A', called: 'B' }))).toEqual(
    person({ called: 'B' }).person && { person: { name: { first: { called: 'B' } } } },
  );
  expect(await rest('r3', person('Ada'))).toEqual({ person: { name: { first: 'Ada' } } });
  expect(await rest('r4', person({}))).toEqual({ person: { name: { first: {} } } });
  expect(await rest('r5', { person: { name: ['x'], age: 7 } })).toEqual({ person: { name: ['x'], age: 7 } });
  expect(await rest('r6', { person: 5, name: { x: { y: null } } })).toEqual({ person: 5, name: { x: { y: null } } });
});
