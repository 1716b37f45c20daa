import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Environment } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { removeOldChanges, stampChanges } from '../../src/db/tables/change-batches.js';
import { type ChangePage, type ChangeQuery, readChanges } from '../../src/db/tables/feed.js';
import { Prisma } from '../../src/generated/prisma/client.js';
import { onboard, openWalk, records, verifiedWalk, write } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';

let database: TestDatabase;
/** A table has the same oid in every database that is a clone of one template, and pg_locks shows those of all. */
const OURS = Prisma.sql`(SELECT oid FROM pg_database WHERE datname = current_database())`;

beforeAll(async () => {
  database = await testDatabase();
  // It would count the rows of a feed that is being written as none, and a planner that knows that much scans the table.
  for (const table of ['change_numbers', 'change_batches', 'changes'])
    await database.db.pool.query(`ALTER TABLE muster.${table} SET (autovacuum_enabled = off)`);
});
beforeEach(() =>
  database.db.pool.query(
    'TRUNCATE muster.change_batches, muster.changes, muster.change_numbers, muster.farewells; UPDATE muster.change_sequence SET next_seq = 1',
  ),
);
afterAll(() => database.close());

/** Batches of changes that have a row each, as many as `sizes`. */
async function addBatches(
  sizes: readonly number[],
  {
    environment = 'test',
    resource = 'employees',
    days = 0,
  }: { environment?: Environment; resource?: string; days?: number } = {},
): Promise<void> {
  await database.db.pool.query(
    `WITH batch AS (
       INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
       SELECT size, $2, $3, $4, now() - make_interval(days => $5) FROM unnest($1::int[]) WITH ORDINALITY AS s(size, n) ORDER BY n RETURNING id, size
     )
     INSERT INTO muster.changes (batch_id, position, record_id, op, data)
     SELECT id, p, id || '/' || p, 'update', jsonb_build_object('text', repeat('x', 100)) FROM batch, generate_series(0, size - 1) p`,
    [sizes, environment, randomUUID(), resource, days],
  );
}

/** The same, stamped. */
async function feed(...added: Parameters<typeof addBatches>): Promise<void> {
  await addBatches(...added);
  await stampChanges(database.db);
}

function page(query: Partial<ChangeQuery>): Promise<ChangePage> {
  return readChanges(database.db, { after: '0', limit: 1_000, ...query });
}

/** Everything from `after` on, page by page. */
async function follow(query: Partial<ChangeQuery>): Promise<string[]> {
  const seen: string[] = [];
  for (let { after = '0' } = query; ; ) {
    const { rows, nextAfter, isCutShort } = await page({ ...query, after });
    seen.push(...rows.map(({ seq }) => seq));
    if (rows.length === 0 && !isCutShort) return seen;
    after = nextAfter;
  }
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

interface Cost {
  /** Rows that the scans have looked at. */
  readonly visited: number;
  /** Tables that were read from end to end. */
  readonly scanned: readonly string[];
}

async function cost(sql: string, values: readonly unknown[] = []): Promise<Cost> {
  const { rows } = await database.db.pool.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, [
    ...values,
  ]);
  const nodes: PlanNode[] = [];
  const walk = (node: PlanNode) => {
    nodes.push(node);
    node.Plans?.forEach(walk);
  };
  walk(rows[0]!['QUERY PLAN'][0].Plan);
  const scans = nodes.filter((node) => node['Relation Name'] !== undefined && node['Actual Loops'] > 0);
  const rowsOf = (node: PlanNode) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
  return {
    visited: scans.reduce((sum, node) => sum + rowsOf(node), 0),
    // One table has one row.
    scanned: scans
      .filter((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] !== 'change_sequence')
      .map((node) => node['Relation Name']!),
  };
}

/** Of all that the API asks the database for one page. */
async function costOfApi(query: Partial<ChangeQuery>): Promise<Cost> {
  const costs: Cost[] = [];
  const { pool } = database.db;
  const explaining = {
    async connect() {
      const client = await pool.connect();
      return {
        async query(sql: string, values?: unknown[]) {
          if (values) costs.push(await cost(sql, values));
          return client.query(sql, values);
        },
        release: () => client.release(),
      };
    },
  };
  await readChanges({ pool: explaining as unknown as typeof pool }, { after: '0', limit: 1_000, ...query });
  return { visited: costs.reduce((sum, { visited }) => sum + visited, 0), scanned: costs.flatMap(({ scanned }) => scanned) };
}

