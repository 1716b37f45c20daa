import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, mirrorRecords } from './warehouse-fixture.js';

// Maps take one column, whatever keys they have, at any depth.

let database: TestDatabase;
let company: CompanyKey;
const entry = { resource: 'employees', flatten: 3 };
const catalogue = { endpoints: [entry], get: () => entry } as unknown as Catalogue;

beforeAll(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, catalogue);
});
afterAll(() => database.close());

const mirror = (records: readonly object[]) => mirrorRecords(database.db, company, records, { catalogue });
const keysOf = async (view: string) =>
  (await columnsOf(database.db, view)).filter((name) => !/^(environment|company_id|id|_.*)$/.test(name));
const word = (n: number) =>
  `${'abcdefghij'[n % 10]!}${'klmnopqrst'[Math.floor(n / 10) % 10]!}${'uvwxyz'[Math.floor(n / 100) % 6]!}`;

test('a map is one column, and its members leave the log', async () => {
  await mirror(
    Array.from({ length: 300 }, (_, n) => ({
      id: `${n}`,
      address: { street: 'x', line1: 'a', line2: 'b' },
      labels: { 'nb-NO': 'En', 'en-US': 'One' },
      hours: { [`2024-01-${String(1 + (n % 28)).padStart(2, '0')}`]: { planned: n, worked: n } },
      team: { people: { [word(n)]: { name: 'N', tasks: [{ todo: n }] } } },
      one: { two: { byId: { [`emp_${1000 + n}`]: n, [`emp_${5000 + n}`]: n } } },
      jobs: [{ title: 't', share: { [`2024-${n % 12}`]: n } }],
    })),
  );
  expect(await keysOf('employees')).toEqual([
    'address__line1',
    'address__line2',
    'address__street',
    'hours',
    'id_2',
    'jobs',
    'labels__en_us',
    'labels__nb_no',
    'one__two__by_id',
    'team__people',
  ]); // prettier-ignore
  expect(await keysOf('employees__jobs')).toEqual(['share', 'title']);
  const left = await database.db.prisma.schemaColumn.findMany({ where: { path: { has: 'people' } }, select: { path: true } });
  expect(left).toEqual([{ path: ['team', 'people'] }]);
  expect(await database.db.pool.query('SELECT view FROM muster.schema_arrays')).toMatchObject({
    rows: [{ view: 'employees__jobs' }],
  });
  const { rows } = await database.db.pool.query(
    `SELECT hours, team__people->'${word(7)}'->>'name' AS name, _rest FROM warehouse.employees WHERE id = '7'`,
  );
  expect(rows).toEqual([{ hours: { '2024-01-08': { planned: 7, worked: 7 } }, name: 'N', _rest: null }]);
});

test('members that have a column already keep it, and its values', async () => {
  await mirror([{ id: 'y1', years: { 2023: 1, 2024: 'x' } }]);
  expect(await keysOf('employees')).toEqual(expect.arrayContaining(['years__key_2023', 'years__key_2024']));
  await mirror([{ id: 'y2', years: { 2023: 5, 2025: 2, 2026: 3, 2027: 4 } }]);
  const added = await keysOf('employees');
  expect(added).toContain('years');
  expect(added.filter((name) => name.startsWith('years__'))).toEqual(['years__key_2023', 'years__key_2024']);
  await mirror([{ id: 'y3', years: { 2023: 'odd' } }]);
  const { rows } = await database.db.pool.query(
    `SELECT years, years__key_2023, years__key_2024, _rest FROM warehouse.employees WHERE id LIKE 'y%' ORDER BY id`,
  );
  expect(rows).toEqual([
    { years: { 2023: 1, 2024: 'x' }, years__key_2023: '1', years__key_2024: 'x', _rest: null },
    { years: { 2023: 5, 2025: 2, 2026: 3, 2027: 4 }, years__key_2023: '5', years__key_2024: null, _rest: null },
    { years: { 2023: 'odd' }, years__key_2023: null, years__key_2024: null, _rest: null },
  ]);
});

test('maps of many thousand keys leave room for the keys of all others', async () => {
  await mirror(
    Array.from({ length: 10 }, (_, n) => ({
      id: `m${n}`,
      ...Object.fromEntries(
        Array.from({ length: 8 }, (__, m) => [
          `map${m}`,
          Object.fromEntries(Array.from({ length: 600 }, (___, k) => [`${m} ${n} ${word(k)}${k}`, k])),
        ]),
      ),
      zebra: { stripes: n, legs: { count: 4 } },
    })),
  );
  const keys = await keysOf('employees');
  expect(keys.filter((name) => name.startsWith('map'))).toEqual(Array.from({ length: 8 }, (_, m) => `map${m}`));
  expect(keys).toEqual(expect.arrayContaining(['zebra__legs__count', 'zebra__stripes']));
  expect(await database.db.prisma.schemaResource.findFirst({ where: { resource: 'employees' } })).toMatchObject({
    keysLeftOutAt: null,
  });
});
