import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { askForRebuild, hasNews } from '../../src/db/tables/schema-columns.js';
import { rebuildLog } from '../../src/warehouse/rebuild-log.js';
import { learnPiece } from '../../src/warehouse/schema-sweep.js';
import { addDueTwin } from '../../src/warehouse/typed-twins.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard, openWalk, write } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, type Json, learn, mirrorRecords, NO_ENTRIES } from './warehouse-fixture.js';

let database: TestDatabase;
let company: CompanyKey;
beforeEach(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, { endpoints: [{ resource: 'employees' }] } as never);
});
afterEach(() => database.close());

const query = async <Row extends object>(text: string) => (await database.db.pool.query<Row>(text)).rows;
const key = (path: string) => database.db.prisma.schemaColumn.findFirstOrThrow({ where: { path: { equals: [path] } } });
const people = (from: number, to: number, members: (n: number) => Record<string, Json>) =>
  Array.from({ length: to - from }, (_, n) => ({ id: `e${from + n}`, ...members(from + n) }));
const day = (n: number) => `2024-05-${String(1 + (n % 28)).padStart(2, '0')}`;
const typesOf = async (view: string) =>
  Object.fromEntries(
    (
      await query<{ name: string; type: string }>(
        `SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_schema = 'warehouse' AND table_name = '${view}'`,
      )
    ).map(({ name, type }) => [name, type]),
  );
/** Counts the rows of a view with a value in a column. */
const filled = async (column: string, view = 'employees') =>
  Number((await query<{ n: string }>(`SELECT count(${column}) AS n FROM warehouse.${view}`))[0]!.n);

test('a column that five of 300 people had is text, and has a twin of dates once 3,000 more have one', async () => {
  const { db } = database;
  await mirrorRecords(
    db,
    company,
    people(0, 300, (n) => ({ terminationDate: n < 5 ? day(n) : null })),
  );
  const before = await columnsOf(db, 'employees');
  expect((await typesOf('employees'))['termination_date']).toBe('text');
  const queries = before.map((name) => `SELECT max(${name}::text) FROM warehouse.employees`);
  await mirrorRecords(
    db,
    company,
    people(300, 3_300, (n) => ({ terminationDate: day(n) })),
  );
  for (const view of ['employees', 'employees_history']) {
    expect(await typesOf(view)).toMatchObject({ termination_date: 'text', termination_date__date: 'date' });
    expect(await filled('termination_date__date', view)).toBe(3_005);
  }
  expect(await columnsOf(db, 'employees')).toEqual([...before, 'termination_date__date']);
  for (const each of queries) await query(each);
  const told = await db.prisma.notification.findMany({ where: { type: 'schema_changed' } });
  expect(told.map(({ details }) => details)).toEqual([{ resource: 'employees', columns_added: 1 }]);
  // A value that does not fit later is in the column itself.
  await mirrorRecords(db, company, [{ id: 'e0', terminationDate: 'soon' }]);
  expect(await query(`SELECT termination_date, termination_date__date FROM warehouse.employees WHERE id = 'e0'`)).toEqual([
    { termination_date: 'soon', termination_date__date: null },
  ]);
  expect(await key('terminationDate')).toMatchObject({ misfits: 0n, textPosition: null });
});

test.each<[string, (n: number) => Json, string, string]>([
  ['moments', (n) => `${day(n)}T10:00:00Z`, 'value__timestamptz', 'timestamp with time zone'],
  ['moments without a zone', (n) => `${day(n)} 10:00:00.5`, 'value__timestamp', 'timestamp without time zone'],
  ['numbers', (n) => n + 0.5, 'value__numeric', 'numeric'],
  ['booleans', (n) => n % 2 === 0, 'value__boolean', 'boolean'],
])('a text column whose values are all %s gets a twin of this type', async (_what, value, name, type) => {
  await mirrorRecords(database.db, company, [{ id: 'e0', value: 'a text' }]);
  await mirrorRecords(
    database.db,
    company,
    people(0, 120, (n) => ({ value: value(n) })),
  );
  expect(await typesOf('employees')).toMatchObject({ value: 'text', [name]: type });
  expect(await filled(name)).toBe(120);
});

test('digits in texts make no number, and mixed dates and moments no twin', async () => {
  await mirrorRecords(database.db, company, [{ id: 'e0', code: 'x', mixed: 'x' }]);
  await mirrorRecords(
    database.db,
    company,
    people(0, 300, (n) => ({ code: `00${n}`, mixed: n % 2 ? day(n) : `${day(n)}T00:00:00` })),
  );
  expect((await columnsOf(database.db, 'employees')).filter((name) => /^(code|mixed)/.test(name))).toEqual(['code', 'mixed']);
});

test('numbers that became texts are in the text column; numbers that became dates have a twin', async () => {
  const { db } = database;
  await mirrorRecords(
    db,
    company,
    people(0, 3_009, (n) => ({ employeeId: n, since: n })),
  );
  await mirrorRecords(
    db,
    company,
    people(0, 3_009, (n) => ({ employeeId: `E-${n}`, since: day(n) })),
  );
  expect((await columnsOf(db, 'employees')).filter((name) => /^(employee_id|since)/.test(name)).toSorted()).toEqual([
    'employee_id',
    'employee_id__text',
    'since',
    'since__date',
    'since__text',
  ]);
  expect(await Promise.all(['employee_id', 'employee_id__text', 'since', 'since__date'].map((name) => filled(name)))).toEqual([
    0, 3_009, 0, 3_009,
  ]);
});

