import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { type BarrierRow, readBarriers, removeOldBarriers } from '../../src/db/tables/barriers.js';
import { removeOldChanges, stampChanges } from '../../src/db/tables/change-batches.js';
import { readChanges } from '../../src/db/tables/feed.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { approveHold } from '../../src/mirror/holds.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

const WRITERS = 4;
const COMPANIES_A_WRITER = 2;
const NIGHTS = 6;
const LISTS = ['employees', 'departments'] as const;

let database: TestDatabase;
let sandbox: Sandbox;
let harnesses: SyncHarness[];
let next = WRITERS * COMPANIES_A_WRITER;
let requests = 0;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: WRITERS * COMPANIES_A_WRITER + 8 }, (_, n) => ({
      name: `C${n}`,
      employees: 60,
      departments: 12,
    })),
  });
  const moving = new Set(sandbox.companies.slice(0, next).map(({ companyId }) => companyId));
  database = await testDatabase();
  const { employees, departments } = ENTRIES;
  harnesses = Array.from({ length: WRITERS }, (_, n) =>
    syncHarness(database.db, sandbox, endpointsOf({ employees, departments }), {
      worker: `writer ${n}`,
      // The writers' lists move while they are read, too.
      beforeRequest: ({ path }) => {
        const companyId = /companies\/([0-9a-f-]{36})\//.exec(path)?.[1];
        if (moving.has(companyId ?? '') && ++requests % 11 === 0) sandbox.list(companyId!, 'employees').change(requests % 40);
      },
    }),
  );
});

afterAll(async () => {
  for (const harness of harnesses) await harness.close();
  await sandbox.stop();
  await database.close();
});

async function onboard(): Promise<CompanyKey> {
  return harnesses[0]!.onboard(sandbox.companies[next++]!.companyId);
}

async function barriersOf({ companyId }: CompanyKey, resource = 'employees'): Promise<BarrierRow[]> {
  await stampChanges(database.db);
  const { rows } = await readBarriers(database.db, { after: '0', resource, limit: 10_000 });
  return rows.filter((barrier) => barrier.companyId === companyId);
}

async function lastChange({ companyId }: CompanyKey): Promise<string | null> {
  const { rows } = await database.db.pool.query<{ last: string | null }>(
    `SELECT max(seq) AS last FROM mirror.changes WHERE company_id = $1 AND resource = 'employees'`,
    [companyId],
  );
  return rows[0]!.last;
}

/** Somebody who reads nothing but the feed and the barriers, in the order in which they come. */
class Consumer {
  readonly #changes = new Map<string, { seq: bigint; id: string; data: string | null }[]>();
  /** What it had of a list at each of its barriers, by run and resource. */
  readonly loaded = new Map<string, readonly string[]>();
  #after = '0';
  #barrier = '0';

