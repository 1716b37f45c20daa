import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runPooledStep } from '../../../src/db/connection/pooled-step.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';

const SETTINGS = `SELECT current_setting('lock_timeout') AS lock, current_setting('idle_in_transaction_session_timeout') AS idle,
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

const settings = async (asked: Promise<pg.QueryResult<{ pid: number }>>) => (await asked).rows[0]!;

test('a step behind a pooler brings its timeouts along, and leaves none of them behind', async () => {
  expect(await settings(runPooledStep(pool, { text: SETTINGS }))).toMatchObject({ lock: '10s', idle: '15s' });
  expect(await settings(pool.query(SETTINGS))).toMatchObject({ lock: '0', idle: '0' });
});

test('is there once it is taken, and all of it is gone after an error', async () => {
  const { pid } = await settings(pool.query(SETTINGS));
  const key = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
  const insert = (id: string, more = '1') => ({
    text: `WITH added AS (INSERT INTO mirror.companies (environment, company_id) VALUES ('test', $1) RETURNING 1) SELECT ${more} FROM added`,
    values: [id],
  });
  await runPooledStep(pool, insert(key(1)));
  await expect(runPooledStep(pool, insert(key(2), `1 / (random() * 0)::int`))).rejects.toMatchObject({ code: '22012' });
  const { rows } = await pool.query<{ id: string }>('SELECT company_id AS id FROM mirror.companies');
  expect(rows).toEqual([{ id: key(1) }]);
  expect(await settings(runPooledStep(pool, { text: SETTINGS }))).toMatchObject({ lock: '10s', pid });
});

test('that loses its connection takes another the next time', async () => {
  const { pid } = await settings(runPooledStep(pool, { text: SETTINGS }));
  await expect(runPooledStep(pool, { text: 'SELECT pg_terminate_backend(pg_backend_pid())' })).rejects.toMatchObject({
    code: '57P01',
  });
  expect((await settings(runPooledStep(pool, { text: SETTINGS }))).pid).not.toBe(pid);
});
