import { afterAll, beforeAll, expect, test } from 'vitest';
import { executeBulk } from '../../src/db/bulk-statement.js';
import { inTransaction, type Transaction } from '../../src/db/transaction.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

let database: TestDatabase;
const within = <T>(work: (tx: Transaction) => Promise<T>) => inTransaction(database.db, work);

beforeAll(async () => {
  database = await testDatabase();
  await database.db.pool.query('CREATE TABLE kept (n int, big bigint, bytes bytea, texts text[], many bytea[], text text)');
});
afterAll(() => database.close());

test('values arrive as they are, in the transaction', async () => {
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, n) => n % 256));
  const texts = ['a', 'b "c\\,{}"', '', null, 'é😀'];
  const values = [7, 2n ** 60n, bytes.subarray(3), texts, [Buffer.from([0, 255]), null], null];
  const insert = 'INSERT INTO kept VALUES ($1, $2, $3, $4, $5, $6)';
  await expect(
    within(async (tx) => {
      expect(await executeBulk(tx, insert, values)).toBe(1);
      throw new Error('back');
    }),
  ).rejects.toThrow('back');
  await within((tx) => executeBulk(tx, insert, values));
  const { rows } = await database.db.pool.query('SELECT * FROM kept');
  expect(rows).toEqual([
    { n: 7, big: String(2n ** 60n), bytes: bytes.subarray(3), texts, many: [Buffer.from([0, 255]), null], text: null },
  ]);
});

test('a statement that fails leaves nothing behind, and other statements have their own values', async () => {
  await expect(within((tx) => executeBulk(tx, 'SELECT $1::int', ['x']))).rejects.toThrow('invalid input syntax');
  const key = '00000000-0000-4000-8000-000000000000';
  await within(async (tx) => {
    const both = await Promise.all([
      executeBulk(tx, 'UPDATE kept SET text = $1', ['bulk']),
      tx.$executeRaw`UPDATE kept SET text = text || ${key}`,
    ]);
    expect(both).toEqual([1, 1]);
  });
  const { rows } = await database.db.pool.query('SELECT text FROM kept');
  expect(rows).toEqual([{ text: `bulk${key}` }]);
});
