import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { migrate, pendingMigrations } from '../../../src/db/schema/migrate.js';
import { emptyDatabase, testDatabase } from '../../support/database.js';
import { waitFor } from '../../support/wait-for.js';

const FOLDER = new URL('../../../prisma/migrations/', import.meta.url);
const NAMES = readdirSync(FOLDER, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
const FIRST = NAMES[0] ?? '';
const logger = pino({ level: 'silent' });

let database: Awaited<ReturnType<typeof emptyDatabase>>;
let client: pg.Client;

/** Opens a database of the test's own: one without any table, or a copy of the one that `migrate` has made for all tests. */
async function open(make: typeof emptyDatabase): Promise<void> {
  database = await make();
  client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(async () => {
    await client.end();
    await database.close();
  });
}

test('a fresh database gets every migration once', async () => {
  await open(emptyDatabase);
  expect(await pendingMigrations(client)).toEqual(NAMES);
  expect(await migrate(database.url, logger)).toEqual({ applied: NAMES });
  expect(await migrate(database.url, logger)).toEqual({ applied: [] });
  expect(await pendingMigrations(client)).toEqual([]);
  expect((await client.query('SELECT FROM mirror.employees')).rowCount).toBe(0);
});

test('changes that were fed before batches said whose they are read as before', async () => {
  await open(emptyDatabase);
  const until = NAMES.indexOf('20261122000000_change_batches');
  for (const name of NAMES.slice(0, until)) await client.query(readFileSync(new URL(`${name}/migration.sql`, FOLDER), 'utf8'));
  await client.query(
    `INSERT INTO muster.change_batches (size, first_seq) VALUES (2, 1), (1, NULL), (1, 3);
     INSERT INTO muster.changes (batch_id, position, resource, environment, company_id, record_id, op, data, changed_at, run_id)
     SELECT b, p, r, 'test', c::uuid, 'id' || p, o, d::jsonb, '2026-01-02', NULL
     FROM (VALUES (1, 0, 'employees', 'insert', '{"a":1}'), (1, 1, 'employees', 'delete', NULL), (2, 0, 'cats', 'insert', '{}'),
                  (3, 0, 'departments', 'update', '{"b":2}')) AS v(b, p, r, o, d), gen_random_uuid() c`,
  );
  const feed = async () => (await client.query('SELECT * FROM mirror.changes ORDER BY seq')).rows;
  const before = await feed();
  await client.query(readFileSync(new URL(`${NAMES[until]}/migration.sql`, FOLDER), 'utf8'));
  expect(before).toHaveLength(3);
  expect(await feed()).toEqual(before);
});

test('inserts that were fed as one piece read as before, once other changes may be', async () => {
  await open(emptyDatabase);
  const until = NAMES.indexOf('20261122230000_whole_batches');
  for (const name of NAMES.slice(0, until)) await client.query(readFileSync(new URL(`${name}/migration.sql`, FOLDER), 'utf8'));
  await client.query(
    `INSERT INTO muster.change_batches
       (size, first_seq, environment, company_id, resource, changed_at, inserted, inserted_ids, inserted_starts, inserted_lengths)
     VALUES (2, 1, 'test', gen_random_uuid(), 'cats', '2026-01-02', '[{"a":1},{"b":2}]', '{x,y}', '{2,10}', '{7,7}'),
            (1, 3, 'test', gen_random_uuid(), 'cats', '2026-01-02', NULL, '{z}', '{2}', '{7}'),
            (1, 4, 'test', gen_random_uuid(), 'cats', '2026-01-03', NULL, NULL, NULL, NULL);
     INSERT INTO muster.changes (batch_id, position, record_id, op, data) VALUES (3, 0, 'x', 'update', '{"a":3}')`,
  );
  const feed = async () => (await client.query('SELECT * FROM mirror.changes ORDER BY seq')).rows;
  const before = await feed();
  await client.query(readFileSync(new URL(`${NAMES[until]}/migration.sql`, FOLDER), 'utf8'));
  expect(before).toMatchObject([{ op: 'insert', data: { a: 1 } }, { data: { b: 2 } }, { id: 'z', data: null }, { op: 'update' }]);
  expect(await feed()).toEqual(before);
});

test('a ledger keeps its ids where they get rows of their own, also a page that is committed meanwhile', async () => {
  await open(emptyDatabase);
  const until = NAMES.indexOf('20261122180000_page_keys');
  for (const name of NAMES.slice(0, until)) await client.query(readFileSync(new URL(`${name}/migration.sql`, FOLDER), 'utf8'));
  const addPage = `INSERT INTO muster.page_contents (environment, company_id, resource, digest, ids, keys, texts)
     SELECT 'test', gen_random_uuid(), 'cats', '', ARRAY[n::text, 'b'], decode('0' || n, 'hex'), '' FROM generate_series(1, 3) n`;
  await client.query(addPage);
  const worker = new pg.Client(database.url);
  await worker.connect();
  await worker.query(`BEGIN; ${addPage}`);
  const migrated = client.query(readFileSync(new URL(`${NAMES[until]}/migration.sql`, FOLDER), 'utf8'));
  const blocked = `SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  await waitFor(async () => (await worker.query(blocked)).rowCount === 1);
  const { rows: before } = await worker.query('SELECT company_id, ids, keys FROM muster.page_contents ORDER BY id');
  await worker.query('COMMIT');
  await migrated;
  const { rows: after } = await client.query(
    'SELECT k.company_id, k.ids, k.keys FROM muster.page_contents c JOIN muster.page_keys k ON k.id = c.keys_id ORDER BY c.id',
  );
  expect(before).toHaveLength(6);
  expect(after).toEqual(before);
  await client.query(
    `INSERT INTO muster.page_keys (environment, company_id, resource, ids, keys) VALUES ('test', gen_random_uuid(), 'cats', '{}', '')`,
  );
  await worker.end();
});

test('its record is the one that Prisma itself keeps', async () => {
  await open(testDatabase);
  const { rows } = await client.query('SELECT * FROM _prisma_migrations ORDER BY migration_name');
  expect(rows).toEqual(
    NAMES.map((name) => ({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      checksum: createHash('sha256')
        .update(readFileSync(new URL(`${name}/migration.sql`, FOLDER)))
        .digest('hex'),
      finished_at: expect.any(Date),
      migration_name: name,
      logs: null,
      rolled_back_at: null,
      started_at: expect.any(Date),
      applied_steps_count: 1,
    })),
  );
  const columns = await client.query(
    `SELECT column_name || ' ' || data_type || coalesce('(' || character_maximum_length || ')', '') || ' ' || is_nullable AS shape
     FROM information_schema.columns WHERE table_name = '_prisma_migrations' ORDER BY ordinal_position`,
  );
  expect(columns.rows.map((row) => row.shape)).toEqual([
    'id character varying(36) NO',
    'checksum character varying(64) NO',
    'finished_at timestamp with time zone YES',
    'migration_name character varying(255) NO',
    'logs text YES',
    'rolled_back_at timestamp with time zone YES',
    'started_at timestamp with time zone NO',
    'applied_steps_count integer NO',
  ]);
});

test('of four processes at once one applies each migration, and none fails', async () => {
  await open(emptyDatabase);
  const results = await Promise.all(Array.from({ length: 4 }, () => migrate(database.url, logger)));
  expect(results.flatMap(({ applied }) => applied).toSorted()).toEqual(NAMES);
});

test('a migration that fails is undone as a whole', async () => {
  await open(emptyDatabase);
  await client.query('CREATE SCHEMA muster; CREATE TABLE muster.audit ()'); // in the way of the first migration, far down
  await expect(migrate(database.url, logger)).rejects.toMatchObject({
    code: 'migration_failed',
    message: expect.stringMatching(new RegExp(`${FIRST}.*audit`)),
  });
  const { rows } = await client.query(`SELECT to_regclass('mirror.employees') AS employees, to_regclass('muster.runs') AS runs`);
  expect(rows).toEqual([{ employees: null, runs: null }]);
  await client.query('DROP SCHEMA muster CASCADE');
  expect(await migrate(database.url, logger)).toEqual({ applied: NAMES });
});

test('a version that cannot run alongside a newer one applies nothing, and says which one to start', async () => {
  await open(testDatabase);
  const [last] = NAMES.slice(-1);
  await client.query('DELETE FROM _prisma_migrations WHERE migration_name = $1', [last]);
  await client.query(`UPDATE muster.compatibility SET needs = '99990101000000_newer'`);
  await expect(migrate(database.url, logger)).rejects.toMatchObject({
    code: 'process_outdated',
    message: expect.stringContaining('99990101000000_newer'),
  });
  expect(await pendingMigrations(client)).toEqual([last]);
});

test('no migration was edited that has been released', () => {
  const released = readFileSync(new URL('released.sha256', FOLDER), 'utf8').trim().split('\n');
  const files = NAMES.map((name) => {
    const sql = readFileSync(new URL(`${name}/migration.sql`, FOLDER));
    return `${createHash('sha256').update(sql).digest('hex')}  ${name}`;
  });
  expect(files).toEqual(expect.arrayContaining(released));
});

test('tables of lists that were there before get room for records that change, and no other table', async () => {
  await open(testDatabase);
  await client.query(`CREATE TABLE mirror.absences (LIKE mirror.employees INCLUDING ALL); CREATE TABLE mirror.notes (id text);
    CREATE TABLE mirror.roomy (LIKE mirror.employees INCLUDING ALL) WITH (fillfactor = 70)`);
  await client.query(`DELETE FROM _prisma_migrations WHERE migration_name = '20261123080000_room_for_updates'`);
  await migrate(database.url, logger);
  const { rows } = await client.query(
    `SELECT relname, reloptions[1] AS option FROM pg_class WHERE relnamespace = 'mirror'::regnamespace AND reloptions IS NOT NULL ORDER BY 1`,
  );
  expect(rows.map(({ relname, option }) => `${relname} ${option}`)).toEqual([
    'absences fillfactor=90',
    'departments fillfactor=90',
    'employees fillfactor=90',
    'roomy fillfactor=70',
  ]);
});

test('a migration that was edited after it was applied is refused', async () => {
  await open(testDatabase);
  await client.query('UPDATE _prisma_migrations SET checksum = md5(checksum) WHERE migration_name = $1', [FIRST]);
  await expect(migrate(database.url, logger)).rejects.toMatchObject({
    code: 'migration_failed',
    message: expect.stringContaining(`${FIRST} differs`),
  });
});

test('a migration that another tool began and did not finish is refused, until it is marked as rolled back', async () => {
  await open(testDatabase);
  await client.query('DROP SCHEMA muster CASCADE; DROP SCHEMA mirror CASCADE; DROP SCHEMA warehouse CASCADE');
  await client.query('DELETE FROM _prisma_migrations WHERE migration_name <> $1', [FIRST]);
  await client.query('UPDATE _prisma_migrations SET finished_at = NULL');
  await expect(migrate(database.url, logger)).rejects.toMatchObject({
    code: 'migration_failed',
    message: expect.stringContaining(`prisma migrate resolve --rolled-back ${FIRST}`),
  });
  expect(await pendingMigrations(client)).toEqual(NAMES);

  await client.query('UPDATE _prisma_migrations SET rolled_back_at = now()');
  expect(await migrate(database.url, logger)).toEqual({ applied: NAMES });
});

test('a migration of a newer version is let be', async () => {
  await open(testDatabase);
  await client.query(
    `INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name) VALUES ('newer', 'x', now(), '29990101000000_newer')`,
  );
  expect(await migrate(database.url, logger)).toEqual({ applied: [] });
  expect(await pendingMigrations(client)).toEqual([]);
});

test('a database that is not there, and a server that is not there, are told apart', async () => {
  await open(emptyDatabase);
  const elsewhere = new URL(database.url);
  elsewhere.pathname = 'no_such_database';
  await expect(migrate(elsewhere.href, logger)).rejects.toMatchObject({
    code: 'invalid_configuration',
    message: expect.stringContaining('does not exist; create it first (createdb)'),
  });
  elsewhere.port = '1';
  await expect(migrate(elsewhere.href, logger)).rejects.toMatchObject({ code: 'database_unavailable' });
});

test.each([
  ['a table', 'CREATE SCHEMA mirror; CREATE TABLE mirror.employees (a int)', '"employees" already exists'],
  ['a view', 'CREATE SCHEMA warehouse; CREATE VIEW warehouse.columns AS SELECT 1 AS a', '"columns" already exists'],
  ['a sequence', 'CREATE SCHEMA muster; CREATE SEQUENCE muster.runs', '"runs" already exists'],
  ['a type', 'CREATE SCHEMA mirror; CREATE TYPE mirror.companies AS (a int)', '"companies" already exists'],
])('%s of somebody else under a name of ours is named, and not touched', async (_, made, said) => {
  await open(emptyDatabase);
  await client.query(made);
  await expect(migrate(database.url, logger)).rejects.toMatchObject({
    code: 'migration_failed',
    message: expect.stringMatching(
      new RegExp(`${said}, and Muster did not make it. What stands there was not touched. Give Muster a database`),
    ),
  });
  const { rows } = await client.query<{ theirs: number }>(
    `SELECT count(*)::int AS theirs FROM pg_class WHERE oid = to_regclass($1) AND relkind::text = ANY($2)`,
    [/\w+\.\w+/.exec(made)![0], ['r', 'v', 'S', 'c']],
  );
  expect(rows).toEqual([{ theirs: 1 }]);
});

test('migrations of another application in the same table are its own affair', async () => {
  await open(testDatabase);
  await client.query(
    `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('1', 'x', '20200101_theirs', now()), ('2', 'x', '20990101_theirs', NULL)`,
  );
  expect(await migrate(database.url, logger)).toEqual({ applied: [] });
  expect(await pendingMigrations(client)).toEqual([]);
});
