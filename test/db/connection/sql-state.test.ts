import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MusterError } from '../../../src/core/errors.js';
import {
  explainDatabaseError,
  isPassingTrouble,
  sqlState,
  translateDatabaseError,
} from '../../../src/db/connection/sql-state.js';
import { inTransaction } from '../../../src/db/connection/transaction.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';

const KEY = { environment: 'test', companyId: '00000000-0000-4000-8000-000000000001' };
let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterAll(() => database.close());

const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('sqlState', () => {
  test('of a plain query', async () => {
    expect(sqlState(await failure(database.db.pool.query('SELECT 1 / 0')))).toBe('22012');
  });

  test('of a raw query through Prisma', async () => {
    expect(sqlState(await failure(database.db.prisma.$queryRaw`SELECT 1 / 0`))).toBe('22012');
    expect(sqlState(await failure(database.db.prisma.$queryRaw`SELECT ${'{"nul":"\\u0000"}'}::jsonb`))).toBe('22P05');
  });

  test('of a model query that Prisma gives a code of its own', async () => {
    await database.db.prisma.company.create({ data: KEY });
    const error = await failure(database.db.prisma.company.create({ data: KEY }));
    expect(error).toMatchObject({ code: 'P2002' });
    expect(sqlState(error)).toBe('23505');
  });

  test.each([
    undefined,
    null,
    'ECONNREFUSED',
    new Error('P2002'),
    { code: 'P2002' },
    { code: 'EPERM' },
    { code: 'EPIPE' },
    { code: 12345 },
    new MusterError('fenced', 'x'),
  ])('of %s there is none', (value) => {
    expect(sqlState(value)).toBeUndefined();
  });
});

describe('translateDatabaseError', () => {
  const coded = (code: string, more = {}) => Object.assign(new Error('x'), { code, ...more });

  test.each(['08006', '08P01', '53300', '57P01', '57P02', '57P03', '25P03', 'P1001', 'P1017', 'P2028'])(
    '%s means unavailable',
    (code) => {
      const error = coded(code);
      expect(translateDatabaseError(error)).toMatchObject({ code: 'database_unavailable', retryable: true, cause: error });
    },
  );

  test.each([
    ['53100', 'database_full'],
    ['53000', 'database_failing'],
    ['53200', 'database_failing'],
    ['53400', 'database_failing'],
    ['58030', 'database_failing'],
  ])('%s is %s', (code, name) => {
    const error = coded(code);
    expect(translateDatabaseError(error)).toMatchObject({
      code: name,
      retryable: true,
      cause: error,
      details: { sql_state: code },
    });
    // A run that goes on at once would meet the same for ever: it waits for its next attempt.
    expect(isPassingTrouble(translateDatabaseError(error))).toBe(false);
  });

  test('so does a socket that failed, but no file that is missing', () => {
    expect(translateDatabaseError(coded('ECONNREFUSED', { syscall: 'connect' }))).toMatchObject({ code: 'database_unavailable' });
    const missing = coded('ENOENT', { syscall: 'open' });
    expect(translateDatabaseError(missing)).toBe(missing);
  });

  test.each([
    coded('23505'),
    coded('40P01'),
    coded('55P03'),
    coded('P2002'),
    new Error('x'),
    new MusterError('fenced', 'x'),
    undefined,
  ])('%s stays what it is', (error) => {
    expect(translateDatabaseError(error)).toBe(error);
  });

  test('a statement that took too long, or was cancelled, is statement_cancelled', async () => {
    const slow = inTransaction(database.db, async (tx) => {
      await tx.$executeRaw`SET LOCAL statement_timeout = 1`;
      await tx.$queryRaw`SELECT pg_sleep(60)::text`;
    });
    const error = await failure(slow);
    expect(error).toMatchObject({ code: 'statement_cancelled', retryable: true, details: { sql_state: '57014' } });
    // A run that goes on at once would meet the same limit for ever: it waits for its next attempt.
    expect(isPassingTrouble(error)).toBe(false);
  });
});

describe('explainDatabaseError', () => {
  test.each(['40001', '40P01', '55P03'])('%s is database_busy', (code) => {
    const error = Object.assign(new Error('x'), { code });
    expect(explainDatabaseError(error)).toMatchObject({ code: 'database_busy', retryable: true, cause: error });
  });

  test('everything else is as translateDatabaseError has it', () => {
    expect(explainDatabaseError(Object.assign(new Error('x'), { code: '57P01' }))).toMatchObject({
      code: 'database_unavailable',
    });
    const error = new Error('x');
    expect(explainDatabaseError(error)).toBe(error);
  });
});
