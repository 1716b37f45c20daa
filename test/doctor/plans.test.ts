import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Reader } from '../../src/db/connection/read-only.js';
import { findOverdue } from '../../src/db/tables/overdue.js';
import { Prisma } from '../../src/generated/prisma/client.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  const { pool } = database.db;
  await pool.query(`
    WITH companies AS (
      INSERT INTO muster.connections (environment, company_id, next_sync_at)
      SELECT 'production', gen_random_uuid(), now() + interval '1 hour' FROM generate_series(1, 10000) RETURNING environment, company_id),
    runs AS (
      INSERT INTO muster.runs (environment, company_id, trigger, mode, status)
      SELECT environment, company_id, 'nightly', 'full', 'succeeded' FROM companies, generate_series(1, 4))
    INSERT INTO muster.tokens (environment, company_id, refresh_token, refresh_at)
    SELECT environment, company_id, 'encrypted', now() + interval '1 hour' FROM companies`);
  await pool.query('ANALYZE');
});
afterAll(() => database.close());

test('an examination finds what is overdue by indexes', async () => {
  const plans: string[] = [];
  const explain = async (query: Prisma.Sql) => {
    const { rows } = await database.db.pool.query<{ 'QUERY PLAN': string }>(Prisma.sql`EXPLAIN ${query}`);
    plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    return { rows: [] };
  };
  await findOverdue({ query: explain } as unknown as Reader, { environments: ['production'] });
  expect(plans).toHaveLength(1);
  for (const table of ['runs', 'connections', 'tokens']) expect(plans[0]).not.toMatch(new RegExp(`Seq Scan on ${table}\\b`));
  expect(plans[0]!.match(/Index/g)!.length).toBeGreaterThanOrEqual(4);
});
