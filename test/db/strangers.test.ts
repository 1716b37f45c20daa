import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { grantReading } from '../../src/db/schema/reader-rights.js';
import { grantRuntime } from '../../src/db/schema/runtime-rights.js';
import { removeOldChanges } from '../../src/db/tables/change-batches.js';
import { NamedLocks } from '../../src/db/tables/named-locks.js';
import { SweepLock } from '../../src/db/tables/sweep-lock.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { learn, mirrorRecords } from '../warehouse/warehouse-fixture.js';

// Roles with every right that Muster gives, and one with none, try to have something done by the owner of the database, and to stop Muster.

const logger = pino({ level: 'silent' });
const SCHEMAS = ['muster', 'mirror', 'warehouse'];
const ROLES = ['reader', 'analyst', 'runtime', 'stranger'] as const;
const suffix = randomBytes(4).toString('hex');
const nameOf = (role: string) => `muster_${role}_${suffix}`;

let database: TestDatabase;
let owner: string;

beforeAll(async () => {
  database = await testDatabase();
  const { pool } = database.db;
  for (const role of ROLES) await pool.query(`CREATE ROLE ${nameOf(role)} LOGIN PASSWORD '${suffix}'`);
  // Older servers let everybody make something in `public`, and so do databases that were upgraded from one.
  await pool.query('GRANT CREATE ON SCHEMA public TO PUBLIC');
  const company = await onboard(database.db);
  for (const n of [1, 2]) {
    await mirrorRecords(database.db, company, [
      { id: 'a', hired: '2024-05-01', at: '2024-05-01T10:00:00Z', pay: n, on: true, at_home: { n } },
    ]);
    await pool.query(`UPDATE muster.change_batches SET changed_at = now() - interval '31 days' WHERE ${n === 1}`);
    await removeOldChanges(database.db, 30);
  }
  await learn(database.db);
  await grantReading(database.url, nameOf('reader'));
  await grantReading(database.url, nameOf('analyst'), ['warehouse']);
  await grantRuntime(database.url, nameOf('runtime'));
  owner = (await pool.query<{ name: string }>('SELECT current_user::text AS name')).rows[0]!.name;
});

afterAll(async () => {
  await database.close();
  const admin = new pg.Client(inject('postgres').url);
  await admin.connect();
  for (const role of ROLES) await admin.query(`DROP OWNED BY ${nameOf(role)}; DROP ROLE ${nameOf(role)}`);
  await admin.end();
});

async function as<T>(role: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const url = new URL(database.url);
  url.username = nameOf(role);
  url.password = suffix;
  const client = new pg.Client(url.href);
  await client.connect();
  return work(client).finally(() => client.end());
}

test('no function of any schema runs as its owner', async () => {
  const { rows } = await database.db.pool.query(
    `SELECT p.oid::regprocedure::text AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE prosecdef AND nspname NOT IN ('pg_catalog', 'information_schema')`,
  );
  expect(rows).toEqual([]);
});

/** Types that functions and views of ours name, under the names by which somebody could take their place. */
const TYPES = [
  'text',
  'jsonb',
  'jsonpath',
  'bool',
  'int2',
  'int4',
  'int8',
  'numeric',
  'date',
  'timestamp',
  'timestamptz',
  'interval',
  'uuid',
  'bytea',
];

/** Has whatever of the session's own objects is used instead of another say for whom, which no rollback takes back. */
async function layTraps(client: pg.Client): Promise<Set<string>> {
  const used = new Set<string>();
  client.on('notice', ({ message }) => void (message?.startsWith('used by ') && used.add(message.slice('used by '.length))));
  await client.query(`
    CREATE FUNCTION pg_temp.use(v anyelement) RETURNS boolean LANGUAGE plpgsql AS $$
      BEGIN RAISE NOTICE 'used by %', current_user; RETURN true; END $$`);
  for (const type of TYPES) {
    await client.query(`CREATE DOMAIN pg_temp.${type} AS pg_catalog.${type} CHECK (pg_temp.use(VALUE))`);
    for (const operator of ['=', '<', '>', '<>', '||', '+', '-'])
      await client.query(`
        CREATE OR REPLACE FUNCTION pg_temp.operate(a pg_catalog.${type}, b pg_catalog.${type}) RETURNS pg_catalog.bool LANGUAGE plpgsql
          AS 'BEGIN RETURN pg_temp.use(1); END';
        CREATE OPERATOR pg_temp.${operator} (LEFTARG = pg_catalog.${type}, RIGHTARG = pg_catalog.${type}, FUNCTION = pg_temp.operate)`);
    // A value of a type of their own, which is cast where one of ours is asked for.
    await client.query(`
      CREATE TYPE pg_temp.own_${type} AS ENUM ('a');
      CREATE FUNCTION pg_temp.cast_${type}(v pg_temp.own_${type}) RETURNS pg_catalog.${type} LANGUAGE plpgsql AS 'BEGIN PERFORM pg_temp.use(1); RETURN NULL; END';
      CREATE CAST (pg_temp.own_${type} AS pg_catalog.${type}) WITH FUNCTION pg_temp.cast_${type} AS IMPLICIT`);
  }
  const { rows } = await client.query<{ name: string }>(
    `SELECT DISTINCT quote_ident(relname) AS name FROM pg_class WHERE relnamespace = ANY($1::regnamespace[]) AND relkind IN ('r', 'v')`,
    [SCHEMAS],
  );
  for (const { name } of rows) await client.query(`CREATE VIEW pg_temp.${name} AS SELECT pg_temp.use(1)`);
  return used;
}