// In this order: a table keeps what is known of it when it is emptied.
test.each(['unknown to', 'known to'])(
  'a page looks at its own changes only, wherever it is, and however long the batches are, with a feed %s the planner',
  async (known) => {
    const ones = Array.from({ length: 15_000 }, () => 1);
    await feed([...ones.map((one, n) => one + (n % 2)), 20_000, ...ones]);
    if (known === 'known to')
      await database.db.pool.query('ANALYZE muster.change_numbers, muster.change_batches, muster.changes');
    const costs: (Cost & { readonly of: string })[] = [];
    for (const after of [0, 10_000, 22_450, 35_000, 50_000, 57_300]) {
      for (const order of ['', 'ORDER BY seq'])
        costs.push({
          of: `SQL ${after} ${order}`,
          ...(await cost(`SELECT * FROM mirror.changes WHERE seq > ${after} ${order} LIMIT 100`)),
        });
      costs.push({ of: `API ${after}`, ...(await costOfApi({ after: String(after), limit: 100 })) });
    }
    costs.push({ of: 'the newest', ...(await cost('SELECT * FROM mirror.changes ORDER BY seq DESC LIMIT 100')) });
    expect(costs.filter(({ visited, scanned }) => visited >= 1_000 || scanned.length > 0)).toEqual([]);
  },
);

test('whether a batch or a barrier waits for its number is read off an index, though the planner has last seen all of them wait', async () => {
  await addBatches(Array.from({ length: 5_000 }, () => 1));
  await database.db.pool.query('ANALYZE muster.change_batches');
  await stampChanges(database.db);
  const costs: Cost[] = [];
  const explaining = {
    $queryRaw: async (...parts: Parameters<typeof Prisma.sql>) => {
      costs.push(await cost(Prisma.sql(...parts).text));
      return [{ any: false }];
    },
  };
  await stampChanges({ ...database.db, prisma: explaining as unknown as typeof database.db.prisma });
  expect(costs).toEqual([{ visited: 0, scanned: [] }]);
});

test('a page of SQL and one of the API hold the same, whatever the batches are made of', async () => {
  const company = await onboard(database.db);
  const walk = await openWalk(database.db, company);
  const texts = records(1_300).map((text, n) => (n % 3 === 0 ? text : text.replace('}', `,"é":"${'ü'.repeat(n % 40)}"}`)));
  await write(database.db, walk, texts);
  // More than half changed, and less.
  await write(
    database.db,
    walk,
    texts.map((text, n) => (n % 4 === 0 ? text : text.replace('{', '{"b":1.50,'))),
    { number: 1 },
  );
  await write(
    database.db,
    walk,
    texts.map((text, n) => (n % 9 === 0 ? text.replace('{', '{"c":[],') : text.replace('{', '{"b":1.50,'))),
    {
      number: 2,
    },
  );
  await verifiedWalk(database.db, company, texts.slice(0, 1_200), { share: 1, rows: 10_000 });
  await stampChanges(database.db);
  const { rows: expected } = await database.db.pool.query<{ seq: string }>(
    `SELECT seq, resource, environment, company_id AS "companyId", id, op, data::text AS data, changed_at AS "changedAt", run_id AS "runId"
     FROM mirror.changes WHERE seq > 0 ORDER BY seq`,
  );
  expect(expected.map(({ seq }) => seq)).toEqual(expected.map((_, n) => String(n + 1)));
  const { rows: batches } = await database.db.pool.query<{ most: number }>(
    'SELECT max(size) AS most FROM muster.change_batches WHERE ids IS NOT NULL',
  );
  expect(batches[0]!.most).toBeLessThanOrEqual(250);
  for (const limit of [1, 333, 10_000]) {
    for (const after of [0, 249, 250, 1_299, 1_300, 2_000]) {
      const { rows } = await page({ after: String(after), limit });
      expect(rows).toEqual(expected.slice(after, after + limit));
    }
  }
  // Processes of the version before read this view.
  const { rows: before } = await database.db.pool.query(
    'SELECT first_seq + position AS seq, record_id AS id, op, data::text AS data FROM muster.stamped_changes ORDER BY 1',
  );
  expect(expected).toMatchObject(before);
});

test('a rare resource in a long feed is found, page by page, and nothing else is', async () => {
  await feed(Array.from({ length: 12_000 }, () => 1));
  await feed([2], { resource: 'departments' });
  await feed(Array.from({ length: 11_000 }, () => 1));
  await feed([3], { resource: 'departments', environment: 'production' });
  const first = await page({ resource: 'departments' });
  expect(first).toMatchObject({ rows: [], nextAfter: '10000', isCutShort: true });
  expect(await follow({ resource: 'departments' })).toEqual(['12001', '12002', '23003', '23004', '23005']);
  expect(await follow({ environment: 'production', limit: 2 })).toEqual(['23003', '23004', '23005']);
  expect(await follow({ resource: 'departments', environment: 'test' })).toEqual(['12001', '12002']);
  expect(await follow({ after: '23000' })).toEqual(['23001', '23002', '23003', '23004', '23005']);
});

