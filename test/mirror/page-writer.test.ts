import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Endpoint } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { sqlState } from '../../src/db/connection/sql-state.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';
import { onboard, openWalk, records, verifiedWalk, write, writeTogether } from './mirror-fixture.js';

let database: TestDatabase;
let company: CompanyKey;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  company = await onboard(database.db);
});

async function rows(): Promise<Record<string, string>> {
  const found = await database.db.pool.query<{ id: string; text: string; gone: boolean }>(
    `SELECT id, data::text AS text, deleted_at IS NOT NULL AS gone FROM mirror.employees WHERE company_id = $1 ORDER BY id`,
    [company.companyId],
  );
  return Object.fromEntries(found.rows.map(({ id, text, gone }) => [id, gone ? `(deleted) ${text}` : text]));
}

async function changes(): Promise<string[]> {
  await stampChanges(database.db);
  const found = await database.db.pool.query<{ op: string; id: string }>(
    `SELECT op, id FROM mirror.changes WHERE company_id = $1 ORDER BY seq`,
    [company.companyId],
  );
  return found.rows.map(({ op, id }) => `${op} ${id}`);
}

async function living(): Promise<number> {
  return (await database.db.prisma.list.findFirstOrThrow({ where: company })).records;
}

test('a commit that waits for its list while another worker takes it writes nothing', async () => {
  const walk = await openWalk(database.db, company);
  await write(database.db, walk, records(2));
  const other = await database.db.pool.connect();
  try {
    await other.query('BEGIN');
    await other.query('UPDATE muster.lists SET epoch = epoch + 1 WHERE company_id = $1', [company.companyId]);
    const late = write(database.db, walk, [...records(1), ...records(5, 10)], { number: 1 }).catch((error: unknown) => error);
    await waitFor(async () => {
      const { rows: waiting } = await other.query(
        'SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))',
      );
      return waiting.length > 0;
    });
    // The new holder writes one of the records, too.
    await other.query(
      `INSERT INTO mirror.employees (environment, company_id, id, data) VALUES ('test', $1, 'r10', '{"id":"r10"}')`,
      [company.companyId],
    );
    await other.query('COMMIT');
    expect(await late).toMatchObject({ code: 'fenced' });
  } finally {
    other.release();
  }
  expect(Object.keys(await rows())).toEqual(['r1', 'r10', 'r2']);
  expect(await changes()).toEqual(['insert r1', 'insert r2']);
  expect(await database.db.prisma.walkPage.count({ where: { walkId: walk.walkId } })).toBe(1);
});

test('a record is inserted, left alone, updated, deleted and restored', async () => {
  await verifiedWalk(database.db, company, ['{"id":"a","n":1}', '{"id":"b","n":1}']);
  await verifiedWalk(database.db, company, ['{"n":1,"id":"a"}', '{"id":"b","n":2}']);
  expect(await rows()).toEqual({ a: '{"n": 1, "id": "a"}', b: '{"n": 2, "id": "b"}' });
  expect(await verifiedWalk(database.db, company, ['{"id":"b","n":2}'])).toMatchObject({ deleted: 1, held: 0 });
  expect(await rows()).toEqual({ a: '(deleted) {"n": 1, "id": "a"}', b: '{"n": 2, "id": "b"}' });
  expect(await living()).toBe(1);
  await verifiedWalk(database.db, company, ['{"id":"a","n":1}', '{"id":"b","n":2}']);
  expect(await changes()).toEqual(['insert a', 'insert b', 'update b', 'delete a', 'restore a']);
  expect(await living()).toBe(2);
});