/** A value of every type that a function of ours takes. */
const VALUES: Readonly<Record<string, string>> = {
  text: `'employees'::pg_catalog.text`,
  'timestamp with time zone': `pg_catalog.now() - pg_catalog.make_interval(days => 40)`,
  jsonb: `'{}'::pg_catalog.jsonb`,
  jsonpath: `'$'::pg_catalog.jsonpath`,
  bigint: '1::pg_catalog.int8',
  integer: '1::pg_catalog.int4',
  boolean: 'true',
};

/** Their own type that is cast to it. */
const OWN: Readonly<Record<string, string>> = {
  text: 'pg_temp.own_text',
  'timestamp with time zone': 'pg_temp.own_timestamptz',
  jsonb: 'pg_temp.own_jsonb',
  bigint: 'pg_temp.own_int8',
};

describe.each(ROLES)('a %s', (role) => {
  test('has nothing of its own run as the owner, by whatever it may call or read', async () => {
    const { rows: callable } = await database.db.pool.query<{ name: string; types: string[] }>(
      `SELECT format('%I.%I', pronamespace::regnamespace, proname) AS name, ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) AS t) AS types
       FROM pg_proc p WHERE pronamespace = ANY($1::regnamespace[]) AND prokind = 'f' AND prorettype <> 'trigger'::regtype`,
      [SCHEMAS],
    );
    const { rows: readable } = await database.db.pool.query<{ name: string }>(
      `SELECT format('%I.%I', relnamespace::regnamespace, relname) AS name FROM pg_class c WHERE relnamespace = ANY($1::regnamespace[]) AND relkind IN ('r', 'v')`,
      [SCHEMAS],
    );
    expect(callable.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['warehouse.require_kept', 'warehouse.employees_as_of']),
    );
    const answered = await as(role, async (client) => {
      const used = await layTraps(client);
      let done = 0;
      const attempt = (query: string) =>
        client.query(query).then(
          () => (done += 1),
          () => {},
        );
      for (const { name, types } of callable) {
        await attempt(`SELECT * FROM ${name}(${types.map((type) => VALUES[type] ?? `NULL::${type}`).join(', ')})`);
        await attempt(`SELECT * FROM ${name}(${types.map((type) => `'a'::${OWN[type] ?? type}`).join(', ')})`);
      }
      for (const { name } of readable) await attempt(`SELECT * FROM ${name} LIMIT 10`);
      used.delete(nameOf(role));
      expect([...used]).toEqual([]);
      return done;
    });
    // Otherwise nothing has been tried.
    if (role !== 'stranger') expect(answered).toBeGreaterThan(5);
  });

  test('neither ends nor sees what the owner does', async () => {
    const { rows } = await database.db.pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await as(role, async (client) => {
      await expect(client.query(`SELECT pg_terminate_backend(${rows[0]!.pid})`)).rejects.toMatchObject({ code: '42501' });
      await expect(client.query(`SET ROLE ${owner}`)).rejects.toMatchObject({ code: '42501' });
      const { rows: seen } = await client.query(
        `SELECT 1 FROM pg_stat_activity WHERE usename = $1 AND query <> '<insufficient privilege>'`,
        [owner],
      );
      expect(seen).toEqual([]);
      if (role !== 'runtime') await expect(client.query('TABLE muster.tokens')).rejects.toMatchObject({ code: '42501' });
      for (const statement of [
        'CREATE TABLE muster.mine ()',
        'CREATE TABLE warehouse.mine ()',
        'ALTER TABLE mirror.employees ADD mine int',
      ])
        await expect(client.query(statement)).rejects.toMatchObject({ code: '42501' });
    });
  });
});

