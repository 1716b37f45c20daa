import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { validateCatalogue } from '../../../src/catalogue/validate.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { grantReading } from '../../../src/db/schema/reader-rights.js';
import { ensureMirrorTables } from '../../../src/mirror/mirror-table.js';
import { ensureTypedViews, extendViews } from '../../../src/warehouse/typed-views.js';
import { onboard } from '../../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';
import { mirrorRecords } from '../../warehouse/warehouse-fixture.js';

// A role that reads schema `warehouse` alone. What it may read must not depend on the rights of whoever reads, on any version of PostgreSQL.

const ROLE = `muster_analyst_${randomBytes(4).toString('hex')}`;
const list = (path: string) => ({ method: 'GET', path, pager: { style: 'skip-take', in: 'query', size: 10 } });
const catalogueOf = (...names: string[]) =>
  validateCatalogue(Object.fromEntries(names.map((name) => [name, list(`/api/companies/{company_id}/${name}`)])), 'a test');
const DECLARING = validateCatalogue(
  {
    employees: {
      ...list('/api/companies/{company_id}/employees'),
      columns: { amount: 'numeric', flag: 'boolean', left: 'date', start: 'timestamp' },
    },
  },
  'a test',
);

let database: TestDatabase;
let company: CompanyKey;
let reader: pg.Client;

beforeAll(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, catalogueOf('employees', 'departments'));
  await mirrorRecords(
    database.db,
    company,
    Array.from({ length: 120 }, (_, n) => person(n)),
    { catalogue: DECLARING },
  );
  await database.db.pool.query(`CREATE ROLE ${ROLE} LOGIN PASSWORD 'secret'`);
  await grantReading(database.url, ROLE, ['warehouse']);
  const url = new URL(database.url);
  [url.username, url.password] = [ROLE, 'secret'];
  reader = new pg.Client(url.href);
  await reader.connect();
});

afterAll(async () => {
  await reader.end();
  await database.db.pool.query(`DROP OWNED BY ${ROLE}`);
  await database.close();
  const admin = new pg.Client(inject('postgres').url);
  await admin.connect();
  await admin.query(`DROP ROLE ${ROLE}`).finally(() => admin.end());
});

const person = (n: number) => ({
  id: `e${n}`,
  name: `Name ${n}`,
  born: '2000-02-29',
  seen: '2024-02-29T10:00:00.5+01:00',
  local: '2024-02-29T10:00:00',
  salary: n + 0.5,
  active: true,
  amount: '12.50',
  flag: 'True',
  left: '2024-02-29T00:00:00',
  start: '2024-02-29',
  address: { street: 'A', geo: { lat: n } },
  jobs: [{ title: 'Cook', from: '2020-01-01', parts: [{ share: 1 }] }],
});
/** Values of other types than the first, and a member that has no column yet. */
const odd = {
  born: 'soon',
  seen: 1,
  local: [],
  salary: 'plenty',
  active: 'yes',
  amount: '1e999999',
  flag: 'yes',
  left: '2024-02-30T00:00:00',
  start: '2024-02-30',
  address: { street: {}, geo: 1 },
  jobs: 'none',
  empty: {},
};

const VALUES: Readonly<Record<string, string>> = {
  'timestamp with time zone': 'now()',
  bigint: '(SELECT last_seq FROM warehouse.feed)',
  text: `'employees'`,
};

/** Queries of every view and every function of the schema that returns, each of all columns. */
async function everything(): Promise<string[]> {
  const { rows: views } = await database.db.pool.query<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_class c WHERE relnamespace = 'warehouse'::regnamespace AND relkind IN ('r', 'v')`,
  );
  const { rows: functions } = await database.db.pool.query<{ name: string; types: string[] }>(
    `SELECT format('%I.%I', pronamespace::regnamespace, proname) AS name, ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) AS t) AS types
     FROM pg_proc WHERE pronamespace = 'warehouse'::regnamespace AND proname <> 'refuse_past'`,
  );
  const calls = functions.map(({ name, types }) => `${name}(${types.map((type) => VALUES[type] ?? type).join(', ')})`);
  return [...views.map(({ name }) => name), ...calls].map(
    (source) => `SELECT to_jsonb(v) AS row FROM ${source} v ORDER BY to_jsonb(v)::text`,
  );
}

async function expectTheSameForAll(): Promise<void> {
  const queries = await everything();
  expect(queries.length).toBeGreaterThan(12);
  for (const query of queries) {
    const { rows } = await reader.query(query).catch((error: unknown) => {
      console.error('DBG', error);
      throw new Error(query, { cause: error });
    });
    expect(rows, query).toEqual((await database.db.pool.query(query)).rows);
  }
}

test('it reads every column of every view, and calls every function', async () => {
  await expect(expectTheSameForAll()).resolves.toBeUndefined();
  // It always raises; the code says that the reader may call it.
  await expect(reader.query(`SELECT warehouse.refuse_past('', '', NULL, '')`)).rejects.toMatchObject({ code: '22023' });
});

test('it goes on to do so when views are extended, and with views that are made later', async () => {
  await mirrorRecords(database.db, company, [{ ...person(1), ...odd }]);
  await mirrorRecords(database.db, company, [{ id: 'd1', since: '2020-01-01' }], { resource: 'departments' });
  const later = catalogueOf('employees', 'departments', 'payslips');
  await ensureMirrorTables(database.db, later);
  await ensureTypedViews(database.db, later);
  await mirrorRecords(database.db, company, [{ id: 'p1', day: '2020-01-01' }], { resource: 'payslips' });
  await extendViews(database.db, pino({ level: 'silent' }));
  await expectTheSameForAll();
  const { rows } = await reader.query(
    `SELECT (SELECT count(*) FROM warehouse.payslips)::int AS payslips, salary__text FROM warehouse.employees WHERE id = 'e1'`,
  );
  expect(rows).toEqual([{ payslips: 1, salary__text: 'plenty' }]);
});

test('it reads nothing of the other schemas, and changes nothing', async () => {
  const { rows } = await database.db.pool.query<{ name: string }>(
    `SELECT format('%I.%I', relnamespace::regnamespace, relname) AS name FROM pg_class
     WHERE relnamespace IN ('mirror'::regnamespace, 'muster'::regnamespace) AND relkind IN ('r', 'v', 'S')`,
  );
  const refused = { code: '42501' };
  expect(rows.length).toBeGreaterThan(40);
  for (const { name } of rows) await expect(reader.query(`SELECT FROM ${name} LIMIT 1`), name).rejects.toMatchObject(refused);
  for (const statement of [
    `SELECT muster.is_date('2020-01-01')`,
    'CREATE TABLE warehouse.mine (n int)',
    'DROP VIEW warehouse.employees',
    `COMMENT ON VIEW warehouse.employees IS 'mine'`,
    'CREATE OR REPLACE FUNCTION warehouse.employees_as_of(timestamptz) RETURNS SETOF warehouse.employees_history LANGUAGE sql AS $$SELECT $$',
  ])
    await expect(reader.query(statement), statement).rejects.toMatchObject(refused);
  for (const view of ['employees', 'employees_history', 'companies'])
    await expect(reader.query(`DELETE FROM warehouse.${view}`), view).rejects.toMatchObject({
      code: expect.stringMatching(/^(42501|55000)$/),
    });
});
