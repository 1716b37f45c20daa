import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readOnly } from '../../src/db/connection/read-only.js';
import { checkAge } from '../../src/doctor/age.js';
import { checkDatabase } from '../../src/doctor/database.js';
import { DatabaseAccess } from '../../src/doctor/database-access.js';
import { checkTransactions } from '../../src/doctor/transactions.js';
import { emptyDatabase, type TestDatabase, testDatabase } from '../support/database.js';
import { anyPort } from '../support/port.js';
import { findings, found } from './findings.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

const NEEDS = { mirrorTables: ['employees', 'departments'], workerConcurrency: 4, carriesQueue: true };
const ages = (access: DatabaseAccess) => checkAge({ access, environments: ['test'], lists: undefined });

test('a database that is right is said to be, with what it is', async () => {
  const lines = await found(checkDatabase({ ...NEEDS, access: new DatabaseAccess(database) }));
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^ok: PostgreSQL \d+.* answers in \d+ ms: database muster_test_\w+, encoding UTF8, role \w+$/),
      'ok: no pooler stands between',
      expect.stringMatching(
        /^ok: \d+ of 197 connections are in use; a process of Muster takes 27 at most, so that 7 processes have room$/,
      ),
      'ok: every migration is applied',
      expect.stringMatching(/^ok: the role \w+ has every right that api and workers need$/),
    ]),
  );
  // What the tests' own server does without, for their speed.
  expect(lines.filter((line) => !line.startsWith('ok'))).toEqual([
    'warning: fsync is off: a power cut may destroy the database',
    'warning: full_page_writes is off: a power cut may destroy the database',
    'warning: synchronous_commit is off: a power cut may lose the newest tokens, and each company of them must authorize again',
  ]);
});

test('defaults of a DBA that the sessions override are named', async () => {
  const name = new URL(database.url).pathname.slice(1);
  await database.db.pool.query(`ALTER DATABASE ${name} SET statement_timeout = '1s'`);
  await database.db.pool.query(`ALTER DATABASE ${name} SET idle_session_timeout = '1min'`);
  const lines = await found(checkDatabase({ ...NEEDS, access: new DatabaseAccess(database) }));
  await database.db.pool.query(`ALTER DATABASE ${name} RESET ALL`);
  // A server with LLVM has JIT on besides.
  expect(lines.find((line) => line.includes('override'))).toMatch(
    /^ok: Muster's sessions override idle_session_timeout = 60000ms, (jit = on, )?statement_timeout = 1000ms$/,
  );
});

test.each([
  ['log_statement', 'mod'],
  ['log_min_duration_statement', '250ms'],
  ['log_parameter_max_length_on_error', '1kB'],
])('a server that logs values of statements (%s) is told of', async (name, value) => {
  const { pool } = database.db;
  const lines = async () =>
    (await found(checkDatabase({ ...NEEDS, access: new DatabaseAccess(database) }))).filter((line) => line.includes('log gets'));
  expect(await lines()).toEqual([]);
  const role = (await pool.query<{ role: string }>('SELECT quote_ident(current_user) AS role')).rows[0]!.role;
  const place = `ROLE ${role} IN DATABASE ${new URL(database.url).pathname.slice(1)}`;
  await pool.query(`ALTER ${place} SET ${name} = '${value}'`);
  expect(await lines()).toEqual([expect.stringContaining(`(${name} = ${value})`)]);
  await pool.query(`ALTER ${place} SET log_parameter_max_length = 0`);
  expect(await lines()).toHaveLength(name.endsWith('on_error') ? 1 : 0);
  await pool.query(`ALTER ${place} RESET ALL`);
});

test('too few connections for one process are a problem, with what to raise', async () => {
  const access = new DatabaseAccess(database);
  const all = await findings(checkDatabase({ ...NEEDS, access, workerConcurrency: 100 }));
  expect(all.find(({ found: text }) => text.includes('connections'))).toMatchObject({
    level: 'problem',
    next: expect.stringContaining('max_connections') as string,
  });
});

test('it can write nothing', async () => {
  const write = readOnly(database.url, (db) => db.query('CREATE TABLE muster.written (a int)'));
  await expect(write).rejects.toThrow(/PostgreSQL/);
  const { rows } = await database.db.pool.query(`SELECT to_regclass('muster.written') AS made`);
  expect(rows).toEqual([{ made: null }]);
});

test('a database without tables is no fault: there is nothing to look at yet', async () => {
  const empty = await emptyDatabase();
  const access = new DatabaseAccess(empty);
  const lines = await found(checkDatabase({ ...NEEDS, access }), ages(access));
  expect(lines).toContainEqual(expect.stringMatching(/^warning: \d+ migrations pending, 20261120000000_init first$/));
  expect(lines.at(-1)).toBe('ok: nothing to look at: the database has no tables of Muster yet');
  await empty.close();
});