/** The schemas that docs/security.md lets a role read, all of what is in them. */
const READABLE: Readonly<Record<(typeof ROLES)[number], readonly string[]>> = {
  reader: ['mirror', 'warehouse'],
  analyst: ['warehouse'],
  runtime: ['mirror', 'muster', 'warehouse'],
  stranger: [],
};

test.each(ROLES)('a %s reads the schemas that the document says, and nothing of the others', async (role) => {
  const { rows } = await database.db.pool.query<{ schema: string; name: string }>(
    `SELECT relnamespace::regnamespace::text AS schema, format('%I.%I', relnamespace::regnamespace, relname) AS name FROM pg_class c
     WHERE relnamespace = ANY($1::regnamespace[]) AND relkind IN ('r', 'v') ORDER BY 1, 2`,
    [SCHEMAS],
  );
  expect(new Set(rows.map(({ schema }) => schema))).toEqual(new Set(SCHEMAS));
  await as(role, async (client) => {
    for (const { schema, name } of rows) {
      const read = client.query(`SELECT FROM ${name} LIMIT 1`).then(
        () => 'read',
        ({ code }: { code: string }) => code,
      );
      expect([name, await read]).toEqual([name, READABLE[role].includes(schema) ? 'read' : '42501']);
    }
  });
});

test('the role of the processes changes rows, and makes, alters and drops nothing of ours', async () => {
  await as('runtime', async (client) => {
    expect((await client.query('UPDATE mirror.employees SET deleted_at = deleted_at')).rowCount).toBeGreaterThan(0);
    for (const statement of [
      'DROP TABLE muster.tokens',
      'DROP VIEW warehouse.employees',
      'DROP FUNCTION warehouse.require_kept',
      'CREATE OR REPLACE VIEW warehouse.employees AS SELECT 1',
      'CREATE FUNCTION warehouse.mine() RETURNS int LANGUAGE sql AS $$SELECT 1$$',
      'ALTER TABLE muster.tokens OWNER TO CURRENT_USER',
      'TRUNCATE muster._prisma_migrations',
    ])
      await expect(client.query(statement), statement).rejects.toMatchObject({
        code: expect.stringMatching(/^42(501|809|P01|883)$/),
      });
  });
});

test('a stranger reads no large object of the owner, and wakes nobody by a notification', async () => {
  const { pool } = database.db;
  const { rows } = await pool.query<{ id: number }>(`SELECT lo_from_bytea(0, 'a secret') AS id`);
  await as('stranger', async (client) => {
    await expect(client.query('SELECT lo_get($1)', [rows[0]!.id])).rejects.toMatchObject({ code: '42501' });
    await expect(client.query('SELECT lo_unlink($1)', [rows[0]!.id])).rejects.toMatchObject({ code: '42501' });
    await client.query(`NOTIFY muster, 'end'`);
  });
  await pool.query('SELECT lo_unlink($1)', [rows[0]!.id]);
});

test('a stranger who takes every advisory lock, and listens, stops nothing', async () => {
  await as('stranger', async (client) => {
    for (const name of ['muster.issues', 'muster.certificates', 'muster onboarding', 'a'])
      await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [name]);
    for (const id of [72707370, 72707371]) await client.query('SELECT pg_advisory_lock($1)', [id]);
    await client.query('LISTEN muster; SELECT lo_create(0)');
    await expect(client.query('BEGIN; LOCK TABLE muster.locks IN ACCESS SHARE MODE')).rejects.toMatchObject({ code: '42501' });
    await client.query('ROLLBACK');
    const { db } = database;
    for (const name of ['issues', 'certificates'] as const)
      expect(await inTransaction(db, (tx) => new SweepLock(name, systemClock, logger).take(tx))).toBe(true);
    expect(await new NamedLocks(db.pool).run(['a'], async () => 'done')).toEqual({ result: 'done' });
    const company = await onboard(db);
    await mirrorRecords(db, company, [{ id: 'b', extra: 'a column that is new' }]);
    const { rows } = await db.pool.query('SELECT extra FROM warehouse.employees WHERE company_id = $1', [company.companyId]);
    expect(rows).toEqual([{ extra: 'a column that is new' }]);
  });
});