test.each(['employees', 'absences'])('a record of %s that changes stays in its page of the table', async (resource) => {
  const { db } = database;
  await ensureMirrorTables(db, { endpoints: [{ resource } as Endpoint], get: () => undefined });
  const text = (n: number, version: number) => JSON.stringify({ id: `id-${n}`, version, filling: 'x'.repeat(300) });
  const before = Array.from({ length: 200 }, (_, n) => text(n, 1));
  await write(db, await openWalk(db, company, resource), before);
  // A few in every page.
  const after = before.map((same, n) => (n % 20 === 0 ? text(n, 2) : same));
  const pages = async () => {
    const found = await db.pool.query<{ id: string; page: string }>(
      `SELECT id, split_part(ctid::text, ',', 1) AS page FROM mirror."${resource}" WHERE company_id = $1 ORDER BY id`,
      [company.companyId],
    );
    return found.rows;
  };
  const stood = await pages();
  expect(new Set(stood.map(({ page }) => page)).size).toBeGreaterThan(5);
  await write(db, await openWalk(db, company, resource), after);
  expect(await pages()).toEqual(stood);
});

test.each([
  ['changed', `UPDATE mirror.employees SET data = '{"by":"hand"}' WHERE id = 'b' AND company_id = $1`],
  ['removed', `DELETE FROM mirror.employees WHERE id = 'b' AND company_id = $1`],
])('a row that is %s by hand in the moment of the commit stops it, and the next attempt mends it', async (_how, sql) => {
  await verifiedWalk(database.db, company, ['{"id":"a","n":1}', '{"id":"b","n":1}']);
  const walk = await openWalk(database.db, company);
  const texts = ['{"id":"a","n":2}', '{"id":"b","n":2}'];
  const hand = await database.db.pool.connect();
  try {
    await hand.query('BEGIN');
    await hand.query(sql, [company.companyId]);
    // Taken as it comes: it may come before anybody waits for it.
    const refused = write(database.db, walk, texts).then(
      () => 'written',
      (error: Error) => error.message,
    );
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    await waitFor(async () => (await database.db.pool.query(waiting)).rows.length > 0);
    await hand.query('COMMIT');
    expect(await refused).toContain('Not every row of employees that differs could be updated');
  } finally {
    hand.release();
  }
  await write(database.db, walk, texts);
  expect(await rows()).toEqual({ a: '{"n": 2, "id": "a"}', b: '{"n": 2, "id": "b"}' });
});

test('a record said to be new is not looked up, and is refused where it is not', async () => {
  const walk = await openWalk(database.db, company);
  await write(database.db, walk, ['{"id":"a"}', '{"id":"b"}'], { newFrom: 0 });
  await write(database.db, walk, ['{"id":"b","n":2}', '{"id":"c"}'], { number: 1, newFrom: 1 });
  expect(await changes()).toEqual(['insert a', 'insert b', 'update b', 'insert c']);
  const wrong = write(database.db, walk, ['{"id":"c","n":2}'], { number: 2, newFrom: 0 });
  await expect(wrong).rejects.toSatisfy((error) => sqlState(error) === '23505');
  await write(database.db, walk, ['{"id":"c","n":2}'], { number: 2 });
  expect(await changes()).toEqual(['insert a', 'insert b', 'update b', 'insert c', 'update c']);
});

/** Ids of each page in the ledger. */
async function ledger(): Promise<string[][]> {
  const found = await database.db.pool.query<{ ids: string[] }>(
    `SELECT k.ids FROM muster.walk_pages p JOIN muster.page_snapshots c ON c.id = p.snapshot_id JOIN muster.page_keys k ON k.id = c.keys_id WHERE c.company_id = $1 ORDER BY page`,
    [company.companyId],
  );
  return found.rows.map(({ ids }) => ids);
}

test('pages that share a commit are told apart in the ledger, and what they have in common is written once', async () => {
  const walk = await openWalk(database.db, company);
  await writeTogether(database.db, walk, [
    { number: 0, newFrom: 0, texts: ['{"id":"a"}', '{"id":"b","n":1}'] },
    { number: 1, newFrom: 1, texts: ['{"id":"b","n":2}', '{"id":"c"}', '{"id":"d"}'] },
    { number: 2, newFrom: 0, texts: [] },
    { number: 3, newFrom: 1, texts: ['{"id":"d"}', '{"id":"e"}'] },
    { number: 4, newFrom: 0, texts: ['{"id":"f"}'] },
  ]);
  expect(await ledger()).toEqual([['a', 'b'], ['b', 'c', 'd'], [], ['d', 'e'], ['f']]);
  expect(await changes()).toEqual(['insert a', 'insert b', 'insert c', 'insert d', 'insert e', 'insert f']);
  expect((await rows())['b']).toBe('{"n": 2, "id": "b"}');
  expect(await living()).toBe(6);
});

