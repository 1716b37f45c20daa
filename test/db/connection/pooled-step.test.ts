import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runStep } from '../../../src/db/connection/step.js';
import { Prisma } from '../../../src/generated/prisma/client.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';
import { pooledSteps } from './pooled-steps.js';

const SETTINGS = Prisma.sql`SELECT current_setting('lock_timeout') AS lock, current_setting('idle_in_transaction_session_timeout') AS idle,
  pg_backend_pid() AS pid`;

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await testDatabase();
  // The server's own connection, as the next client of a pooler finds it.
  pool = new pg.Pool({ connectionString: database.url, max: 1 });
  pool.on('connect', (client) => void client.on('error', () => {}));
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

const take = (statement: Prisma.Sql) => runStep<{ pid: number }>(pooledSteps(pool), statement);
/** What the step finds, and what the next client of the same connection does. */
const settings = async () => (await take(SETTINGS))[0]!;
const settingsOfNext = async () => (await pool.query<{ pid: number }>(SETTINGS)).rows[0]!;

test('a step behind a pooler brings its timeouts along, and leaves none of them behind', async () => {
  expect(await settings()).toMatchObject({ lock: '10s', idle: '15s' });
  expect(await settingsOfNext()).toMatchObject({ lock: '0', idle: '0' });
});

test('is there once it is taken, and all of it is gone after an error', async () => {
  const { pid } = await settingsOfNext();
  const key = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
  const insert = (id: string, more = '1') => Prisma.sql`
    WITH added AS (INSERT INTO mirror.companies (environment, company_id) VALUES ('test', ${id}::uuid) RETURNING 1)
    SELECT ${Prisma.raw(more)} FROM added`;
  await take(insert(key(1)));
  await expect(take(insert(key(2), `1 / (random() * 0)::int`))).rejects.toMatchObject({ code: '22012' });
  const { rows } = await pool.query<{ id: string }>('SELECT company_id AS id FROM mirror.companies');
  expect(rows).toEqual([{ id: key(1) }]);
  expect(await settings()).toMatchObject({ lock: '10s', pid });
});

test('that loses its connection takes another the next time', async () => {
  const { pid } = await settings();
  await expect(take(Prisma.sql`SELECT pg_terminate_backend(pg_backend_pid())`)).rejects.toMatchObject({
    code: 'database_unavailable',
    details: { sql_state: '57P01' },
  });
  expect((await settings()).pid).not.toBe(pid);
});