test('a few values make no twin until the list is known to have no others', async () => {
  const { db } = database;
  const list = { ...company, resource: 'employees' };
  await mirrorRecords(db, company, [{ id: 'e0', left: 'no' }]);
  await mirrorRecords(
    db,
    company,
    people(0, 19, (n) => ({ left: day(n) })),
  );
  expect(await columnsOf(db, 'employees')).not.toContain('left__date');
  await db.prisma.list.updateMany({ where: list, data: { records: 25, lastVerifiedAt: null } });
  await mirrorRecords(
    db,
    company,
    people(0, 25, (n) => ({ left: day(n + 1) })),
  );
  expect(await columnsOf(db, 'employees')).not.toContain('left__date');
  await db.prisma.list.updateMany({ where: list, data: { lastVerifiedAt: new Date() } });
  await mirrorRecords(
    db,
    company,
    people(0, 25, (n) => ({ left: day(n + 2) })),
  );
  expect(await columnsOf(db, 'employees')).toContain('left__date');
});

test('the last value that did not fit is corrected: the twin comes with it, although counts remember that value', async () => {
  const { db } = database;
  await mirrorRecords(
    db,
    company,
    people(0, 5_000, (n) => ({ left: n === 0 ? 'unknown' : n === 4_999 ? 'soon' : day(n) })),
  );
  expect(await columnsOf(db, 'employees')).not.toContain('left__date');
  expect(await key('left')).toMatchObject({
    type: 'text',
    twinDue: null,
    twinAnswers: { date: { misfit: { id: expect.any(String) as string } } },
  });
  await mirrorRecords(db, company, [{ id: 'e0', left: day(1) }]);
  expect(await columnsOf(db, 'employees')).not.toContain('left__date');
  await mirrorRecords(db, company, [{ id: 'e4999', left: day(1) }]);
  expect(await columnsOf(db, 'employees')).toContain('left__date');
});

test('a worker that dies between the counts and the twin loses no question', async () => {
  const { db } = database;
  await mirrorRecords(db, company, [{ id: 'e0', left: 'no' }]);
  const walk = await openWalk(db, company);
  await write(
    db,
    walk,
    people(0, 200, (n) => ({ left: day(n) })).map((record) => JSON.stringify(record)),
  );
  await stampChanges(db);
  while (await learnPiece(db, NO_ENTRIES));
  expect([(await key('left')).twinDue, await hasNews(db)]).toEqual(['date', true]);
  // The next worker is killed before it commits, then one between the log and the view.
  await db.pool.query(`ALTER TABLE muster.schema_columns ADD CONSTRAINT broken CHECK (twins = '[]')`);
  await expect(addDueTwin(db)).rejects.toThrow('broken');
  await db.pool.query('ALTER TABLE muster.schema_columns DROP CONSTRAINT broken');
  while (await addDueTwin(db));
  expect(await columnsOf(db, 'employees')).not.toContain('left__date');
  await learn(db);
  expect(await filled('left__date')).toBe(200);
});

test('the question ends at the first value that does not fit, and is not asked again until twice as many are counted', async () => {
  const { db } = database;
  const reads = async () => {
    const { rows } = await db.pool.query<{ n: string }>(
      `SELECT pg_stat_force_next_flush(), (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relid = 'mirror.employees'::regclass) AS n`,
    );
    return Number(rows[0]!.n);
  };
  await mirrorRecords(
    db,
    company,
    people(0, 4_000, (n) => ({ left: n % 50 === 0 ? 'no' : day(n) })),
  );
  const asked = await key('left');
  expect(asked.twinAnswers).toMatchObject({ date: { misfit: expect.anything() as object } });
  const before = await reads();
  for (let n = 0; n < 5; n += 1)
    await mirrorRecords(
      db,
      company,
      people(100 * n + 1, 100 * n + 10, () => ({ left: day(n + 7) })),
    );
  expect((await key('left')).twinAnswers).toEqual(asked.twinAnswers);
  expect((await reads()) - before).toBeLessThan(1_000);
});

test('a rebuild asks again, and a name that is taken gets a number', async () => {
  const { db } = database;
  await mirrorRecords(db, company, [
    { id: 'e0', left: 'no' },
    { id: 'e1', left: { date: 'a key of its own' } },
  ]);
  await db.pool.query(
    `INSERT INTO mirror.employees (environment, company_id, id, data, first_seen_at, changed_at)
     SELECT environment, company_id, 'm' || n, jsonb_build_object('left', '2024-05-01'), now(), now() FROM mirror.employees, generate_series(1, 200) n WHERE id = 'e0'`,
  );
  await db.pool.query(`UPDATE mirror.employees SET data = '{"left": "2024-05-02"}' WHERE id IN ('e0', 'e1')`);
  await askForRebuild(db.prisma, ['employees']);
  await rebuildLog(db, NO_ENTRIES, 'employees');
  await learn(db);
  expect(await typesOf('employees')).toMatchObject({ left: 'text', left__date: 'text', left__date_2: 'date' });
  expect(await filled('left__date_2')).toBe(202);
});
