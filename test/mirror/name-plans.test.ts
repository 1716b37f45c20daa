import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import type { Database } from '../../src/db/connection/database.js';
import { findCompanyNames } from '../../src/db/tables/companies.js';
import { Prisma } from '../../src/generated/prisma/client.js';
import { labelRecords } from '../../src/mirror/record-labels.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

// Names are looked up for a page of a list, among however many companies and records.

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly PlanNode[];
}

let database: TestDatabase;
let companies: CompanyKey[];
beforeAll(async () => {
  database = await testDatabase();
  const { pool } = database.db;
  await pool.query(
    `INSERT INTO mirror.companies (environment, company_id, name) SELECT 'test', gen_random_uuid(), 'Company ' || n FROM generate_series(1, 20000) n`,
  );
  await pool.query(
    `INSERT INTO mirror.employees (environment, company_id, id, data)
     SELECT environment, company_id, n::text, '{"firstName":"Åse"}' FROM (SELECT * FROM mirror.companies LIMIT 200) c, generate_series(1, 150) n`,
  );
  await pool.query('ANALYZE mirror.companies, mirror.employees');
  const { rows } = await pool.query<{ companyId: string }>(
    'SELECT DISTINCT company_id AS "companyId" FROM mirror.employees LIMIT 100',
  );
  companies = rows.map(({ companyId }) => ({ environment: 'test', companyId }));
});
afterAll(() => database.close());

/** A database that notes which tables its statements read from end to end. */
function watched(scanned: string[]): Database {
  const note = async (text: string, values: readonly unknown[]) => {
    const { rows } = await database.db.pool.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`EXPLAIN (FORMAT JSON) ${text}`, [
      ...values,
    ]);
    const walk = (node: PlanNode) => {
      if (node['Node Type'] === 'Seq Scan') scanned.push(node['Relation Name']!);
      node.Plans?.forEach(walk);
    };
    walk(rows[0]!['QUERY PLAN'][0].Plan);
  };
  const prisma = {
    async $queryRaw(strings: TemplateStringsArray, ...given: Prisma.Sql[]) {
      const query = Prisma.sql(strings, ...given);
      await note(query.text, query.values);
      return database.db.prisma.$queryRaw(query);
    },
    async $queryRawUnsafe(text: string, ...values: unknown[]) {
      await note(text, values);
      return database.db.prisma.$queryRawUnsafe(text, ...values);
    },
  };
  return { ...database.db, prisma } as never;
}

test('of a hundred companies each name is looked up', async () => {
  const scanned: string[] = [];
  expect((await findCompanyNames(watched(scanned), companies)).size).toBe(100);
  expect(scanned).toEqual([]);
});

test('of five hundred records each label is looked up', async () => {
  const scanned: string[] = [];
  const records = companies.flatMap((company) =>
    ['1', '2', '3', '4', '5'].map((id) => ({ ...company, resource: 'employees', id })),
  );
  expect((await labelRecords(watched(scanned), records)).size).toBe(500);
  expect(scanned).toEqual([]);
});
