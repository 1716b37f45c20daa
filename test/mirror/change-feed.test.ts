import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { openDatabase } from '../../src/db/connection/database.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { removeOldChanges, stampChanges } from '../../src/db/tables/change-batches.js';
import { eraseCompany } from '../../src/erasure/mirror-erasure.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { tapStatements } from '../support/statement-tap.js';
import { waitFor } from '../support/wait-for.js';
import { onboard, openWalk, records, verifiedWalk, write } from './mirror-fixture.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

/** Returns a session that ends with the test, even if the test fails: closing the database would wait for it. */
async function foreignSession() {
  const session = await database.db.pool.connect();
  onTestFinished(() => session.release(true));
  return session;
}

async function read(after: bigint, limit: number): Promise<{ seq: bigint; company: string; id: string; op: string }[]> {
  const { rows } = await database.db.pool.query<{ seq: string; company: string; id: string; op: string }>(
    'SELECT seq, company_id AS company, id, op FROM mirror.changes WHERE seq > $1 ORDER BY seq LIMIT $2',
    [after, limit],
  );
  return rows.map((row) => ({ ...row, seq: BigInt(row.seq) }));
}

test('a consumer beside four writers and a foreign transaction sees each of 10,000 changes once, in the order of each list', async () => {
  const foreign = await foreignSession();
  await foreign.query('BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0');
  await foreign.query('SELECT txid_current()');
  const writers = await Promise.all(Array.from({ length: 4 }, () => onboard(database.db)));
  let writing = writers.length;
  const work = writers.map(async (company, writer) => {
    const walk = await openWalk(database.db, company);
    for (let page = 0; page < 50; page += 1) {
      await write(database.db, walk, records(50, page * 50 + 1), { number: page });
      if ((page + writer) % 7 === 0) await stampChanges(database.db);
    }
    writing -= 1;
  });
  const seen: { seq: bigint; company: string; id: string }[] = [];
  let after = 0n;
  for (let last = false; ; ) {
    await stampChanges(database.db);
    const rows = await read(after, 137);
    seen.push(...rows);
    after = rows.at(-1)?.seq ?? after;
    if (last && rows.length === 0) break;
    last = writing === 0 && rows.length === 0;
  }
  await Promise.all(work);
  await foreign.query('ROLLBACK');
  expect(seen).toHaveLength(10_000);
  expect(new Set(seen.map(({ company, id }) => `${company}/${id}`)).size).toBe(10_000);
  expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, n) => BigInt(n + 1)));
  for (const { companyId } of writers) {
    const ids = seen.filter(({ company }) => company === companyId).map(({ id }) => id);
    expect(ids).toEqual(records(2_500).map((text) => (JSON.parse(text) as { id: string }).id));
  }
});

test('two stampers at once give no number twice', async () => {
  const company = await onboard(database.db);
  for (let n = 0; n < 10; n += 1) {
    await verifiedWalk(database.db, company, records(3, n * 3 + 1), { share: 1, rows: 1_000 });
    await Promise.all([stampChanges(database.db), stampChanges(database.db), stampChanges(database.db)]);
  }
  const { rows } = await database.db.pool.query<{ count: string; distinct: string; max: string }>(
    'SELECT count(*), count(DISTINCT seq) AS distinct, max(seq) FROM mirror.changes',
  );
  expect(rows[0]!.distinct).toBe(rows[0]!.count);
  expect(rows[0]!.max).toBe(rows[0]!.count);
});

test('old changes go by whole batches, and numbers go on from where they were', async () => {
  const company = await onboard(database.db);
  await verifiedWalk(database.db, company, records(5));
  await stampChanges(database.db);
  const last = (await read(0n, 100_000)).at(-1)!.seq;
  await database.db.pool.query(`UPDATE muster.change_batches SET changed_at = now() - interval '31 days'`);
  await verifiedWalk(database.db, company, records(6));
  await removeOldChanges(database.db, 30);
  await stampChanges(database.db);
  expect(await read(0n, 100)).toMatchObject([{ seq: last + 1n, id: 'r6', op: 'insert' }]);
});

