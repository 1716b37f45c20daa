import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import type pg from 'pg';
import { to } from 'pg-copy-streams';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isPassingTrouble } from '../../../src/db/connection/sql-state.js';
import { binaryRows } from '../../../src/db/statements/binary-rows.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

async function all(rows: ReturnType<typeof binaryRows>): Promise<(string | null)[][]> {
  const found: (string | null)[][] = [];
  for await (const row of rows) found.push(row.map((value) => value && value.toString('latin1')));
  return found;
}

test('rows of any size come as they are, NULL and empty ones too', async () => {
  const { pool } = database.db;
  expect(await all(binaryRows(pool, 'SELECT 1 WHERE false'))).toEqual([]);
  const query = `SELECT n, CASE WHEN n % 3 > 0 THEN decode(repeat('00ff10', n * n), 'hex') END, 'text' || n FROM generate_series(0, 300) n ORDER BY n`;
  let n = 0;
  for await (const [number, bytes, text] of binaryRows(pool, query)) {
    expect(number!.readInt32BE()).toBe(n);
    if (n % 3 > 0) expect(bytes!.equals(Buffer.alloc(3 * n * n, '00ff10', 'hex'))).toBe(true);
    else expect(bytes).toBeNull();
    expect(text!.toString()).toBe(`text${n}`);
    n += 1;
  }
  expect(n).toBe(301);
});

test('wherever the parts of the stream end, the rows are the same', async () => {
  const query = `SELECT n, NULL, repeat('x', n) FROM generate_series(0, 9) n`;
  const client = await database.db.pool.connect();
  const stream = await buffer(client.query(to(`COPY (${query}) TO STDOUT (FORMAT binary)`)));
  client.release();
  const expected = Array.from({ length: 10 }, (_, n) => [`\0\0\0${String.fromCharCode(n)}`, null, 'x'.repeat(n)]);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(stream.length), { maxLength: 40 }), async (cuts) => {
      const ends = [...cuts.toSorted((a, b) => a - b), stream.length];
      const parts = ends.map((end, n) => Buffer.from(stream.subarray(ends[n - 1] ?? 0, end))).filter(({ length }) => length > 0);
      const sender = { query: () => Readable.from(parts), release: () => {} };
      expect(await all(binaryRows({ connect: async () => sender } as unknown as pg.Pool, ''))).toEqual(expected);
    }),
    { numRuns: 500 },
  );
});

test('a query that fails says why, and one that is left early keeps no connection', async () => {
  const { pool } = database.db;
  await expect(all(binaryRows(pool, 'SELECT 1 / (n - 5000) FROM generate_series(1, 10000) n'))).rejects.toMatchObject({
    code: '22012',
  });
  for (let n = 0; n < 20; n += 1) {
    for await (const [number] of binaryRows(pool, 'SELECT generate_series(1, 1000000)')) {
      expect(number!.readInt32BE()).toBe(1);
      break;
    }
  }
  expect(pool.waitingCount).toBe(0);
  expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
});

test('a connection that breaks meanwhile is an error', async () => {
  const { pool } = database.db;
  const kill = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()`;
  const reading = (async () => {
    let isKilled = false;
    for await (const _ of binaryRows(pool, `SELECT generate_series(1, 1000000), repeat('x', 100)`)) {
      if (!isKilled) await pool.query(kill);
      isKilled = true;
    }
  })();
  await expect(reading).rejects.toThrow(/terminat/);
  expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
});

test('a connection that ends before the last row is database trouble, and never fewer rows', async () => {
  const { pool } = database.db;
  for (let round = 0; round < 12; round += 1) {
    const read = async () => {
      let rows = 0;
      for await (const [pid] of binaryRows(
        pool,
        // The last row does not come before the connection is ended, however late that is.
        `SELECT pg_backend_pid(), repeat('x', 2000), pg_sleep(CASE WHEN n = 400 THEN 60 ELSE 0.0005 END) FROM generate_series(1, 400) n`,
      )) {
        rows += 1;
        if (rows === 1 + round * 5) void pool.query('SELECT pg_terminate_backend($1)', [pid!.readInt32BE()]);
      }
    };
    await expect(read()).rejects.toSatisfy(isPassingTrouble);
  }
  // What came until then is cut anywhere.
  const stream = { query: () => Readable.from([Buffer.alloc(19)]), release: () => {} };
  await expect(all(binaryRows({ connect: async () => stream } as unknown as pg.Pool, ''))).rejects.toSatisfy(isPassingTrouble);
});
