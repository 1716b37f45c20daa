import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { PIECE_ROWS } from '../../src/db/statements/in-pieces.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { approveHold } from '../../src/mirror/holds.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { onboard, openWalk } from './mirror-fixture.js';

// Two pieces and a part of a third.
const ROWS = 2 * PIECE_ROWS + 5;
const RECEIVED = 3;

let database: TestDatabase;
let company: CompanyKey;
let hold: string;
let walkId: string;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

/** A list of many records, of which a verified walk has received a few; the others are held. */
beforeEach(async () => {
  const { db } = database;
  company = await onboard(db);
  const { environment, companyId } = company;
  const { pool } = db;
  const values = [environment, companyId];
  await pool.query(
    `INSERT INTO mirror.employees (environment, company_id, id, data)
     SELECT $1, $2, n::text, jsonb_build_object('id', n) FROM generate_series(1, ${ROWS}) n`,
    values,
  );
  const walk = await openWalk(db, company);
  ({ walkId } = walk);
  await pool.query(
    `WITH keys AS (
       INSERT INTO muster.page_keys (environment, company_id, resource, ids, keys)
       SELECT $1, $2, 'employees', array_agg(n::text), '' FROM generate_series(1, ${RECEIVED}) n RETURNING id
     ), snapshot AS (
       INSERT INTO muster.page_snapshots (environment, company_id, resource, keys_id) SELECT $1, $2, 'employees', id FROM keys RETURNING id
     )
     INSERT INTO muster.walk_pages (walk_id, pass, page, snapshot_id) SELECT '${walkId}', 1, 0, id FROM snapshot`,
    values,
  );
  await pool.query(
    `INSERT INTO muster.rejected_records (walk_id, pass, page, position, reason, text)
     SELECT $1, 1, 0, n, 'no_id', 'e30=' FROM generate_series(1, ${ROWS}) n`,
    [walkId],
  );
  await pool.query('UPDATE muster.lists SET records = $3 WHERE environment = $1 AND company_id = $2', [...values, ROWS]);
  hold = randomUUID();
  const opened = { id: hold, ...company, resource: 'employees', runId: walk.runId, walkId, count: ROWS - RECEIVED, living: ROWS };
  await db.prisma.hold.create({ data: { ...opened, sample: [] } });
});

/** The batches that tell of deletions: none is larger than a piece. */
async function deletions(): Promise<{ sizes: number[]; ids: string[] }> {
  const { rows } = await database.db.pool.query<{ size: number; ids: string[] }>(
    `SELECT b.size, array_agg(c.record_id ORDER BY c.position) AS ids FROM muster.change_batches b JOIN muster.changes c ON c.batch_id = b.id
     WHERE b.environment = $1 AND b.company_id = $2 AND c.op = 'delete' GROUP BY b.id ORDER BY b.id`,
    [company.environment, company.companyId],
  );
  for (const { size, ids } of rows) expect(ids).toHaveLength(size);
  return { sizes: rows.map(({ size }) => size), ids: rows.flatMap(({ ids }) => ids) };
}

const idsFrom = (first: number) => Array.from({ length: ROWS - first + 1 }, (_, n) => String(first + n)).toSorted();

test('a hold of more than a piece is approved with every deletion once, in order, and right counts', async () => {
  await approveHold(database.db, hold);
  const { sizes, ids } = await deletions();
  expect(sizes).toEqual([PIECE_ROWS, PIECE_ROWS, 2]);
  expect(ids).toEqual(idsFrom(RECEIVED + 1));
  expect(await database.db.prisma.employee.count({ where: { ...company, deletedAt: null } })).toBe(RECEIVED);
  expect(await database.db.prisma.list.findFirstOrThrow({ where: company })).toMatchObject({ records: RECEIVED });
  expect(await database.db.prisma.walk.findUniqueOrThrow({ where: { id: walkId } })).toMatchObject({ deleted: ROWS - RECEIVED });
});

test('a list of more than a piece is rekeyed', async () => {
  expect(await rekeyList(database.db, { ...company, resource: 'employees' })).toBe(ROWS);
  const { sizes, ids } = await deletions();
  expect(sizes).toEqual([PIECE_ROWS, PIECE_ROWS, 5]);
  expect(ids).toEqual(idsFrom(1));
  expect(await database.db.prisma.list.findFirstOrThrow({ where: company })).toMatchObject({ records: 0 });
});

test('a company of more than a piece is removed, with the data of all of its changes', async () => {
  await approveHold(database.db, hold);
  await stampChanges(database.db);
  await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'admin', role: 'admin' }));
  const { sizes, ids } = await deletions();
  expect(Math.max(...sizes)).toBe(PIECE_ROWS);
  // The rows that were living at the end come last.
  expect(ids).toEqual([...idsFrom(RECEIVED + 1), '1', '2', '3']);
  const { prisma } = database.db;
  expect(await prisma.employee.count({ where: company })).toBe(0);
  expect(await prisma.pageSnapshot.count({ where: company })).toBe(0);
  expect(await prisma.pageKeys.count({ where: company })).toBe(0);
  expect(await prisma.walkPage.count({ where: { walkId } })).toBe(0);
  expect(await prisma.rejectedRecord.count({ where: { walkId } })).toBe(0);
  const { rows } = await database.db.pool.query(
    `SELECT count(*)::int AS kept FROM muster.changes c JOIN muster.change_batches b ON b.id = c.batch_id
     WHERE b.company_id = $1 AND c.data IS NOT NULL`,
    [company.companyId],
  );
  expect(rows).toEqual([{ kept: 0 }]);
});