test('erasing a company takes its data out of the feed, and tells of every living row', async () => {
  const [company, other] = [await onboard(database.db), await onboard(database.db)];
  await verifiedWalk(database.db, company, records(3));
  await verifiedWalk(database.db, company, ['{"id":"r1","n":0}', '{"id":"r4"}', ...records(1, 2)]);
  await verifiedWalk(database.db, company, records(2));
  await verifiedWalk(database.db, other, records(3));
  await inTransaction(database.db, (tx) => eraseCompany(tx, company));
  await stampChanges(database.db);
  const fed = 'insert r1, insert r2, insert r3, update r1, insert r4, delete r3, update r1, delete r4, delete r1, delete r2';
  expect((await dataOf(company)).join(', ')).toBe(fed);
  expect(await dataOf(other)).toEqual(['insert r1 with data', 'insert r2 with data', 'insert r3 with data']);
  expect(await database.db.prisma.employee.count({ where: company })).toBe(0);
  expect(await database.db.prisma.company.count({ where: company })).toBe(0);
});

test('erasing a company beside retention waits for it, and neither is given up', async () => {
  const company = await onboard(database.db);
  await verifiedWalk(database.db, company, records(3));
  await verifiedWalk(database.db, company, records(2), { share: 1, rows: 1_000 });
  await stampChanges(database.db);
  const { pool } = database.db;
  await pool.query(`UPDATE muster.change_batches SET changed_at = now() - interval '31 days'`);
  const waiters = async () =>
    (await pool.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)).rows
      .length;
  const other = await foreignSession();
  await other.query('BEGIN');
  // Texts stand in the batch itself, and deletions are rows behind theirs: the two stop here, each with a part of the locks.
  await other.query('SELECT 1 FROM muster.change_batches WHERE company_id = $1 AND texts IS NOT NULL FOR UPDATE', [
    company.companyId,
  ]);
  const retention = removeOldChanges(database.db, 30);
  await waitFor(async () => (await waiters()) === 1);
  const erasure = inTransaction(database.db, (tx) => eraseCompany(tx, company));
  await waitFor(async () => (await waiters()) === 2);
  await other.query('COMMIT');
  expect(await Promise.allSettled([retention, erasure])).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }]);
  await stampChanges(database.db);
  expect(await dataOf(company)).toEqual(['delete r1', 'delete r2']);
});

test('many batches are numbered piece by piece, and a large one whole', async () => {
  const { pool } = database.db;
  const company = await onboard(database.db);
  const sizes = [...Array.from({ length: 2_500 }, () => 2), 60_000, 120_000, 1, 1];
  const { rows: before } = await pool.query<{ next: number }>('SELECT next_seq::int AS next FROM muster.change_sequence');
  await pool.query(
    `INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
     SELECT size, 'test', $2, 'employees', now() FROM unnest($1::int[]) WITH ORDINALITY AS s(size, n) ORDER BY n`,
    [sizes, company.companyId],
  );
  await Promise.all([stampChanges(database.db), stampChanges(database.db)]);
  const { rows } = await pool.query<{ first: number; size: number }>(
    'SELECT first_seq::int AS first, size FROM muster.change_batches WHERE company_id = $1 ORDER BY id',
    [company.companyId],
  );
  let next = before[0]!.next;
  expect(rows.map(({ first, size }) => [first, size])).toEqual(sizes.map((size) => [(next += size) - size, size]));
  const { rows: pieces } = await pool.query(
    'SELECT count(*)::int AS batches FROM muster.change_batches WHERE company_id = $1 GROUP BY xmin::text ORDER BY min(first_seq)',
    [company.companyId],
  );
  expect(pieces).toEqual([{ batches: 1_000 }, { batches: 1_000 }, { batches: 502 }, { batches: 2 }]);
});