test('a record that an earlier page of the commit brought is not looked up either', async () => {
  const walk = await openWalk(database.db, company);
  const insert = `INSERT INTO mirror.employees (environment, company_id, id, data) VALUES ('test', $1, 'b', '{}')`;
  await database.db.pool.query(insert, [company.companyId]);
  const pages = [
    { number: 0, newFrom: 0, texts: ['{"id":"a"}', '{"id":"b"}'] },
    { number: 1, newFrom: 1, texts: ['{"id":"b"}', '{"id":"c"}'] },
  ];
  await expect(writeTogether(database.db, walk, pages)).rejects.toSatisfy((error) => sqlState(error) === '23505');
  await writeTogether(
    database.db,
    walk,
    pages.map((page) => ({ ...page, newFrom: undefined })),
  );
  expect(await changes()).toEqual(['insert a', 'update b', 'insert c']);
});

test('ids are kept whatever stands in them', async () => {
  const ids = ['a"b', 'c\\d', '\\', '"', 'NULL', 'null', '{x,y}', ' ', 'e,f', "g'h", 'ø €', '\n'];
  const walk = await openWalk(database.db, company);
  await write(
    database.db,
    walk,
    ids.map((id) => JSON.stringify({ id })),
  );
  expect(Object.keys(await rows()).toSorted()).toEqual(ids.toSorted());
  expect(await ledger()).toEqual([ids]);
});

test('every digit is kept', async () => {
  const text = '{"id":"a","n":12345678901234567890.10,"e":1e-7,"z":0.10}';
  const walk = await openWalk(database.db, company);
  await write(database.db, walk, [text]);
  expect(await rows()).toEqual({ a: '{"e": 0.0000001, "n": 12345678901234567890.10, "z": 0.10, "id": "a"}' });
});

test('of two records with one id in a page the last one wins, in one change', async () => {
  const walk = await openWalk(database.db, company);
  await write(database.db, walk, ['{"id":"a","n":1}', '{"id":"b"}', '{"id":"a","n":2}']);
  expect(await rows()).toEqual({ a: '{"n": 2, "id": "a"}', b: '{"id": "b"}' });
  expect(await changes()).toEqual(['insert b', 'insert a']);
});

test('the counts of the walk and the list follow', async () => {
  await verifiedWalk(database.db, company, records(20));
  const walk = await openWalk(database.db, company);
  await write(database.db, walk, ['{"id":"r1","n":0}', ...records(4, 2)]);
  await write(database.db, walk, records(3, 30), { number: 1, received: 8, total: 8 });
  expect(await database.db.prisma.walk.findUniqueOrThrow({ where: { id: walk.walkId } })).toMatchObject({
    pages: 2,
    received: 8,
    inserted: 3,
    updated: 1,
    unchanged: 4,
    totalRecords: 8,
  });
  expect(await living()).toBe(23);
});

test.each([
  ['the list was taken by another walk', 'UPDATE muster.lists SET epoch = epoch + 1 WHERE company_id = $1'],
  ['the walk was opened by another worker', 'UPDATE muster.walks SET epoch = epoch + 1 WHERE company_id = $1'],
  ['the run was ended meanwhile', `UPDATE muster.walks SET status = 'cancelled' WHERE company_id = $1`],
  ['the company was removed', 'DELETE FROM muster.lists WHERE company_id = $1'],
])('nothing is written once %s', async (_, sql) => {
  const walk = await openWalk(database.db, company);
  await write(database.db, walk, records(1));
  await database.db.pool.query(sql, [company.companyId]);
  await expect(write(database.db, walk, records(2), { number: 1 })).rejects.toMatchObject({ code: 'fenced' });
  expect(Object.keys(await rows())).toEqual(['r1']);
  expect(await database.db.prisma.walkPage.count({ where: { walkId: walk.walkId } })).toBe(1);
});
