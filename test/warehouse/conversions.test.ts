import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { schemaSweep } from '../../src/warehouse/schema-sweep.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, type Json, learn, mirrorRecords, NO_ENTRIES } from './warehouse-fixture.js';

// A declared column also shows texts that say the same as a value of its type, without loss. No text makes a query fail.

let database: TestDatabase;
let company: CompanyKey;
beforeEach(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, { endpoints: [{ resource: 'employees' }] } as never);
});
afterEach(() => database.close());

const declaring = (columns: Readonly<Record<string, string>>) =>
  validateCatalogue(
    {
      employees: {
        method: 'GET',
        path: '/api/companies/{company_id}/employees',
        pager: { style: 'odata', size: 5 },
        columns,
      },
    },
    'test',
  );
const query = async <Row extends object>(text: string) => (await database.db.pool.query<Row>(text)).rows;
const key = (path: string) => database.db.prisma.schemaColumn.findFirstOrThrow({ where: { path: { equals: [path] } } });
const sweep = (catalogue = NO_ENTRIES) =>
  schemaSweep({ db: database.db, catalogue, clock: systemClock, logger: pino({ level: 'silent' }) })();
const listOf = (values: readonly Json[], name = 'value') =>
  values.map((value, n) => ({ id: `e${String(n).padStart(3, '0')}`, [name]: value }));
/** The column and its text column, by record. */
const shown = (view = 'employees') =>
  query<{ value: string | null; text: string | null }>(
    `SELECT value::text, to_jsonb(v) ->> 'value__text' AS text FROM warehouse.${view} v ORDER BY id`,
  ).then((rows) => rows.map(({ value, text }) => [value, text]));

const ODD: readonly Json[] = [
  '',
  ' ',
  'x',
  '{}',
  {},
  { a: 1 },
  [],
  ['1'],
  'NaN',
  'Infinity',
  '-infinity',
  'now',
  'today',
  'epoch',
  'null',
];

const CASES: readonly [string, readonly (readonly [Json, string])[], readonly Json[]][] = [
  [
    'numeric',
    [
      [12.5, '12.5'],
      ['12.50', '12.50'],
      ['-12', '-12'],
      ['007', '7'],
      ['0', '0'],
      ['-0.10', '-0.10'],
      ['9'.repeat(1_000), '9'.repeat(1_000)],
      [`0.${'1'.repeat(300)}`, `0.${'1'.repeat(300)}`],
    ],
    [
      ' 12',
      '12 ',
      '12\n',
      '\t1',
      '12,50',
      '1,000',
      '1_000',
      '0x1F',
      '0b1',
      '1e3',
      '1E-5',
      '1e999999',
      '+1',
      '--1',
      '- 1',
      '.5',
      '5.',
      '1.2.3',
      '٣',
      '１',
      true,
      '9'.repeat(140_000),
      '12 kr',
    ],
  ],
  [
    'boolean',
    [
      [true, 'true'],
      [false, 'false'],
      ['true', 'true'],
      ['False', 'false'],
      ['TRUE', 'true'],
    ],
    ['t', 'f', 'yes', 'no', 'on', '1', '0', 1, 0, ' true', 'true ', 'FALſE', 'tru', 'truee'],
  ],
  [
    'date',
    [
      ['2024-02-29', '2024-02-29'],
      ['2024-02-29T00:00:00', '2024-02-29'],
      ['2024-02-29T00:00', '2024-02-29'],
      ['2024-02-29 00:00:00', '2024-02-29'],
      ['2024-02-29T00:00:00.000', '2024-02-29'],
      ['2024-02-29T00:00:00.0000000', '2024-02-29'],
      ['2024-02-29T00:00:00Z', '2024-02-29'],
      ['2024-02-29T00:00:00.000Z', '2024-02-29'],
      ['2024-02-29T00:00:00+05:30', '2024-02-29'],
      ['2024-02-29T00:00:00-08:00', '2024-02-29'],
      ['0001-01-01T00:00:00', '0001-01-01'],
      ['0001-01-01T00:00:00+01:00', '0001-01-01'],
      ['9999-12-31T00:00:00-12:00', '9999-12-31'],
    ],
    [
      '2024-02-29T00:00:01',
      '2024-02-29T12:00:00Z',
      '2024-02-29T00:00:00.001',
      '2024-02-29T24:00:00',
      '2023-02-29T00:00:00',
      '2024-13-01T00:00:00',
      '0000-00-00T00:00:00',
      '0000-01-01T00:00:00',
      '10000-01-01T00:00:00',
      '2024-02-29T00:00:00 BC',
      '2024-02-29T00:00:00z',
      '2024-02-29T00:00:00+99:99',
      '2024-02-29T00:00:00+1',
      ' 2024-02-29',
      '2024-02-29 ',
      '2024-02-29T',
      '2024-02-29T00',
      '20240229',
      20240229,
      '29.02.2024',
      'abcd-ef-ghT00:00:00',
      '9999-12-31T23:59:59.9999999',
      `2024-02-29T00:00:00.${'0'.repeat(31)}`,
    ],
  ],
  [
    'timestamp',
    [
      ['2024-02-29T10:00:00', '2024-02-29 10:00:00'],
      ['2024-02-29', '2024-02-29 00:00:00'],
      ['0001-01-01', '0001-01-01 00:00:00'],
      ['9999-12-31', '9999-12-31 00:00:00'],
    ],
    [
      '2024-02-29T10:00:00Z',
      '2023-02-29',
      '0000-00-00',
      '10000-01-01',
      '2024-02-29T10:00:00+01:00',
      '9999-12-31T23:59:59.9999999',
      20240229,
    ],
  ],
  [
    'timestamptz',
    [['2024-02-29T10:00:00Z', '2024-02-29 10:00:00+00']],
    ['2024-02-29', '2024-02-29T10:00:00', '2024-02-29T00:00:00'],
  ],
];

