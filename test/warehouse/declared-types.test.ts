import { afterEach, beforeEach, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { CompanyKey } from '../../src/core/company.js';
import { openDatabase } from '../../src/db/connection/database.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { hasNews, lockSchemaLog } from '../../src/db/tables/schema-columns.js';
import { declareTypes } from '../../src/warehouse/declared-types.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, learn, mirrorRecords } from './warehouse-fixture.js';

let database: TestDatabase;
let company: CompanyKey;
beforeEach(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, { endpoints: [{ resource: 'employees' }] } as never);
});
afterEach(() => database.close());

const declaring = (columns?: Readonly<Record<string, string>>) =>
  validateCatalogue(
    {
      employees: {
        method: 'GET',
        path: '/api/companies/{company_id}/employees',
        pager: { style: 'odata', size: 5 },
        ...(columns && { columns }),
      },
    },
    'test',
  );
const query = async <Row extends object>(text: string) => (await database.db.pool.query<Row>(text)).rows;
const types = async () =>
  Object.fromEntries(
    (
      await query<{ name: string; type: string }>(
        `SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_schema = 'warehouse' AND table_name = 'employees'`,
      )
    ).map(({ name, type }) => [name, type]),
  );
const declared = async () =>
  Object.fromEntries(
    (
      await query<{ column: string; declared: string | null }>(
        `SELECT "column", declared FROM warehouse.columns ORDER BY position`,
      )
    ).map((row) => [row.column, row.declared]),
  );

test('a declared column is there before any record, has its type whatever comes, and keeps it', async () => {
  const { db } = database;
  const catalogue = declaring({
    terminationDate: 'date',
    amount: 'numeric(12,2)',
    at: 'timestamp',
    jobs: 'jsonb',
    'address.street': 'text',
    flag: 'boolean',
  });
  await learn(db, catalogue);
  expect(await types()).toMatchObject({
    termination_date: 'date',
    amount: 'numeric',
    at: 'timestamp without time zone',
    jobs: 'jsonb',
    address__street: 'text',
    flag: 'boolean',
  });
  expect(await columnsOf(db, 'employees').then((names) => names.slice(0, 5))).toEqual([
    'environment',
    'company_id',
    'id',
    'termination_date',
    'amount',
  ]);
  expect(await declared()).toMatchObject({ amount: 'numeric(12,2)', address__street: 'text' });
  const odd = { terminationDate: 'soon', amount: '12,50', at: '2024-05-01T10:00:00Z', flag: 'yes' };
  await mirrorRecords(
    db,
    company,
    [
      { id: 'a', ...odd, jobs: { title: 'boss' }, address: { street: 7 } },
      { id: 'b', terminationDate: '2024-05-01', amount: 1.239, at: '2024-05-01T10:00', flag: false, jobs: [{ title: 'a' }] },
    ],
    { catalogue },
  );
  expect(
    await query(
      `SELECT termination_date::text, termination_date__text, amount, amount__text, at::text, at__text, flag, flag__text, jobs, address__street
       FROM warehouse.employees ORDER BY id`,
    ),
  ).toEqual([
    {
      termination_date: null,
      termination_date__text: 'soon',
      amount: null,
      amount__text: '12,50',
      at: null,
      at__text: '2024-05-01T10:00:00Z',
      flag: null,
      flag__text: 'yes',
      jobs: { title: 'boss' },
      address__street: '7',
    },
    {
      termination_date: '2024-05-01',
      termination_date__text: null,
      amount: '1.239',
      amount__text: null,
      at: '2024-05-01 10:00:00',
      at__text: null,
      flag: false,
      flag__text: null,
      jobs: [{ title: 'a' }],
      address__street: null,
    },
  ]);
  // The members of an object that is kept whole get no column, and leave nothing to decide.
  expect(Object.keys(await types())).not.toContain('jobs__title');
  expect(await query(`SELECT path FROM muster.schema_columns WHERE path[1] = 'jobs'`)).toEqual([{ path: ['jobs'] }]);
  expect(await hasNews(db)).toBe(false);
  // Taking the declaration away leaves the columns.
  const before = await types();
  await learn(db, declaring());
  await mirrorRecords(db, company, [{ id: 'b', terminationDate: 'late' }]);
  expect(await types()).toEqual(before);
  expect(new Set(Object.values(await declared()))).toEqual(new Set([null]));
  expect(await query(`SELECT termination_date__text FROM warehouse.employees WHERE id = 'b'`)).toEqual([
    { termination_date__text: 'late' },
  ]);
});

