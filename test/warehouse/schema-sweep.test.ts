import pg from 'pg';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { openDatabase } from '../../src/db/connection/database.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { askForRebuild } from '../../src/db/tables/schema-columns.js';
import { eraseCompany } from '../../src/erasure/mirror-erasure.js';
import { learnPiece, schemaSweep } from '../../src/warehouse/schema-sweep.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard, openWalk, write } from '../mirror/mirror-fixture.js';
import { sweepOf } from '../runs/issue-world.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, learn, mirrorRecords, NO_ENTRIES } from './warehouse-fixture.js';

let database: TestDatabase;
let company: CompanyKey;
const catalogue = { endpoints: [{ resource: 'employees' }] } as never;

beforeEach(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, catalogue);
});
afterEach(() => database.close());

const days = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `d${n}`, day: `2024-05-${String(1 + (n % 28)).padStart(2, '0')}` }));
const key = (path: string) => database.db.prisma.schemaColumn.findFirst({ where: { path: { equals: [path] } } });
const sweep = () =>
  schemaSweep({ db: database.db, catalogue: NO_ENTRIES, clock: systemClock, logger: pino({ level: 'silent' }) })();

test.each([
  [19, true, 'text'],
  [20, true, 'date'],
  [99, false, 'text'],
  [100, false, 'date'],
])('%i days of a list whose proof is %s are %s', async (count, verified, type) => {
  await mirrorRecords(database.db, company, days(count), { verified });
  expect((await key('day'))?.type).toBe(type);
});

test('a key waits for the end of the run that showed it, and a null for a value', async () => {
  const { db } = database;
  const walk = await openWalk(db, company);
  await db.prisma.run.update({ where: { id: walk.runId }, data: { status: 'running' } });
  await write(
    db,
    walk,
    days(30).map((record) => JSON.stringify({ ...record, none: null })),
  );
  await learn(db);
  expect(await key('day')).toMatchObject({ name: null, values: 30n });
  const { rows } = await db.pool.query(`SELECT _rest FROM warehouse.employees WHERE id = 'd0'`);
  expect(rows).toEqual([{ _rest: { id: 'd0', day: '2024-05-01' } }]);
  // What it has committed last has no number yet when it ends.
  await write(db, walk, ['{"id":"last","day":"soon"}'], { number: 1, pagesBefore: 1 });
  await db.prisma.walk.update({ where: { id: walk.walkId }, data: { status: 'succeeded', verified: true } });
  await db.prisma.run.update({ where: { id: walk.runId }, data: { status: 'succeeded' } });
  await learnPiece(db, NO_ENTRIES);
  expect(await key('day')).toMatchObject({ name: null, values: 30n });
  await learn(db);
  expect(await key('day')).toMatchObject({ type: 'text', values: 31n });
  expect(await key('none')).toMatchObject({ name: null, values: 0n, nulls: 30n });
  expect(await columnsOf(db, 'employees')).toContain('day');
});

test('the first run is no news; then new columns and misfits are told, once, and are an issue of the company', async () => {
  const { db } = database;
  const told = async () =>
    (await db.prisma.notification.findMany({ where: { type: 'schema_changed' }, orderBy: { seq: 'asc' } })).map(
      (row) => row.details,
    );
  await mirrorRecords(
    db,
    company,
    Array.from({ length: 5 }, (_, n) => ({ id: `${n}`, pay: n })),
  );
  expect(await told()).toEqual([]);
  await mirrorRecords(db, company, [{ id: '1', pay: 'much', grade: 'a', level: 1 }]);
  await mirrorRecords(db, company, [{ id: '2', pay: 'more', grade: 'b' }]);
  const news = await told();
  expect(news.reduce<number>((sum, each) => sum + ((each as { columns_added?: number }).columns_added ?? 0), 0)).toBe(2);
  expect(news.filter((each) => 'columns_with_misfits' in (each as object))).toHaveLength(1);
  expect(await key('pay')).toMatchObject({ type: 'numeric', misfits: 2n, values: 7n });
  await sweepOf(db)();
  const issues = () => db.prisma.issue.findMany({ where: { cause: 'schema_misfit' } });
  expect(await issues()).toMatchObject([
    { status: 'ongoing', severity: 'warning', resource: 'employees', companies: 1, sample: [company.companyId] },
  ]);
  // The values are mended, and the log counted anew.
  await mirrorRecords(db, company, [
    { id: '1', pay: 1 },
    { id: '2', pay: 2 },
  ]);
  await askForRebuild(db.prisma, ['employees']);
  await sweep();
  await sweepOf(db)();
  expect(await issues()).toMatchObject([{ status: 'resolved' }]);
  expect(await key('pay')).toMatchObject({
    name: 'pay',
    type: 'numeric',
    misfits: 0n,
    values: 5n,
    textPosition: expect.any(Number),
  });
});

