import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inTransaction } from '../../../src/db/connection/transaction.js';
import { SweepLock } from '../../../src/db/tables/sweep-lock.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

test('a sweep whose lock is never free says who has it, once a minute', async () => {
  const lines: { msg: string; lock: string; holders: { pid: number }[] }[] = [];
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  let now = 0;
  const lock = new SweepLock('issues', { monotonic: () => now }, logger);
  const take = () => inTransaction(database.db, (tx) => lock.take(tx));
  expect(await take()).toBe(true);

  const holder = await database.db.pool.connect();
  const { rows } = await holder.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  await holder.query(`BEGIN; SELECT 1 FROM muster.locks WHERE name = 'issues' FOR UPDATE`);
  expect(await take()).toBe(false);
  expect(lines).toEqual([]); // somebody is at it
  await holder.query(`UPDATE muster.locks SET taken_at = now() - interval '61 s' WHERE name = 'issues'; COMMIT`);
  await holder.query(`BEGIN; SELECT 1 FROM muster.locks WHERE name = 'issues' FOR UPDATE`);
  expect(await take()).toBe(false);
  expect(lines).toMatchObject([{ lock: 'issues', holders: [{ pid: rows[0]!.pid }], msg: expect.stringContaining('for 6') }]);
  now += 59_000;
  expect(await take()).toBe(false);
  now += 1_000;
  expect(await take()).toBe(false);
  expect(lines).toHaveLength(2);
  await holder.query('ROLLBACK');
  holder.release();
  expect(await take()).toBe(true);
});
