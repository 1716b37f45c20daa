import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { schemaSweep } from '../../../src/warehouse/schema-sweep.js';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { onboard } from '../../mirror/mirror-fixture.js';
import { mirrorRecords, NO_ENTRIES } from '../../warehouse/warehouse-fixture.js';
import { runMuster } from '../run-muster.js';

let admin: AdminFixture;
let company: CompanyKey;
beforeAll(async () => {
  admin = await startAdmin();
  company = await onboard(admin.db);
  const records = Array.from({ length: 30 }, (_, n) => ({ id: `e${n}`, salary: n, 'a "key"': { b: true } }));
  await mirrorRecords(admin.db, company, records);
  await mirrorRecords(admin.db, company, [{ id: 'd1', name: 'Drift' }], { resource: 'departments' });
});
afterAll(() => admin.stop());

const operate = (...args: string[]) => runMuster([...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN });
const cells = (table: string) =>
  table
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/));

test('columns are printed with the keys that they are of, of one list or of all', async () => {
  const all = await operate('schema');
  expect([all.code, all.stderr]).toEqual([0, '']);
  const [head, ...rows] = cells(all.stdout);
  expect(head).toEqual([
    'RESOURCE',
    'COLUMN',
    'TYPE',
    'KEY',
    'SINCE',
    'LAST SEEN',
    'VALUES',
    'NULLS',
    'MISFITS',
    'FROM',
    'CATALOGUE',
  ]);
  expect(rows.map((row) => row.slice(0, 4))).toEqual([
    ['departments', 'id_2', 'text', '"id"'],
    ['departments', 'name', 'text', '"name"'],
    ['employees', 'a_key__b', 'boolean', String.raw`"a \"key\"" > "b"`],
    ['employees', 'id_2', 'text', '"id"'],
    ['employees', 'salary', 'numeric', '"salary"'],
  ]);
  expect(rows.map((row) => row.slice(-2))[4]).toEqual(['inferred', 'columns: { salary: numeric }']);
  const one = await operate('schema', 'departments', '--json');
  expect(one.json().map(({ resource, column }) => `${resource} ${column}`)).toEqual(['departments id_2', 'departments name']);
});

test('the name of a view, or of no list, is refused with the lists that there are', async () => {
  const refused = {
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/no list "employees_history"\. .*There are: employees, /),
  };
  expect(await operate('schema', 'employees_history')).toMatchObject(refused);
  expect(await operate('schema', 'employees_history', '--json')).toMatchObject(refused);
});

test('a list that the catalogue does not have is an error that says so', async () => {
  const { code, stderr } = await operate('schema', 'rebuild', 'nothing');
  expect([code, stderr]).toEqual([2, expect.stringContaining('unknown_resource')]);
});

test('a rebuild is asked for by the command, and done by the next sweep of a worker', async () => {
  await admin.db.pool.query(`UPDATE mirror.employees SET data = data || '{"salary": "none"}' WHERE id = 'e3'`);
  const asked = await operate('schema', 'rebuild', 'employees');
  expect([asked.code, cells(asked.stdout)]).toEqual([0, [['RESOURCE'], ['employees']]]);
  await schemaSweep({ db: admin.db, catalogue: NO_ENTRIES, clock: systemClock, logger: pino({ level: 'silent' }) })();
  const columns = (await operate('schema', 'employees', '--json')).json();
  expect(columns.find(({ column }) => column === 'salary')).toMatchObject({
    type: 'numeric',
    values: 30,
    misfits: 1,
    text_column: 'salary__text',
  });
  const [head, ...lines] = cells((await operate('schema', 'employees')).stdout);
  expect([head!.at(-1), lines.map((line) => line.at(-1))]).toEqual(['OF KIND', ['-', '-', 'string 1']]);
  const { rows } = await admin.db.pool.query(`SELECT salary, salary__text FROM warehouse.employees WHERE id = 'e3'`);
  expect(rows).toEqual([{ salary: null, salary__text: 'none' }]);

  const all = await operate('schema', 'rebuild', '--json');
  expect(all.json().map(({ resource }) => resource)).toEqual(expect.arrayContaining(['departments', 'employees']));
});
