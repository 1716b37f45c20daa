import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { askForRebuild } from '../../src/db/tables/schema-columns.js';
import { rebuildLog } from '../../src/warehouse/rebuild-log.js';
import { schemaSweep } from '../../src/warehouse/schema-sweep.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, mirrorRecords } from './warehouse-fixture.js';

// A view for each array of objects, and for each array within these.

let database: TestDatabase;
let company: CompanyKey;
const catalogue = {
  endpoints: [{ resource: 'employees', flatten: 2 }],
  get: () => ({ resource: 'employees', flatten: 2 }),
} as unknown as Catalogue;

beforeAll(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, catalogue);
});
afterAll(() => database.close());

const mirror = (records: readonly object[]) => mirrorRecords(database.db, company, records, { catalogue });
const sweep = () => schemaSweep({ db: database.db, catalogue, clock: systemClock, logger: pino({ level: 'silent' }) })();
const query = async (text: string) =>
  (await database.db.pool.query<Record<string, unknown>>({ text, rowMode: 'array' } as never)).rows;
const views = async () =>
  (
    await query(`SELECT viewname FROM pg_views WHERE schemaname = 'warehouse' AND viewname LIKE 'employees\\_\\_%' ORDER BY 1`)
  ).flat();

const job = (n: number, more: object = {}) => ({
  title: `Job ${n}`,
  from: '2020-01-01',
  pay: { amount: n, unit: { code: 'h' } },
  lines: [{ cost: n }, { cost: n + 0.5 }],
  tags: ['a'],
  ...more,
});

test('elements are rows, with columns as in the view of the list', async () => {
  await mirror([
    { id: '1', jobs: [job(1), job(2)], home: { phones: [{ number: '1' }] } },
    { id: '2', jobs: [], home: { phones: [] } },
    { id: '3' },
  ]);
  expect(await views()).toEqual(['employees__home__phones', 'employees__jobs', 'employees__jobs__lines']);
  expect(await columnsOf(database.db, 'employees__jobs')).toEqual([
    'environment',
    'company_id',
    'id',
    '_idx',
    'from',
    'lines',
    'pay__amount',
    'pay__unit__code',
    'tags',
    'title',
    '_rest',
  ]); // prettier-ignore
  expect(await columnsOf(database.db, 'employees__jobs__lines')).toEqual([
    'environment',
    'company_id',
    'id',
    '_idx',
    '_idx_2',
    'cost',
    '_rest',
  ]);
  expect(
    await query(`SELECT id, _idx, title, pay__amount, pay__unit__code, _rest FROM warehouse.employees__jobs ORDER BY 1, 2`),
  ).toEqual([
    ['1', 0, 'Job 1', '1', 'h', null],
    ['1', 1, 'Job 2', '2', 'h', null],
  ]);
  expect(await query(`SELECT id, _idx, _idx_2, cost FROM warehouse.employees__jobs__lines ORDER BY 1, 2, 3`)).toEqual([
    ['1', 0, 0, '1'],
    ['1', 0, 1, '1.5'],
    ['1', 1, 0, '2'],
    ['1', 1, 1, '2.5'],
  ]);
  expect(await query(`SELECT id, _idx, number FROM warehouse.employees__home__phones`)).toEqual([['1', 0, '1']]);
  expect(await query(`SELECT id, jsonb_array_length(jobs) FROM warehouse.employees ORDER BY 1`)).toEqual([
    ['1', 2],
    ['2', 0],
    ['3', null],
  ]);
});

test('odd records do no harm', async () => {
  await mirror([
    { id: '4', jobs: job(4) },
    { id: '5', jobs: 'none' },
    { id: '6', jobs: 7 },
    { id: '7', jobs: null },
    { id: '8', jobs: [null, 'x', job(8), [job(9)], 5, {}] },
    { id: '9', jobs: { title: 'Only', extra: true, lines: { cost: 9 } } },
    { id: '10', jobs: [job(10, { title: 5, pay: 'much', lines: [[{ cost: 1 }], { cost: 'dear' }] })] },
  ]);
  expect(
    await query(
      `SELECT id, _idx, title, extra, pay, pay__amount, _rest FROM warehouse.employees__jobs WHERE id::int > 3 ORDER BY id::int, 2`,
    ),
  ).toEqual([
    ['4', 0, 'Job 4', null, null, '4', null],
    ['8', 2, 'Job 8', null, null, '8', null],
    ['8', 5, null, null, null, null, null],
    ['9', 0, 'Only', true, null, null, null],
    ['10', 0, '5', null, 'much', null, null],
  ]);
  expect(
    await query(
      `SELECT id, _idx, _idx_2, cost, cost__text FROM warehouse.employees__jobs__lines WHERE id::int > 8 ORDER BY 1, 2, 3`,
    ),
  ).toEqual([
    ['10', 0, 1, null, 'dear'],
    ['9', 0, 0, '9', null],
  ]);
});

test('a member that is an object first, and an array later, has all of both', async () => {
  await mirror([{ id: '20', manager: { name: 'A', since: 1 } }]);
  await mirror([{ id: '21', manager: [{ name: 'B' }, { name: 'C' }] }]);
  await sweep();
  expect(await query(`SELECT id, _idx, name, since FROM warehouse.employees__manager ORDER BY 1, 2`)).toEqual([
    ['20', 0, 'A', '1'],
    ['21', 0, 'B', null],
    ['21', 1, 'C', null],
  ]);
  expect(
    await query(`SELECT manager__name, manager->0->>'name' FROM warehouse.employees WHERE id::int >= 20 ORDER BY id`),
  ).toEqual([
    ['A', null],
    [null, 'B'],
  ]);
});

test('a condition on the key reaches the mirror', async () => {
  const plan = await query(
    `EXPLAIN SELECT * FROM warehouse.employees__jobs__lines WHERE environment = 'test' AND company_id = '${company.companyId}' AND id = '1'`,
  );
  expect(plan.flat().join('\n')).toMatch(/Index Scan|Bitmap/);
});

test('a list has fifty such views, each with a name of its own', async () => {
  const long = 'x'.repeat(60);
  await mirror([{ id: '30', Jobs: [{ a: 1 }], [`${long}1`]: [{ a: 1 }], [`${long}2`]: [{ a: 1 }] }]);
  const names = await views();
  expect(names).toContain('employees__jobs_2');
  expect(names.filter((name) => String(name).startsWith('employees__xxx') && String(name).length === 63)).toHaveLength(2);
  const more = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`list${n}`, [{ a: n }]]));
  await mirror([{ id: '31', ...more }]);
  expect(await views()).toHaveLength(50);
  expect(await database.db.prisma.schemaResource.findFirst({ where: { resource: 'employees' } })).toMatchObject({
    keysLeftOutAt: expect.any(Date),
  });
  await mirror([{ id: '32', ...more }]);
  expect(await views()).toHaveLength(50);
});

test('fifty arrays of one company are counted again from the mirror alike', async () => {
  const before = await query('SELECT view, "column", type, position FROM warehouse.columns ORDER BY 1, 4');
  await askForRebuild(database.db.prisma, ['employees']);
  await rebuildLog(database.db, catalogue, 'employees');
  expect(await query('SELECT view, "column", type, position FROM warehouse.columns ORDER BY 1, 4')).toEqual(before);
});
