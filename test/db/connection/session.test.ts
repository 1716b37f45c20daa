import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, openCheckConnection, openDatabase } from '../../../src/db/connection/database.js';
import { readOnly } from '../../../src/db/connection/read-only.js';
import { prepareSession } from '../../../src/db/connection/session.js';
import { runStep } from '../../../src/db/connection/step.js';
import { inTransaction } from '../../../src/db/connection/transaction.js';
import { Prisma } from '../../../src/generated/prisma/client.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';
import { pooledSteps } from './pooled-steps.js';

// A DBA has given the database defaults under which Muster's statements would be slow, be cancelled, or mean something else.

const DEFAULTS = {
  jit: 'on',
  array_nulls: 'off',
  standard_conforming_strings: 'off',
  statement_timeout: '1s',
  transaction_timeout: '2s',
  idle_session_timeout: '3s',
  lock_timeout: '4s',
  TimeZone: 'Asia/Yekaterinburg',
};
const OURS = {
  jit: 'off',
  array_nulls: 'on',
  standard_conforming_strings: 'on',
  statement_timeout: '0',
  transaction_timeout: '0',
  idle_session_timeout: '0',
  lock_timeout: '10s',
  TimeZone: 'UTC',
};
/** `transaction_timeout` is unknown before PostgreSQL 17. */
const SHOWN = `SELECT jsonb_object_agg(name, setting) AS settings FROM pg_settings WHERE name IN (${Object.keys(OURS)
  .map((name) => `'${name}'`)
  .join(', ')})`;
type Shown = { settings: Record<string, string> };

let database: TestDatabase;
let db: Database;
let known: string[];
beforeAll(async () => {
  database = await testDatabase();
  const name = new URL(database.url).pathname.slice(1);
  const { rows } = await database.db.pool.query<{ name: string }>('SELECT name FROM pg_settings');
  known = Object.keys(DEFAULTS).filter((setting) => rows.some((row) => row.name === setting));
  for (const setting of known)
    await database.db.pool.query(`ALTER DATABASE ${name} SET ${setting} = '${DEFAULTS[setting as keyof typeof DEFAULTS]}'`);
  db = openDatabase({ url: database.url });
});
afterAll(async () => {
  await db.close();
  await database.close();
});

/** `pg_settings` gives times as bare numbers of milliseconds. */
function expected(settings: Record<string, string>): Record<string, string> {
  const plain = (value: string) => value.replace(/^(\d+)s$/, (_, seconds: string) => `${seconds}000`);
  return Object.fromEntries(known.map((name) => [name, plain(settings[name]!)]));
}

test('the database has these defaults', async () => {
  const client = new pg.Client(database.url);
  await client.connect();
  expect((await client.query<Shown>(SHOWN)).rows[0]!.settings).toEqual(expected(DEFAULTS));
  await client.end();
});

describe('what the statements of Muster rely on is set in', () => {
  test('the sessions of the pool', async () => {
    expect((await db.pool.query<Shown>(SHOWN)).rows[0]!.settings).toEqual(expected(OURS));
  });

  test('transactions', async () => {
    const [row] = await inTransaction(db, (tx) => tx.$queryRawUnsafe<Shown[]>(SHOWN));
    expect(row!.settings).toEqual(expected(OURS));
  });

  test('the sessions of steps', async () => {
    expect((await runStep<Shown>(db, Prisma.raw(SHOWN)))[0]!.settings).toEqual(expected(OURS));
  });

  test('the session that readiness asks', async () => {
    const pool = openCheckConnection(database.url);
    expect((await pool.query<Shown>(SHOWN)).rows[0]!.settings).toEqual(expected(OURS));
    await pool.end();
  });

  test('the session of an examination, which keeps its own short limits', async () => {
    const { rows } = await readOnly(database.url, (client) => client.query<Shown>(SHOWN));
    expect(rows[0]!.settings).toEqual(expected({ ...OURS, statement_timeout: '8s', lock_timeout: '2s' }));
  });

  test('a transaction behind a pooler, as far as it does not rest on a single statement', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    const [row] = await runStep<Shown>(pooledSteps(pool), Prisma.raw(SHOWN));
    const { jit, statement_timeout, transaction_timeout, idle_session_timeout, lock_timeout } = OURS;
    const brought = { jit, statement_timeout, transaction_timeout, idle_session_timeout, lock_timeout };
    expect(row!.settings).toEqual(expected({ ...DEFAULTS, ...brought }));
    expect((await pool.query<Shown>(SHOWN)).rows[0]!.settings).toEqual(expected(DEFAULTS));
    await pool.end();
  });
});

test('behind a pooler, a default that no transaction can mend is refused with the statement that mends it', async () => {
  const client = new pg.Client(database.url);
  await client.connect();
  // As behind a pooler: the number of the server's process is another.
  const pooled = new Proxy(client, { get: (target, key) => (key === 'processID' ? 1 : Reflect.get(target, key)) });
  await expect(prepareSession(pooled)).rejects.toThrow(/array_nulls \(now off\).*ALTER ROLE \w+ SET array_nulls = 'on';/);
  await client.end();
});

test('NULL in an array is stored as NULL, and a backslash as a backslash', async () => {
  const [row] = await db.prisma.$queryRaw<object[]>`SELECT (${['a', null, '\\']}::text[])[2] IS NULL AS none, '\\' AS slash`;
  expect(row).toEqual({ none: true, slash: '\\' });
});
