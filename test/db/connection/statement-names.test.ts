import { expect, test } from 'vitest';
import { statementNames } from '../../../src/db/connection/database.js';
import { testDatabase } from '../../support/database.js';

test('a statement keeps its name, and 500 have one', () => {
  const nameOf = statementNames();
  const names = Array.from({ length: 501 }, (_, n) => nameOf({ sql: `SELECT ${n}` }));
  expect(new Set(names.slice(0, 500)).size).toBe(500);
  expect(names[500]).toBe('');
  expect(nameOf({ sql: 'SELECT 7' })).toBe(names[7]);
});

test('a connection prepares a statement once, and runs what it has prepared', async () => {
  const { db, close } = await testDatabase();
  const runs = await db.prisma.$transaction(async (tx) => {
    for (const n of [1, 2, 3]) await tx.$executeRaw`SELECT ${n}::int`;
    return tx.$queryRaw`SELECT generic_plans + custom_plans AS runs FROM pg_prepared_statements`;
  });
  expect(runs).toContainEqual({ runs: 3n });
  await close();
});