test('migrations of a newer version, and one that another tool has left unfinished, are told', async () => {
  const { pool } = database.db;
  const look = async () =>
    (await found(checkDatabase({ ...NEEDS, access: new DatabaseAccess(database) }))).filter((line) => line.includes('igration'));
  await pool.query(
    `INSERT INTO public._prisma_migrations (id, checksum, finished_at, migration_name) VALUES ('newer', 'x', now(), '99990101000000_newer')`,
  );
  const warning = 'warning: the database has 1 migration of a newer version (99990101000000_newer)';
  expect(await look()).toEqual([warning]);
  const needs = (name: string) => pool.query('UPDATE muster.compatibility SET needs = $1', [name]);
  await needs('99990101000000_newer');
  expect(await look()).toEqual([
    warning,
    expect.stringMatching(/^problem: .*newer version of Muster \(migration 99990101000000_newer\)/),
  ]);
  await needs('20261120000000_init');
  const finish = (moment: string) =>
    pool.query(`UPDATE public._prisma_migrations SET finished_at = ${moment} WHERE migration_name = '20261120000000_init'`);
  await finish('NULL');
  expect(await look()).toEqual([expect.stringMatching(/^problem: Migration 20261120000000_init was begun by another tool/)]);
  await finish('now()');
  await pool.query(`DELETE FROM public._prisma_migrations WHERE id = 'newer'`);
  expect(await look()).toEqual(['ok: every migration is applied']);
});

test('a role without rights is told what it lacks, and how it gets that', async () => {
  const role = `doctor_${Math.random().toString(36).slice(2, 10)}`;
  await database.db.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'doctor-role-password'`);
  const url = new URL(database.url);
  [url.username, url.password] = [role, 'doctor-role-password'];
  const access = new DatabaseAccess({ url: url.href });
  const lines = await found(checkDatabase({ ...NEEDS, access }), ages(access));
  expect(lines.filter((line) => line.startsWith('problem'))).toEqual([
    expect.stringMatching(new RegExp(`the role ${role} may not look into this database\\. Run .muster migrate --grant-runtime`)),
    expect.stringMatching(new RegExp(`the role ${role} may not look into this database`)),
  ]);
  await database.db.pool.query(`DROP ROLE ${role}`);
});

test('a table that somebody keeps locked does not hang it', async () => {
  const client = await database.db.pool.connect();
  await client.query('BEGIN; LOCK TABLE muster.tokens IN ACCESS EXCLUSIVE MODE');
  expect(await found(ages(new DatabaseAccess(database)))).toEqual([
    'warning: not looked at: Another session holds a lock on a table of Muster, so that it cannot be read.',
  ]);
  await client.query('ROLLBACK');
  client.release();
});

describe('a database that cannot be reached', () => {
  let silent: Server;
  beforeAll(async () => {
    // Takes connections and never says a word.
    silent = createServer((socket) => void socket.on('error', () => {})).listen(0, '127.0.0.1');
    await once(silent, 'listening');
  });
  afterAll(() => void silent.close());

  const password = 'doctor-canary-password';
  const at = (port: number) => new DatabaseAccess({ url: `postgres://somebody:${password}@127.0.0.1:${port}/muster` });

  test.each([
    ['is away', () => anyPort(), /^problem: PostgreSQL at 127\.0\.0\.1:\d+ cannot be used: the connection was refused/],
    [
      'hangs',
      () => (silent.address() as AddressInfo).port,
      /^problem: PostgreSQL at .* cannot be used: there was no answer in time/,
    ],
    ['refuses the password', () => Number(new URL(database.url).port), /^problem: DATABASE_URL: the server at .* refuses/],
  ])('%s: said once, in words, and the others say that they could not look', async (_how, port, line) => {
    const access = at(port());
    const lines = await found(checkDatabase({ ...NEEDS, access }), checkTransactions(access), ages(access));
    expect(lines).toEqual([
      expect.stringMatching(line),
      'warning: not looked at: the database cannot be reached',
      'warning: not looked at: the database cannot be reached',
    ]);
    expect(lines.join()).not.toContain(password);
  });
});

test('a transaction that is open for long is named by its process, with how to end it, and without its statement', async () => {
  const client = new pg.Client({ connectionString: database.url, application_name: 'a-report' });
  await client.connect();
  await client.query(`BEGIN; SELECT 'doctor-canary-in-a-statement'`);
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const pid = rows[0]!.pid;
  const all = await findings(checkTransactions(new DatabaseAccess(database), 0));
  expect(all).toContainEqual({
    check: 'transactions',
    level: 'warning',
    found: expect.stringMatching(
      new RegExp(`^process ${pid} of \\w+ \\(a-report\\) has a transaction open for \\d+ s, idle: vacuum cleans up nothing`),
    ) as string,
    next: `End the program, or its session: SELECT pg_terminate_backend(${pid})`,
  });
  expect(JSON.stringify(all)).not.toContain('doctor-canary-in-a-statement');
  await client.end();
  expect(await found(checkTransactions(new DatabaseAccess(database)))).toEqual(['ok: none has been open for 5 minutes']);
});