test('a column with another type keeps it and gets a twin; a second start and another worker change nothing', async () => {
  const { db } = database;
  const records = [
    { id: 'a', left: '2024-05-01', pay: 5, address: { street: 'x' } },
    { id: 'b', left: 'no', pay: 6.5, address: { street: 'y', zip: 7 } },
  ];
  await mirrorRecords(db, company, records);
  const before = await columnsOf(db, 'employees');
  const catalogue = declaring({ left: 'date', pay: 'text', address: 'jsonb' });
  await learn(db, catalogue);
  expect(await columnsOf(db, 'employees')).toEqual([...before, 'left__date', 'pay__text_2', 'address']);
  expect(
    await query(
      `SELECT "left", left__date::text AS day, pay, pay__text_2 AS text, address, address__street FROM warehouse.employees ORDER BY id`,
    ),
  ).toEqual([
    { left: '2024-05-01', day: '2024-05-01', pay: '5', text: '5', address: { street: 'x' }, address__street: 'x' },
    { left: 'no', day: null, pay: '6.5', text: '6.5', address: { street: 'y', zip: 7 }, address__street: 'y' },
  ]);
  const after = await columnsOf(db, 'employees');
  await learn(db, catalogue);
  await learn(db, declaring({ left: 'date' }));
  await learn(db, catalogue);
  await mirrorRecords(db, company, [{ id: 'c', address: { street: 'z', city: 'Oslo' } }], { catalogue });
  expect(await columnsOf(db, 'employees')).toEqual(after);
  expect(await query(`SELECT address, _rest FROM warehouse.employees WHERE id = 'c'`)).toEqual([
    { address: { street: 'z', city: 'Oslo' }, _rest: null },
  ]);
  // A text that looks like a date stays one where that was declared.
  expect(await declared()).toMatchObject({ left: 'date', pay: 'text', address: 'jsonb', address__street: null });
});

test('keys that waited for a type leave the log with a declaration around them, and a declared text gets no inferred twin', async () => {
  const { db } = database;
  await mirrorRecords(db, company, [{ id: 'a', map: { one: null, two: null }, code: 'x' }]);
  const catalogue = declaring({ map: 'jsonb', code: 'text' });
  await learn(db, catalogue);
  expect(await query(`SELECT path FROM muster.schema_columns WHERE path[1] = 'map'`)).toEqual([{ path: ['map'] }]);
  await mirrorRecords(
    db,
    company,
    Array.from({ length: 200 }, (_, n) => ({ id: `e${n}`, code: '2024-05-01' })),
    { catalogue },
  );
  await mirrorRecords(db, company, [{ id: 'a', code: '2024-05-01' }], { catalogue });
  expect((await columnsOf(db, 'employees')).filter((name) => name.startsWith('code'))).toEqual(['code']);
});

test('a new column of a later run is notified although its list was only declared before', async () => {
  const { db } = database;
  const catalogue = declaring({ left: 'date' });
  await learn(db, catalogue);
  await mirrorRecords(db, company, [{ id: 'a', pay: 1 }], { catalogue });
  await mirrorRecords(db, company, [{ id: 'a', pay: 1, grade: 'x' }], { catalogue });
  const told = await db.prisma.notification.findMany({ where: { type: 'schema_changed' } });
  expect(told.map(({ details }) => details)).toEqual([{ resource: 'employees', columns_added: 1 }]);
});

test('types are declared once another process has let go of the log', async () => {
  const other = openDatabase({ url: database.url });
  await inTransaction(other, async (tx) => {
    await lockSchemaLog(tx);
    expect(await declareTypes(database.db, declaring({ left: 'date' }))).toBe(false);
  });
  expect(await declareTypes(database.db, declaring({ left: 'date' }))).toBe(true);
  await other.close();
});
