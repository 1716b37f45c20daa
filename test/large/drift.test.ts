import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { MOST_COLUMNS } from '../../src/db/tables/schema-columns.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, type Json, mirrorRecords, shownBy, valuesOf } from '../warehouse/warehouse-fixture.js';

// Two years of a service that changes its records as it likes: what was asked on the first day still answers, no column changes, and each value
// of the mirror stands somewhere in the view.

let database: TestDatabase;
let company: CompanyKey;

beforeAll(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, { endpoints: [{ resource: 'employees' }] } as never);
});
afterAll(() => database.close());

const EMPLOYEES = 120;
const two = (n: number) => String(n).padStart(2, '0');

function firstDay(n: number): Record<string, Json> {
  return {
    id: `e${n}`,
    uid: n,
    firstName: `First ${n}`,
    hireDate: `20${two(n % 24)}-02-${two(1 + (n % 28))}`,
    modifiedAt: `2024-03-${two(1 + (n % 28))}T10:00:00.5+01:00`,
    active: n % 2 === 0,
    salary: n + 0.25,
    address: { street: `Street ${n}`, city: { name: 'Bodø', code: 8000 + n } },
    tags: ['a', n],
    code: n % 2 === 0 ? 7 : 'seven',
  };
}

/** What became of a record, night by night. */
const NIGHTS: readonly ((n: number) => Record<string, Json>)[] = [
  firstDay,
  // Added, removed.
  (n) => ({ ...without(firstDay(n), 'tags'), phone: { mobile: `+47 ${n}`, 'work.place': null }, title: null }),
  // Other kinds of value.
  (n) => ({
    ...firstDay(n),
    salary: ['by the hour', null, true, { amount: n, currency: 'NOK' }, [1, 2], `${n}`][n % 6]!,
    active: ['yes', 1, null, [], {}, 'false'][n % 6]!,
    hireDate: ['2024-02-30', '', 'unknown', 20240101, '0000-01-01', '2024-02-29', '294277-01-01', 'infinity', 'today'][n % 9]!,
    modifiedAt: ['now', '2024-03-01T10:00:00', '2024-13-01T00:00:00Z', '2024-03-01', { at: 1 }, '2024-03-01T25:00:00Z', 'epoch'][
      n % 7
    ]!,
    firstName: [{ first: 'A', last: 'B' }, ['A', 'B'], 5, false, 'Anna'][n % 5]!,
    title: n % 2 === 0 ? 'Boss' : 3,
  }),
  // Nested and flat the other way round, deeper, and empty.
  (n) => ({
    ...firstDay(n),
    address: ['Street 1, Bodø', {}, null, [{ street: 'x' }], { street: { line: ['a', { b: n }] }, city: 'Oslo', zip: n }][n % 5]!,
    phone: 'none',
  }),
  // Renamed in letter case only, numbers that a double cannot hold, and names that nobody expects.
  (n) => ({
    ...firstDay(n),
    FirstName: 'Upper',
    firstname: 'lower',
    first_name: 'snake',
    'first-name': `kebab ${n}`,
    ...HOSTILE,
  }),
  (n) => ({
    id: `e${n}`,
    ...Object.fromEntries(Array.from({ length: 1_500 }, (_, k) => [`Key ${k}`, n === k % 12 ? k : `v${k}`])),
  }),
  firstDay,
];

const HOSTILE: Record<string, Json> = {
  '': 'no name at all',
  '"': 'quote',
  "'; DROP VIEW warehouse.employees; --": 'injected',
  '\\': 'backslash',
  $$: 'dollars',
  '🏆': 'emoji',
  '🏆🏆': { '🏆': 1, '': 2 },
  李娜: 'han',
  Ærlig: 'letter',
  ['x'.repeat(200)]: 1,
  [`${'x'.repeat(199)}y`]: 2,
  ['é'.repeat(200)]: { ['è'.repeat(200)]: 3 },
  environment: 'production',
  company_id: 4,
  companyId: 'five',
  _first_seen_at: 'never',
  _rest: 'rest',
  ['__proto__']: 1,
  constructor: 'c',
  salary__text: 'a key of its own',
  salary: { text: 'and one inside' },
  '0': 'zero',
  'a.b': { 'c.d': 1 },
  '%': '$1 ${x} :name ?',
  select: 'reserved',
  'line\nbreak\ttab': true,
};

function without<T extends object>(record: T, key: string): T {
  return Object.fromEntries(Object.entries(record).filter(([name]) => name !== key)) as T;
}

test('every query of the first day answers after two years, and each value stands somewhere', async () => {
  const { db } = database;
  let columns: string[] = [];
  const queries: string[] = [];
  for (const [night, recordOf] of NIGHTS.entries()) {
    const records = Array.from({ length: night === 5 ? 12 : EMPLOYEES }, (_, n) => recordOf(n));
    await mirrorRecords(db, company, records);
    const now = await columnsOf(db, 'employees');
    if (night === 0) {
      queries.push(
        'SELECT * FROM warehouse.employees',
        'SELECT first_name, hire_date + 1, extract(year FROM modified_at), NOT active, salary * 2, tags -> 0 FROM warehouse.employees',
        "SELECT count(*) FROM warehouse.employees WHERE hire_date > '2001-01-01' AND active AND salary > 10 GROUP BY address__street",
        'SELECT sum(salary), max(modified_at), _rest FROM warehouse.employees GROUP BY _rest, _verified_at',
        ...now.map((name) => `SELECT max("${name}"::text) FROM warehouse.employees`),
      );
      await db.pool.query('CREATE VIEW public.of_a_reader AS SELECT * FROM warehouse.employees');
      queries.push('SELECT * FROM public.of_a_reader');
    } else expect(now.slice(0, columns.length)).toEqual(columns);
    columns = now;
    for (const query of queries) await db.pool.query(query);
    for (const record of records.slice(0, 12)) {
      const isShown = await shownBy(db, 'employees', String(record['id']));
      expect([night, record['id'], valuesOf(record).filter((value) => !isShown(value))]).toEqual([night, record['id'], []]);
    }
  }
  const named = new Set(columns);
  expect(named.size).toBe(columns.length);
  for (const name of columns) expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
  expect(columns.filter((name) => !/^[a-z_][a-z0-9_]*$/.test(name))).toEqual([]);
  const kept = await db.prisma.schemaColumn.count({ where: { view: 'employees', position: { not: null } } });
  expect(kept).toBe(MOST_COLUMNS);
});