  /** Reads what there is. Returns whether there was anything. */
  async read(): Promise<boolean> {
    await stampChanges(database.db);
    const before = this.#barrier;
    const { rows, nextAfter } = await readBarriers(database.db, { after: this.#barrier, limit: 7 });
    for (const barrier of rows) {
      while (BigInt(this.#after) < BigInt(barrier.seq)) await this.#load();
      this.loaded.set(`${barrier.runId} ${barrier.resource}`, this.#stateAt(barrier));
    }
    this.#barrier = nextAfter;
    return nextAfter !== before;
  }

  async #load(): Promise<void> {
    const page = await readChanges(database.db, { after: this.#after, limit: 41 });
    for (const { seq, resource, companyId, id, op, data } of page.rows) {
      const list = `${companyId} ${resource}`;
      if (!this.#changes.has(list)) this.#changes.set(list, []);
      this.#changes.get(list)!.push({ seq: BigInt(seq), id, data: op === 'delete' ? null : data });
    }
    this.#after = page.nextAfter;
  }

  #stateAt({ companyId, resource, seq, records }: BarrierRow): readonly string[] {
    const state = new Map<string, string>();
    for (const change of this.#changes.get(`${companyId} ${resource}`) ?? []) {
      if (change.seq > BigInt(seq)) break;
      if (change.data === null) state.delete(change.id);
      else state.set(change.id, change.data);
    }
    if (state.size !== records) throw new Error(`The barrier says ${records} records, and the feed up to it has ${state.size}`);
    return [...state.values()].toSorted();
  }
}

test('a consumer that loads to barriers beside four writers has at each of them the list as its walk received it', async () => {
  const received = new Map<string, readonly string[]>();
  let writing = WRITERS;
  const writers = harnesses.map(async (harness, writer) => {
    const companies = sandbox.companies.slice(writer * COMPANIES_A_WRITER, (writer + 1) * COMPANIES_A_WRITER);
    for (const { companyId } of companies) await harness.onboard(companyId);
    for (let night = 0; night < NIGHTS; night += 1) {
      for (const { companyId } of companies) {
        const employees = sandbox.list(companyId, 'employees');
        if (night % 3 === 1) for (let n = 0; n < 40; n += 1) employees.change(n);
        if (night % 2 === 1) employees.remove(night, 2);
        if (night % 3 === 2) employees.insert(night);
        const run = await harness.sync({ environment: 'test', companyId }, { mode: 'full' });
        for (const { resource, verified } of run.walks) {
          if (verified) received.set(`${run.id} ${resource}`, await mirrored(database.db, resource, companyId));
        }
        if ((night + writer) % 3 === 0) await stampChanges(database.db);
      }
    }
    writing -= 1;
  });
  const consumer = new Consumer();
  for (let last = false; !last; ) {
    last = writing === 0;
    while (await consumer.read()) last = false;
  }
  await Promise.all(writers);
  expect(received.size).toBeGreaterThan((WRITERS * COMPANIES_A_WRITER * NIGHTS * LISTS.length) / 2);
  expect(consumer.loaded.size).toBe(received.size);
  for (const [walk, rows] of received) expect(consumer.loaded.get(walk)).toEqual(rows);
});

test('every verified walk has one barrier, at the last change of its list', async () => {
  const company = await onboard();
  const [harness] = harnesses as [SyncHarness];
  const first = await harness.sync(company, { mode: 'full' });
  const seq = (await barriersOf(company))[0]!.seq;
  expect(seq).toBe(await lastChange(company));
  const again = await harness.sync(company, { mode: 'full' });
  await stampChanges(database.db);
  const { rows } = await database.db.pool.query<{ run_id: string; seq: string; records: number; isLast: boolean }>(
    `SELECT b.run_id, b.seq, b.records, b.verified_at = l.last_verified_at AS "isLast" FROM warehouse.barriers b
     JOIN muster.lists l USING (environment, company_id, resource) WHERE company_id = $1 AND resource = 'employees' ORDER BY number`,
    [company.companyId],
  );
  expect(rows.map((row) => row.seq)).toEqual([seq, seq]);
  expect(rows).toMatchObject([
    { run_id: first.id, records: 60, isLast: false },
    { run_id: again.id, records: 60, isLast: true },
  ]);
});

test('a walk that proves nothing has no barrier', async () => {
  const company = await onboard();
  const [harness] = harnesses as [SyncHarness];
  sandbox.list(company.companyId, 'employees').change(5, '{"name":"nobody"}');
  const run = await harness.sync(company, { mode: 'full' });
  expect(run.walks.map(({ verified }) => verified)).toEqual([false, true]);
  expect(await barriersOf(company)).toEqual([]);
  expect(await barriersOf(company, 'departments')).toHaveLength(1);
});

test('a barrier is not seen before the changes that it covers', async () => {
  const company = await onboard();
  await stampChanges(database.db);
  await harnesses[0]!.sync(company, { mode: 'full' });
  const seen = () => database.db.pool.query('SELECT FROM warehouse.barriers WHERE company_id = $1', [company.companyId]);
  expect((await seen()).rowCount).toBe(0);
  await stampChanges(database.db);
  expect((await seen()).rowCount).toBe(2);
});

test('a decided hold comes behind the barrier of the walk that opened it', async () => {
  const company = await onboard();
  const [harness] = harnesses as [SyncHarness];
  await harness.sync(company, { mode: 'full' });
  sandbox.list(company.companyId, 'employees').remove(0, 60);
  await harness.sync(company, { mode: 'full' });
  const { id } = await database.db.prisma.hold.findFirstOrThrow({ where: { ...company, status: 'open' } });
  await approveHold(database.db, id);
  const barriers = await barriersOf(company);
  expect(barriers.at(-1)).toMatchObject({ records: 60 });
  expect(BigInt((await lastChange(company))!)).toBeGreaterThanOrEqual(BigInt(barriers.at(-1)!.seq) + 60n);
  await harness.sync(company, { mode: 'full' });
  expect((await barriersOf(company)).at(-1)).toMatchObject({ records: 0, seq: await lastChange(company) });
  expect(upstream(sandbox, 'employees', company.companyId)).toEqual([]);
});

test('a list whose changes are no longer kept has its barrier at the end of the feed as it was', async () => {
  const company = await onboard();
  const [harness] = harnesses as [SyncHarness];
  await harness.sync(company, { mode: 'full' });
  await stampChanges(database.db);
  await database.db.pool.query(`UPDATE muster.change_batches SET changed_at = now() - interval '31 days'`);
  await removeOldChanges(database.db, 30);
  const { rows } = await database.db.pool.query<{ last_seq: string }>('SELECT last_seq FROM warehouse.feed');
  await harness.sync(company, { mode: 'full', resources: ['departments'] });
  expect((await barriersOf(company, 'departments')).at(-1)!.seq).toBe(rows[0]!.last_seq);
});

test('a barrier whose batch went before it had its number ends before what the list got since', async () => {
  const company = await onboard();
  const [harness] = harnesses as [SyncHarness];
  await harness.sync(company, { mode: 'full', resources: ['employees'] });
  const { pool } = database.db;
  // As when nobody numbers for as long as changes are kept, and retention goes through while the walk ends.
  const { rows } = await pool.query<{ batch_id: string }>('SELECT batch_id FROM muster.barriers WHERE company_id = $1', [
    company.companyId,
  ]);
  const { batch_id: batch } = rows[0]!;
  sandbox.list(company.companyId, 'employees').change(3);
  await harness.sync(company, { mode: 'full', resources: ['employees'] });
  const { rows: later } = await pool.query<{ id: string }>(
    'SELECT id FROM muster.change_batches WHERE company_id = $1 AND id > $2',
    [company.companyId, batch],
  );
  await pool.query('DELETE FROM muster.change_batches WHERE company_id = $1 AND id <= $2', [company.companyId, batch]);
  await stampChanges(database.db);
  const { rows: numbered } = await pool.query<{ first_seq: string }>(
    'SELECT first_seq FROM muster.change_batches WHERE id = $1',
    [later[0]!.id],
  );
  const change = BigInt(numbered[0]!.first_seq);
  const seqs = (await barriersOf(company)).map(({ seq }) => BigInt(seq));
  expect(seqs).toEqual([change - 1n, change]);
});

test('the newest barrier of a list stays, whatever its age', async () => {
  const company = await onboard();
  const [harness] = harnesses as [SyncHarness];
  for (let n = 0; n < 3; n += 1) await harness.sync(company, { mode: 'full', resources: ['departments'] });
  const [, , newest] = await barriersOf(company, 'departments');
  await database.db.pool.query(`UPDATE muster.barriers SET verified_at = verified_at - interval '31 days'`);
  expect(await removeOldBarriers(database.db, { days: 32, limit: 100, which: 'all' })).toBe(0);
  sandbox.list(company.companyId, 'departments').change(1);
  await harness.sync(company, { mode: 'full', resources: ['departments'] });
  // Nobody signs here, and a barrier stays until its certificate is signed.
  await database.db.pool.query("UPDATE muster.certificates SET facts = NULL, jws = 'signed'");
  await stampChanges(database.db);
  await removeOldBarriers(database.db, { days: 30, limit: 10_000, which: 'repeated' });
  expect((await barriersOf(company, 'departments')).map(({ number }) => number)).toEqual([newest!.number, expect.any(String)]);
  await removeOldBarriers(database.db, { days: 30, limit: 10_000, which: 'all' });
  expect(await barriersOf(company, 'departments')).toHaveLength(1);
});

test('a company that is removed takes its barriers along', async () => {
  const company = await onboard();
  await harnesses[0]!.sync(company, { mode: 'full' });
  expect(await barriersOf(company)).toHaveLength(1);
  await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'admin', role: 'admin' }));
  expect(await barriersOf(company)).toEqual([]);
  await stampChanges(database.db);
});
