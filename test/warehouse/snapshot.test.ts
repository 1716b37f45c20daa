import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inSnapshot } from '../../src/warehouse/export/snapshot.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

test('an export that writes for long after its last row keeps its snapshot', async () => {
  const { pool } = database.db;
  const impatient = async () => {
    const client = await pool.connect();
    await client.query("SET idle_in_transaction_session_timeout = '20ms'");
    return client;
  };
  const work = inSnapshot({ connect: impatient as typeof pool.connect }, async (client) => {
    await client.query('SELECT');
    await sleep(200);
    return (await client.query<{ still: boolean }>('SELECT TRUE AS still')).rows;
  });
  expect(await work).toEqual([{ still: true }]);
});