interface PlanNode {
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** How many rows its nodes have handled. */
function workOf(node: PlanNode): number {
  const own = (node['Actual Rows'] + (node['Rows Removed by Join Filter'] ?? 0)) * node['Actual Loops'];
  return (node.Plans ?? []).reduce((sum, each) => sum + workOf(each), own);
}

test('batches that were counted as none while they were written are numbered with as little work', async () => {
  const own = await testDatabase();
  const tap = await tapStatements(own.url);
  const tapped = openDatabase({ url: tap.url });
  const writer = await own.db.pool.connect();
  const writeBatches = async () => {
    await writer.query('BEGIN');
    await writer.query(
      `INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
       SELECT 1, 'test', gen_random_uuid(), 'employees', now() FROM generate_series(1, 20000)`,
    );
    await own.db.pool.query('ANALYZE muster.change_batches');
    await writer.query('COMMIT');
  };
  await writeBatches();
  await stampChanges(tapped);
  const { rows } = await writer.query('SELECT count(*)::int, max(first_seq)::int FROM muster.change_batches');
  expect(rows).toEqual([{ count: 20_000, max: 20_000 }]);

  await writer.query('TRUNCATE muster.change_batches CASCADE');
  await writeBatches();
  const lock = tap.statements.findIndex(({ text }) => text.includes('muster.change_sequence FOR UPDATE'));
  const [settings, piece] = tap.statements.slice(lock, lock + 2);
  await writer.query('BEGIN');
  await writer.query(settings!.text, [...settings!.values]);
  const { rows: plans } = await writer.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
    `EXPLAIN (ANALYZE, FORMAT JSON) ${piece!.text}`,
    [...piece!.values],
  );
  await writer.query('ROLLBACK');
  // A thousand batches are one piece. A plan that compares each with all of them handles a million rows.
  expect(workOf(plans[0]!['QUERY PLAN'][0].Plan)).toBeLessThan(100_000);
  writer.release();
  await tapped.close();
  await tap.close();
  await own.close();
});

test('what a commit has changed reads as it was received, whatever became of its records since', async () => {
  const company = await onboard(database.db);
  const { pool } = database.db;
  const walk = await openWalk(database.db, company);
  const long = '{"id":"日本","n":12345678901234567890}';
  await write(database.db, walk, ['{"id":"é","n":1.50}', long, '{"id":"x","t":"\\u20ac 😀, \\"]"}']);
  await write(database.db, walk, ['{"id":"é","n":2}', '{"id":"y"}'], { number: 1 });
  await pool.query(`UPDATE mirror.employees SET deleted_at = now() WHERE company_id = $1 AND id = 'x'`, [company.companyId]);
  await write(database.db, walk, ['{"id":"x"}', '{"id":"y"}', '{"id":"é","n":3}'], { number: 2 });
  await write(database.db, walk, ['{"id":"x"}', '{"id":"y","n":4}', long], { number: 3 });
  await stampChanges(database.db);
  const { rows } = await pool.query<{ op: string; id: string; data: string }>(
    'SELECT op, id, data::text FROM mirror.changes WHERE company_id = $1 ORDER BY seq',
    [company.companyId],
  );
  expect(rows.map(({ op, id, data }) => [op, id, data])).toEqual([
    ['insert', 'é', '{"n": 1.50, "id": "é"}'],
    ['insert', '日本', '{"n": 12345678901234567890, "id": "日本"}'],
    ['insert', 'x', '{"t": "€ 😀, \\"]", "id": "x"}'],
    ['update', 'é', '{"n": 2, "id": "é"}'],
    ['insert', 'y', '{"id": "y"}'],
    ['restore', 'x', '{"id": "x"}'],
    ['update', 'é', '{"n": 3, "id": "é"}'],
    ['update', 'y', '{"n": 4, "id": "y"}'],
  ]);
  // Where most of what was received is no change, a change has a row of its own.
  expect(await database.db.prisma.change.count({ where: { batch: company } })).toBe(1);
});

async function dataOf({ companyId }: CompanyKey): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ op: string; id: string; full: boolean }>(
    'SELECT op, id, data IS NOT NULL AS full FROM mirror.changes WHERE company_id = $1 ORDER BY seq',
    [companyId],
  );
  return rows.map(({ op, id, full }) => `${op} ${id}${full ? ' with data' : ''}`);
}