test('a consumer of what is no longer kept is told from where to go on, and one that begins at 0 begins with the oldest', async () => {
  await feed([4, 4]);
  await database.db.pool.query(`UPDATE muster.change_batches SET changed_at = now() - interval '31 days'`);
  await feed([2, 2]);
  // Written by a transaction that began long ago: nothing behind what stays is removed.
  await database.db.pool.query(
    `UPDATE muster.change_batches SET changed_at = now() - interval '31 days' WHERE first_seq = (SELECT max(first_seq) FROM muster.change_batches)`,
  );
  await removeOldChanges(database.db, 30);
  expect(await follow({})).toEqual(['9', '10', '11', '12']);
  expect(await follow({ after: '8', limit: 1 })).toEqual(['9', '10', '11', '12']);
  for (const after of ['1', '7'])
    await expect(page({ after })).rejects.toMatchObject({ code: 'changes_expired', status: 410, details: { go_on_after: 8 } });
  const { rows } = await database.db.pool.query('SELECT min(seq), count(*) FROM mirror.changes');
  expect(rows).toEqual([{ min: '9', count: '4' }]);
  await database.db.pool.query('DELETE FROM muster.change_batches');
  await expect(page({ after: '9' })).rejects.toMatchObject({ details: { go_on_after: 12 } });
  expect(await page({ after: '12' })).toMatchObject({ rows: [], nextAfter: '12' });
  const { rows: numbers } = await database.db.pool.query('SELECT count(*) FROM muster.change_numbers');
  expect(numbers).toEqual([{ count: '0' }]);
});

test('a page misses nothing of what retention removes while it is read', async () => {
  await feed([10, 10], { days: 31 });
  await feed([10, 10]);
  let reading: Promise<ChangePage> | undefined;
  // What the page is made of is known when it waits for the changes themselves.
  await inTransaction(database.db, async (tx) => {
    await tx.$executeRaw`LOCK TABLE muster.changes IN ACCESS EXCLUSIVE MODE`;
    reading = page({ after: '5' });
    await waitFor(
      async () =>
        (
          await tx.$queryRaw<unknown[]>`
            SELECT 1 FROM pg_locks WHERE relation = 'muster.changes'::regclass AND NOT granted AND database = ${OURS}`
        ).length,
    );
    await removeOldChanges({ ...database.db, prisma: tx as typeof database.db.prisma }, 30);
  });
  const { rows, nextAfter } = await reading!;
  expect([rows[0]?.seq, rows.length, nextAfter]).toEqual(['6', 35, '40']);
  await expect(page({ after: '5' })).rejects.toMatchObject({ code: 'changes_expired' });
});

test('a page whose connection is lost says so, and the next one has another', async () => {
  await feed([3]);
  await expect(
    inTransaction(database.db, async (tx) => {
      await tx.$executeRaw`LOCK TABLE muster.changes IN ACCESS EXCLUSIVE MODE`;
      const reading = page({});
      reading.catch(() => {});
      await waitFor(
        async () =>
          (
            await tx.$queryRaw<unknown[]>`
              SELECT pg_terminate_backend(pid) FROM pg_locks
              WHERE relation = 'muster.changes'::regclass AND NOT granted AND database = ${OURS}`
          ).length,
      );
      await reading;
    }),
  ).rejects.toMatchObject({ code: 'database_unavailable' });
  expect(await follow({})).toEqual(['1', '2', '3']);
});

test('a consumer of a rare resource that has read to the end misses nothing by retention, and one that has missed something is told', async () => {
  await feed([1], { resource: 'departments', days: 40 });
  await feed([50], { days: 35 });
  const rare = { resource: 'departments' };
  expect(await page(rare)).toMatchObject({ rows: [{ seq: '1' }], nextAfter: '51', isCutShort: false });
  expect(await page({ ...rare, after: '1' })).toMatchObject({ rows: [], nextAfter: '51', isCutShort: false });
  expect(await page({ environment: 'production' })).toMatchObject({ rows: [], nextAfter: '51' });
  await feed([1]);
  await removeOldChanges(database.db, 30);
  expect(await page({ ...rare, after: '51' })).toMatchObject({ rows: [], nextAfter: '52', isCutShort: false });
  await database.db.pool.query('DELETE FROM muster.change_batches');
  expect(await page(rare)).toMatchObject({ rows: [], nextAfter: '52', isCutShort: false });
  await feed([5], { ...rare, days: 35 });
  await feed([1]);
  await removeOldChanges(database.db, 30);
  await expect(page({ ...rare, after: '52' })).rejects.toMatchObject({ code: 'changes_expired', details: { go_on_after: 57 } });
  await expect(page({ ...rare, after: '9000' })).rejects.toMatchObject({ code: 'feed_restarted', details: { go_on_after: 58 } });
});

test('a gap that retention of an earlier version has left stops nobody', async () => {
  await feed([10, 2_000, 10, 3_000, 10]);
  await database.db.pool.query('DELETE FROM muster.change_batches WHERE size >= 2000');
  const kept = [1, 2_011, 5_021].flatMap((first) => Array.from({ length: 10 }, (_, n) => String(first + n)));
  expect(await follow({})).toEqual(kept);
  expect(await follow({ limit: 3 })).toEqual(kept);
  expect(await follow({ after: '2020', limit: 100 })).toEqual(kept.slice(20));
  expect(await follow({ resource: 'employees', limit: 7 })).toEqual(kept);
});