test('two that count at the same time count nothing twice, and one that fails counts nothing', async () => {
  const { db } = database;
  const walk = await openWalk(db, company);
  for (let page = 0; page < 30; page += 1)
    await write(
      db,
      walk,
      Array.from({ length: 300 }, (_, n) => `{"id":"${page}/${n}","n":${n}}`),
      { number: page, pagesBefore: page },
    );
  await stampChanges(db);
  const other = openDatabase({ url: database.url });
  await db.pool.query(`ALTER TABLE muster.schema_log_cursor ADD CONSTRAINT broken CHECK (seq < 5000)`);
  const all = async (of: typeof db) => {
    while (await learnPiece(of, NO_ENTRIES));
  };
  await expect(all(db)).rejects.toThrow('broken');
  const [{ seq }] = (await db.pool.query<{ seq: string }>('SELECT seq FROM muster.schema_log_cursor')).rows as [{ seq: string }];
  expect(BigInt(seq) > 0n && (await key('n'))!.values === BigInt(seq)).toBe(true);
  await db.pool.query(`ALTER TABLE muster.schema_log_cursor DROP CONSTRAINT broken`);
  for (let round = 0; round < 3; round += 1) await Promise.all([all(db), all(other)]);
  expect((await key('n'))!.values).toBe(9_000n);
  await other.close();
});

test('a view that is being read is extended later; whoever writes does not wait', async () => {
  const { db } = database;
  const reader = new pg.Client(database.url);
  await reader.connect();
  await reader.query('BEGIN; SELECT * FROM warehouse.employees');
  await mirrorRecords(db, company, days(30));
  expect(await columnsOf(db, 'employees')).not.toContain('day');
  await reader.query('COMMIT');
  await reader.end();
  await sweep();
  expect(await columnsOf(db, 'employees')).toEqual([
    'environment',
    'company_id',
    'id',
    'day',
    'id_2',
    '_first_seen_at',
    '_changed_at',
    '_verified_at',
    '_rest',
  ]);
});

test.each(['warehouse.departments', 'warehouse.departments[]', 'warehouse.departments_history[]'])(
  'a table of a reader with a column of type %s keeps no view from its columns',
  async (type) => {
    const { db } = database;
    await ensureTypedViews(db, { endpoints: [{ resource: 'departments' }] } as never);
    await db.pool.query(`CREATE TABLE public.theirs (rows ${type})`);
    await mirrorRecords(db, company, days(30), { resource: 'departments' });
    for (const view of ['departments', 'departments_history']) expect(await columnsOf(db, view)).toContain('day');
  },
);

test('a list whose views cannot be extended keeps no other list from its columns', async () => {
  const { db } = database;
  await ensureTypedViews(db, { endpoints: [{ resource: 'departments' }] } as never);
  await db.pool.query(`CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'warehouse.departments') THEN RAISE 'refused'; END IF;
    END $$;
    CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION public.refuse()`);
  await mirrorRecords(db, company, days(30), { resource: 'departments' }).catch(() => {});
  await expect(mirrorRecords(db, company, days(30))).rejects.toThrow('refused');
  expect(await columnsOf(db, 'departments')).not.toContain('day');
  expect(await columnsOf(db, 'employees')).toContain('day');
  await db.pool.query('DROP EVENT TRIGGER refuse');
  await sweep();
  expect(await columnsOf(db, 'departments')).toContain('day');
});

test('rights on a view stay, whatever it becomes, and reading it takes no other right', async () => {
  const { db } = database;
  const role = `reader_${Date.now()}`;
  await db.pool.query(
    `CREATE ROLE ${role}; GRANT USAGE ON SCHEMA warehouse TO ${role}; GRANT SELECT ON warehouse.employees TO ${role}`,
  );
  await mirrorRecords(db, company, days(30));
  const client = await db.pool.connect();
  await client.query(`BEGIN; SET LOCAL ROLE ${role}`);
  const { rows } = await client.query(`SELECT *, day + 1 AS next FROM warehouse.employees WHERE id = 'd0'`);
  await client.query('ROLLBACK');
  client.release();
  expect(rows).toHaveLength(1);
  await db.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
});

test('processes that start together make one view; a removed company leaves columns and no misfits', async () => {
  const { db } = database;
  await db.pool.query('DROP VIEW warehouse.employees');
  await Promise.all(Array.from({ length: 4 }, () => ensureTypedViews(db, catalogue)));
  expect(await columnsOf(db, 'employees')).toHaveLength(7);
  await mirrorRecords(db, company, [{ id: '1', pay: 1 }]);
  const walk = await openWalk(db, company);
  await write(db, walk, ['{"id":"1","pay":"much"}']);
  await stampChanges(db);
  await inTransaction(db, (tx) => eraseCompany(tx, company));
  await db.prisma.connection.deleteMany();
  await learn(db);
  expect(await columnsOf(db, 'employees')).toContain('pay');
  expect(await db.prisma.schemaTypeMismatch.count()).toBe(0);
});

test('a process of an older release finds that another one has the log, whatever there is to count', async () => {
  const { db } = database;
  await mirrorRecords(db, company, [{ id: '1', pay: 1 }]);
  const { rows } = await db.pool.query('SELECT seq FROM muster.schema_cursor FOR UPDATE SKIP LOCKED');
  const news = await db.pool.query<{ news: boolean }>(
    'SELECT EXISTS (SELECT FROM muster.change_batches WHERE first_seq > (SELECT seq FROM muster.schema_cursor)) AS news',
  );
  expect([rows, news.rows]).toEqual([[], [{ news: false }]]);
});