test.each(CASES)('a column that is declared %s shows what says the same, and nothing else', async (type, fitting, others) => {
  await database.db.pool.query(
    `DO $do$ BEGIN EXECUTE format($$ALTER DATABASE %I SET timezone = 'UTC'$$, current_database()); END $do$`,
  );
  const catalogue = declaring({ value: type });
  await learn(database.db, catalogue);
  const rest = [...others, ...ODD];
  const records = listOf([...fitting.map(([value]) => value), ...rest, null]);
  await mirrorRecords(database.db, company, records, { catalogue });
  const asText = (value: Json) => (typeof value === 'string' ? value : JSON.stringify(value));
  const expected = [...fitting.map(([, value]) => [value, null]), ...rest.map((value) => [null, asText(value)]), [null, null]];
  for (const view of ['employees', 'employees_history', 'employees_changes', `employees_as_of(now())`]) {
    const rows = await shown(view);
    expect(rows.map(([value, text]) => [value ?? null, text?.replace(/(?<=[[{:]) +/g, '') ?? null])).toEqual(
      expected.map(([value, text]) => [value, text?.replace(/(?<=[[{:]) +/g, '') ?? null]),
    );
  }
  // Objects are flattened, and their members counted apart: an object is a misfit of the column all the same.
  expect(await key('value')).toMatchObject({ misfits: BigInt(rest.length) });
});

test('texts that fit make no text column, no misfits and no issue, and the declaration leaves its conversion behind', async () => {
  const { db } = database;
  const catalogue = declaring({ value: 'numeric(12,2)' });
  await mirrorRecords(db, company, listOf([1, '12.50', '7']), { catalogue });
  expect(await columnsOf(db, 'employees')).not.toContain('value__text');
  expect(await key('value')).toMatchObject({ misfits: 0n, converts: true });
  expect(await db.prisma.schemaTypeMismatch.count()).toBe(0);
  await mirrorRecords(db, company, listOf([1, '12.50', '8', '9.5']));
  expect(await key('value')).toMatchObject({ declared: null, misfits: 0n, converts: true });
  expect(await shown()).toEqual([
    ['1', null],
    ['12.50', null],
    ['8', null],
    ['9.5', null],
  ]);
  await mirrorRecords(db, company, listOf([1, '12.50', '8,0']));
  expect(await key('value')).toMatchObject({ misfits: 1n });
  expect((await shown())[2]).toEqual([null, '8,0']);
  expect(await db.prisma.schemaTypeMismatch.count()).toBe(1);
});

test('an inferred column converts from its declaration on, and what it shows then counts as no misfit', async () => {
  const { db } = database;
  await mirrorRecords(db, company, listOf(Array.from({ length: 120 }, (_, n) => n)));
  await mirrorRecords(db, company, listOf(['1.50', 'x', 3]));
  expect((await shown()).slice(0, 3)).toEqual([
    [null, '1.50'],
    [null, 'x'],
    ['3', null],
  ]);
  expect(await key('value')).toMatchObject({ misfits: 2n });
  const before = await columnsOf(db, 'employees');
  const catalogue = declaring({ value: 'numeric' });
  await sweep(catalogue);
  expect(await columnsOf(db, 'employees')).toEqual(before);
  for (const view of ['employees', 'employees_as_of(now())'])
    expect((await shown(view)).slice(0, 3)).toEqual([
      ['1.50', null],
      [null, 'x'],
      ['3', null],
    ]);
  expect(await key('value')).toMatchObject({ misfits: 1n, kinds: { as_declared: 1, string: 1, number: 118 } });
  // The second sweep finds nothing to do.
  const definition = `SELECT xmin::text FROM pg_class WHERE oid = 'warehouse.employees'::regclass`;
  const made = await query(definition);
  await sweep(catalogue);
  await sweep();
  expect(await query(definition)).toEqual(made);
  expect((await shown())[0]).toEqual(['1.50', null]);
});

test('a declared twin converts, also where it was there before, and the column beside it stays', async () => {
  const { db } = database;
  await mirrorRecords(db, company, listOf(['2024-05-01T00:00:00', 'x', '12.5', '007']));
  await learn(db, declaring({ value: 'numeric' }));
  await learn(db, declaring({ value: 'date' }));
  await learn(db);
  expect(
    await query(`SELECT value, value__numeric AS number, value__date::text AS day FROM warehouse.employees ORDER BY id`),
  ).toEqual([
    { value: '2024-05-01T00:00:00', number: null, day: '2024-05-01' },
    { value: 'x', number: null, day: null },
    { value: '12.5', number: '12.5', day: null },
    { value: '007', number: '7', day: null },
  ]);
  expect(await key('value')).toMatchObject({ converts: false, misfits: 0n });
});

test('members of elements and of nested objects convert, and an inferred column does not', async () => {
  const { db } = database;
  const catalogue = declaring({ 'jobs.pay': 'numeric', 'address.since': 'date' });
  await learn(db, catalogue);
  await mirrorRecords(
    db,
    company,
    Array.from({ length: 120 }, (_, n) => ({
      id: `e${n}`,
      jobs: [{ pay: `${n}.50`, plain: n }],
      address: { since: '2024-05-01T00:00:00' },
      plain: n,
    })),
    { catalogue },
  );
  // The array was unknown before: its elements are counted again, as they are shown.
  await sweep(catalogue);
  expect(await columnsOf(db, 'employees__jobs')).not.toContain('pay__text');
  await mirrorRecords(
    db,
    company,
    [{ id: 'e7', jobs: [{ pay: '8', plain: '8' }], address: { since: '2024-05-02' }, plain: '8' }],
    { catalogue },
  );
  expect(
    await query(
      `SELECT address__since::text AS since, plain, plain__text FROM warehouse.employees WHERE id IN ('e7', 'e8') ORDER BY id`,
    ),
  ).toEqual([
    { since: '2024-05-02', plain: null, plain__text: '8' },
    { since: '2024-05-01', plain: '8', plain__text: null },
  ]);
  expect(
    await query(`SELECT pay, plain, plain__text FROM warehouse.employees__jobs WHERE id IN ('e7', 'e8') ORDER BY id`),
  ).toEqual([
    { pay: '8', plain: null, plain__text: '8' },
    { pay: '8.50', plain: '8', plain__text: null },
  ]);
  expect(await query(`SELECT path FROM muster.schema_columns WHERE converts AND misfits > 0`)).toEqual([]);
});
