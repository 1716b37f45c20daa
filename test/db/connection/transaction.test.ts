import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { MusterError } from '../../../src/core/errors.js';
import { openDatabase } from '../../../src/db/connection/database.js';
import { sqlState } from '../../../src/db/connection/sql-state.js';
import { inTransaction, type Transaction } from '../../../src/db/connection/transaction.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';
import { waitFor } from '../../support/wait-for.js';

const KEY = { environment: 'test', companyId: '00000000-0000-4000-8000-000000000001' };
let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterAll(() => database.close());

beforeEach(() => database.db.prisma.company.deleteMany());

test('commits what the work did, and gives what it returned', async () => {
  const name = await inTransaction(database.db, async (tx) => (await tx.company.create({ data: { ...KEY, name: 'Ada' } })).name);
  expect(name).toBe('Ada');
  expect(await database.db.prisma.company.count()).toBe(1);
});

test('undoes everything when the work throws, and rethrows the same error', async () => {
  const error = new MusterError('fenced', 'another worker took over');
  const work = async (tx: Transaction) => {
    await tx.company.create({ data: KEY });
    throw error;
  };
  await expect(inTransaction(database.db, work)).rejects.toBe(error);
  expect(await database.db.prisma.company.count()).toBe(0);
});

test('a connection that idles is kept for two minutes, and then closed', async () => {
  const db = openDatabase({ url: database.url });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const connection = async () => (await db.pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]!.pid;
    const first = await connection();
    await vi.advanceTimersByTimeAsync(119_000);
    expect(await connection()).toBe(first);
    await vi.advanceTimersByTimeAsync(121_000);
    expect(await connection()).not.toBe(first);
  } finally {
    vi.useRealTimers();
    await db.close();
  }
});

test('every session keeps time in UTC, and gives up locks and idle transactions', async () => {
  const [settings] = await inTransaction(
    database.db,
    (tx) => tx.$queryRaw<object[]>`SELECT current_setting('TimeZone') AS zone, current_setting('lock_timeout') AS lock,
      current_setting('idle_in_transaction_session_timeout') AS idle`,
  );
  expect(settings).toEqual({ zone: 'UTC', lock: '10s', idle: '15s' });
});

test('options in the URL are added to ours', async () => {
  const url = new URL(database.url);
  url.searchParams.set('options', '-c lock_timeout=777 -c search_path=mirror');
  const db = openDatabase({ url: url.href, applicationName: 'with options' });
  const { rows } = await db.pool.query(
    `SELECT current_setting('TimeZone') AS zone, current_setting('lock_timeout') AS lock, current_schema AS schema,
            current_setting('application_name') AS name`,
  );
  await db.close();
  expect(rows).toEqual([{ zone: 'UTC', lock: '777ms', schema: 'mirror', name: 'with options' }]);
});

test('times go in and come out unshifted', async () => {
  const at = new Date('2026-03-29T01:30:00.123Z'); // does not exist in many local times
  await database.db.prisma.company.create({ data: { ...KEY, deletedAt: at } });
  expect((await database.db.prisma.company.findFirstOrThrow()).deletedAt).toEqual(at);
  const { rows } = await database.db.pool.query('SELECT deleted_at FROM mirror.companies');
  expect(rows).toEqual([{ deleted_at: at }]);
});

test.each([
  ['while it runs a statement', 'SELECT pg_sleep(60)::text', true],
  ['between two statements', 'SELECT 1', false],
])('a connection that is cut %s is database_unavailable, and the next transaction works', async (_, statement, isRunning) => {
  const cut = inTransaction(database.db, async (tx) => {
    const [self] = await tx.$queryRaw<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
    const kill = () => database.db.pool.query('SELECT pg_terminate_backend($1, 5000)', [self?.pid]);
    const runs = async () => {
      const running = 'SELECT FROM pg_stat_activity WHERE pid = $1 AND query = $2 AND wait_event = $3';
      return (await database.db.pool.query(running, [self?.pid, statement, 'PgSleep'])).rowCount === 1;
    };
    if (!isRunning) await kill();
    await Promise.all([tx.$queryRawUnsafe(statement), isRunning && waitFor(runs).then(kill)]);
  });
  await expect(cut).rejects.toMatchObject({ code: 'database_unavailable', retryable: true });
  expect(await inTransaction(database.db, (tx) => tx.$queryRaw`SELECT 1 AS up`)).toEqual([{ up: 1 }]);
});

test('a connection that is cut while nobody uses it goes unnoticed', async () => {
  const { rows } = await database.db.pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const before = database.db.pool.totalCount;
  const other = openDatabase({ url: database.url });
  await other.pool.query('SELECT pg_terminate_backend($1, 5000)', [rows[0]?.pid]);
  await other.close();
  // The news of its end may take a moment to reach the pool.
  await waitFor(() => database.db.pool.totalCount === before - 1);
  expect(await inTransaction(database.db, (tx) => tx.$queryRaw`SELECT 1 AS up`)).toEqual([{ up: 1 }]);
});

test('a server that is not there is database_unavailable, for a transaction and for a connection of the pool', async () => {
  const url = new URL(database.url);
  url.port = '1';
  const db = openDatabase({ url: url.href });
  await expect(inTransaction(db, (tx) => tx.$queryRaw`SELECT 1`)).rejects.toMatchObject({ code: 'database_unavailable' });
  await db.close();
  await db.close();
});

test('a statement that PostgreSQL refuses keeps its SQLSTATE', async () => {
  const work = (tx: Transaction) => tx.$queryRaw`SELECT 1 / 0`;
  const error = await inTransaction(database.db, work).catch((e: unknown) => e);
  expect(error).not.toBeInstanceOf(MusterError);
  expect(sqlState(error)).toBe('22012');
});
