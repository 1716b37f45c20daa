import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import { grantReading } from '../../src/db/schema/reader-rights.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, mirrorRecords } from './warehouse-fixture.js';

// docs/warehouse.md is run as it stands, by a role that may read and nothing else.

const DOCUMENT = readFileSync('docs/warehouse.md', 'utf8');
const QUERIES = [...DOCUMENT.matchAll(/```sql\n(.*?)```/gs)].map(([, query]) => query!);
const ROLE = `reader_${randomBytes(4).toString('hex')}`;

let database: TestDatabase;
let reader: pg.Client;

function person(n: number) {
  const salary = n === 4_711 ? 'plenty' : 4_000 + n;
  return {
    id: String(n),
    lastName: `N${n}`,
    hireDate: '2024-02-29',
    salary,
    address: { city: 'Bergen' },
    department: n % 3 === 0 ? 'Sales' : 'Lager',
    terminationDate: n % 4 === 0 ? '2024-11-30' : null,
    salaries: [
      { validFrom: '2024-02-29', amount: 4_000 + n },
      { validFrom: '2024-10-01', amount: 5_000 + n },
    ],
    bankAccounts: [{ iban: `NO93${n}`, isPrimary: true }],
    absences: [{ kind: 'sick', startsOn: '2024-05-02', days: 1.5 }],
    ...nested(n),
  };
}

const nested = (n: number) => ({
  hours: { [`2024-01-${10 + (n % 20)}`]: { planned: 8 } },
  jobs: [{ title: 'Cook' }, { title: 'Chef' }],
});

beforeAll(async () => {
  database = await testDatabase();
  const endpoints = [{ resource: 'employees' }, { resource: 'departments' }];
  await ensureTypedViews(database.db, { endpoints } as unknown as Catalogue);
  const company = await onboard(database.db);
  await mirrorRecords(
    database.db,
    company,
    Array.from({ length: 120 }, (_, n) => person(n)),
  );
  await mirrorRecords(database.db, company, [person(4_711)]);
  await database.db.pool.query(
    `INSERT INTO muster.barriers (environment, company_id, resource, seq, verified_at, records, run_id)
     SELECT environment, company_id, resource, 120, now(), 120, last_run_id FROM muster.lists`,
  );
  await stampChanges(database.db);
  await database.db.pool.query(`CREATE ROLE ${ROLE}`);
  await grantReading(database.url, ROLE);
  reader = new pg.Client(database.url);
  await reader.connect();
  await reader.query(`SET ROLE ${ROLE}`);
});

afterAll(async () => {
  await reader.end();
  await database.close();
  const admin = new pg.Client(inject('postgres').url);
  await admin.connect();
  await admin.query(`DROP ROLE ${ROLE}`).finally(() => admin.end());
});

test.each(QUERIES)('a reader can run %s', async (query) => {
  await expect(reader.query(query)).resolves.toBeDefined();
});

test('what they say of the records is so', async () => {
  const run = (part: string) => reader.query(QUERIES.find((query) => query.includes(part))!);
  expect((await run('address__city')).rowCount).toBe(121);
  expect((await run('jsonb_each(hours)')).rows).toContainEqual({ id: '7', day: '2024-01-17', planned: '8' });
  expect((await run('employees__jobs')).rows).toContainEqual({ last_name: 'N7', title: 'Chef', _idx: 1 });
  expect((await run('salary__text')).rows).toEqual([{ id: '4711', salary: null, salary__text: 'plenty' }]);
  const since = QUERIES.find((query) => query.includes('changes_since'))!;
  expect((await reader.query(since)).rows).toMatchObject([{ resource: 'employees', records: 120, changes_since: '1' }]);
});

test('a reader sees what has no column, too', async () => {
  await database.db.pool.query(
    `UPDATE mirror.employees SET data = data || '{"address": {"city": "Oslo", "floor": {"number": 3}}, "jobs": [{"title": "Cook", "grade": {"step": 2}}]}'
     WHERE id = '3'`,
  );
  const { rows } = await reader.query(
    `SELECT e._rest AS record, j._rest AS element FROM warehouse.employees e JOIN warehouse.employees__jobs j USING (environment, company_id, id) WHERE id = '3'`,
  );
  expect(rows).toEqual([{ record: { address: { floor: { number: 3 } } }, element: { grade: { step: 2 } } }]);
});

test('the ten questions have their answers', async () => {
  const [, section] = /## Ten questions\n(.*?)\n## /s.exec(DOCUMENT)!;
  const ten = [...section!.matchAll(/```sql\n(.*?)```/gs)].map(([, query]) => query!);
  expect(ten).toHaveLength(10);
  for (const query of ten) {
    expect(query.trim().split('\n').length).toBeLessThanOrEqual(15);
    expect(query).not.toMatch(/jsonb?_|->/);
  }
  const [heads, pay, moves, accounts, absences] = await Promise.all(ten.slice(0, 5).map((query) => reader.query(query)));
  expect(heads!.rows).toHaveLength(2 * 10); // March to December
  expect(heads!.rows[0]).toMatchObject({ department: 'Lager', count: '81' });
  expect(heads!.rows.at(-1)).toMatchObject({ department: 'Sales', count: '30' });
  expect(pay!.rows.find(({ id }) => id === '7')).toMatchObject({ amount: '4007' });
  expect(moves!.rows).toMatchObject([
    { joined: '121', left: '0' },
    { joined: '0', left: '30' },
  ]);
  expect(accounts!.rows.find(({ id }) => id === '7')).toMatchObject({ last_name: 'N7', iban: 'NO937' });
  expect(absences!.rows.find(({ id }) => id === '7')).toMatchObject({ kind: 'sick', absences: '1', days: '1.5' });
});

test.each(['companies', 'lists', 'runs', 'walks', 'feed'])(
  'the columns of warehouse.%s are those that are written down',
  async (view) => {
    const line = DOCUMENT.split('\n').find((text) => text.startsWith(`| \`warehouse.${view}\``))!;
    const [written] = line.split('|')[3]!.split(/[.:] /);
    expect(written!.match(/\w+/g)).toEqual(await columnsOf(database.db, view));
  },
);

test('the columns of history and barriers are those that are written down', async () => {
  const history = await columnsOf(database.db, 'employees_history');
  const [, section] = /## History\n(.*?)\n## /s.exec(DOCUMENT)!;
  const written = [...section!.matchAll(/^\| (`_\w+`(?:, `_\w+`)?) \|/gm)].flatMap(([, names]) => names!.match(/\w+/g)!);
  expect(written).toEqual(history.filter((name) => name.startsWith('_') && name !== '_rest'));
  const [, line] = /`warehouse\.barriers` has one row for each verified walk: ([^.]*)\./.exec(DOCUMENT)!;
  expect(line!.match(/\w+/g)!.filter((word) => word !== 'and')).toEqual(await columnsOf(database.db, 'barriers'));
});
