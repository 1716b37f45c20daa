import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireRoom } from '../../../src/db/schema/require-room.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

/** A pool whose answers are PostgreSQL's own failures. */
const failing = (code: string) =>
  ({ query: () => Promise.reject(Object.assign(new Error('x'), { code })) }) as unknown as pg.Pool;

test('writes a temporary file, and leaves nothing behind', async () => {
  const { pool } = database.db;
  const files = async () => {
    const { rows } = await pool.query<{ files: number }>(
      'SELECT temp_files::int AS files FROM pg_stat_database WHERE datname = current_database()',
    );
    return rows[0]!.files;
  };
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const before = await files();
  await requireRoom(client);
  expect((await client.query('SHOW work_mem')).rows).not.toEqual([{ work_mem: '64kB' }]);
  await client.end(); // a session that ends has told of what it did
  expect(await files()).toBe(before + 1);
});

test('passes where temporary files are limited', async () => {
  const client = new pg.Client({ connectionString: database.url, options: '-c temp_file_limit=0' });
  await client.connect();
  await expect(requireRoom(client)).resolves.toBeUndefined();
  await client.end();
});

test.each([
  ['53100', 'database_full'],
  ['58030', 'database_failing'],
  ['57P01', 'database_unavailable'],
])('of %s throws %s', async (state, code) => {
  await expect(requireRoom(failing(state))).rejects.toMatchObject({ code });
});
