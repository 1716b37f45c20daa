import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { eraseRecords, newPlaceholder } from '../../src/erasure/record-erasure.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard, openWalk, verifiedWalk, write } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, learn, mirrorRecords } from './warehouse-fixture.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  const endpoints = ['employees', 'departments'].map((resource) => ({ resource }));
  await ensureTypedViews(database.db, { endpoints } as unknown as Catalogue);
});
afterAll(() => database.close());

async function query<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
  return (await database.db.pool.query<Row>(text, values)).rows;
}

// No key of employees has a column here, so that all of a record is in `_rest`.

interface ChangeRow {
  readonly _seq: string;
  readonly _op: string;
  readonly id: string;
  readonly text: string | null;
}

const changesOf = ({ companyId }: CompanyKey, after: bigint) =>
  query<ChangeRow>(
    'SELECT _seq, _op, id, _rest::text AS text FROM warehouse.employees_changes WHERE company_id = $1 AND _seq > $2 ORDER BY _seq',
    [companyId, String(after)],
  );

type State = ReadonlyMap<string, string | null>;

const stateOf = (rows: readonly { id: string; text: string }[]): State => new Map(rows.map(({ id, text }) => [id, text]));
const living = async ({ companyId }: CompanyKey) =>
  stateOf(
    await query('SELECT id, data::text AS text FROM mirror.employees WHERE company_id = $1 AND deleted_at IS NULL', [companyId]),
  );
const asOfSeq = async ({ companyId }: CompanyKey, seq: bigint) =>
  stateOf(
    await query('SELECT id, _rest::text AS text FROM warehouse.employees_as_of_seq($2) WHERE company_id = $1', [
      companyId,
      String(seq),
    ]),
  );

async function lastSeq(): Promise<bigint> {
  await stampChanges(database.db);
  return BigInt((await query<{ last_seq: string }>('SELECT last_seq FROM warehouse.feed'))[0]!.last_seq);
}

/** What a reader has that has the state at a number, and applies the changes that follow. */
function fold(state: State, changes: readonly ChangeRow[], until: bigint): State {
  const folded = new Map(state);
  for (const { _seq, _op, id, text } of changes) {
    if (BigInt(_seq) > until) break;
    if (_op === 'delete') folded.delete(id);
    else folded.set(id, text);
  }
  return folded;
}

const NIGHT = fc.oneof(
  { weight: 8, arbitrary: fc.dictionary(fc.constantFrom('a', 'B', 'c', 'ä', 'e', 'f', 'g'), fc.integer({ min: 0, max: 2 })) },
  { weight: 1, arbitrary: fc.constant('rekey' as const) },
  { weight: 1, arbitrary: fc.constant('forget' as const) },
);

async function happen(company: CompanyKey, night: Record<string, number> | 'rekey' | 'forget'): Promise<void> {
  const list = { ...company, resource: 'employees' };
  if (typeof night === 'object') {
    const records = Object.entries(night).map(([id, n]) => `{"id":"${id}","n":${n}}`);
    await verifiedWalk(database.db, company, records, { share: 1, rows: 1_000 });
  } else if (await database.db.prisma.list.findFirst({ where: { ...company } })) {
    if (night === 'rekey') await rekeyList(database.db, list);
    else
      await inTransaction(database.db, (tx) =>
        eraseRecords(tx, list, { ids: ['a'], members: ['id'], placeholderOf: newPlaceholder }),
      );
  }
}

test('any changes, folded from any number, are the mirror as it was then, and so is as_of_seq', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(NIGHT, { minLength: 1, maxLength: 8 }), async (nights) => {
      const company = await onboard(database.db);
      const states: [bigint, State][] = [[await lastSeq(), new Map()]];
      for (const night of nights) {
        await happen(company, night);
        const state = await living(company);
        // A forgotten person is absent from every past.
        if (night === 'forget') for (const [, earlier] of states) (earlier as Map<string, string>).delete('a');
        states.push([await lastSeq(), state]);
      }
      for (const [n, [seq, state]] of states.entries()) {
        expect(await asOfSeq(company, seq)).toEqual(state);
        const changes = await changesOf(company, seq);
        for (const [later, expected] of states.slice(n)) expect(fold(state, changes, later)).toEqual(expected);
      }
      const told = `concat_ws(' ', seq, op, id, CASE WHEN op <> 'delete' THEN data END::text) AS text`;
      const asTold = await query(
        `SELECT ${told} FROM (SELECT _seq AS seq, _op AS op, id, _rest AS data FROM warehouse.employees_changes WHERE company_id = $1) c ORDER BY seq`,
        [company.companyId],
      );
      expect(asTold).toEqual(
        await query(`SELECT ${told} FROM mirror.changes WHERE company_id = $1 ORDER BY seq`, [company.companyId]),
      );
    }),
    { numRuns: 20, seed: 11 },
  );
});

test('a deletion has its key, and null in every other column', async () => {
  const company = await onboard(database.db);
  await happen(company, { a: 1, c: 1 });
  await happen(company, { a: 1 });
  await stampChanges(database.db);
  const rows = await query(
    `SELECT environment, company_id, id, _op, _changed_at IS NOT NULL AS is_timed, _rest FROM warehouse.employees_changes
     WHERE company_id = $1 AND _op = 'delete'`,
    [company.companyId],
  );
  expect(rows).toEqual([
    { environment: company.environment, company_id: company.companyId, id: 'c', _op: 'delete', is_timed: true, _rest: null },
  ]);
});

test('the columns of the changes are those of the typed view, appended as they are learned', async () => {
  const company = await onboard(database.db);
  const resource = 'departments';
  const many = Array.from({ length: 25 }, (_, n) => ({ id: String(n), name: `N${n}` }));
  await mirrorRecords(database.db, company, many, { resource });
  const fixed = ['_seq', '_op', '_changed_at', 'environment', 'company_id', 'id'];
  expect(await columnsOf(database.db, 'departments_changes')).toEqual([...fixed, 'id_2', 'name', '_rest']);
  const seq = await lastSeq();
  await mirrorRecords(
    database.db,
    company,
    many.map((each, n) => ({ ...each, size: n })),
    { resource },
  );
  await mirrorRecords(database.db, company, [{ id: '3', name: 'N3', size: 'large' }], { resource });
  expect(await columnsOf(database.db, 'departments_changes')).toEqual([...fixed, 'id_2', 'name', '_rest', 'size', 'size__text']);
  const rows = await query(
    `SELECT _op, name, size, size__text FROM warehouse.departments_changes WHERE company_id = $1 AND id = '3' ORDER BY _seq`,
    [company.companyId],
  );
  expect(rows).toEqual([
    { _op: 'insert', name: 'N3', size: null, size__text: null },
    { _op: 'update', name: 'N3', size: '3', size__text: null },
    { _op: 'update', name: 'N3', size: null, size__text: 'large' },
  ]);
  expect(await query(`SELECT name, size FROM warehouse.departments_as_of_seq($1) WHERE id = '3'`, [String(seq)])).toEqual([
    { name: 'N3', size: null },
  ]);
});

test('a number may be given before a new key has its column: until then the value is in _rest, and then in the column', async () => {
  const company = await onboard(database.db);
  const walk = await openWalk(database.db, company, 'departments');
  await write(database.db, walk, ['{"id":"1","code":"IT 7"}']);
  const seq = await lastSeq();
  const shown = () =>
    Promise.all(
      ['as_of_seq($1)', 'changes'].map((place) =>
        query(
          `SELECT to_jsonb(v) ->> 'code' AS code, _rest ->> 'code' AS rest FROM warehouse.departments_${place} v
           WHERE company_id = $2 AND _seq <= $1`,
          [String(seq), company.companyId],
        ),
      ),
    );
  const before = [{ code: null, rest: 'IT 7' }];
  expect(await shown()).toEqual([before, before]);
  await learn(database.db);
  const after = [{ code: 'IT 7', rest: null }];
  expect(await shown()).toEqual([after, after]);
});

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Rows that the scans of tables look at, and whether any of these reads a table from end to end. */
async function costOf(text: string, { jit = 'off' } = {}): Promise<{ visited: number; scanned: string[] }> {
  const client = await database.db.pool.connect();
  const plans = await client
    .query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`SET jit = ${jit}; EXPLAIN (ANALYZE, FORMAT JSON) ${text}; RESET jit`)
    .finally(() => client.release());
  const plan = (plans as unknown as { rows: { 'QUERY PLAN': [{ Plan: PlanNode }] }[] }[])[1]!.rows[0]!;
  const nodes: PlanNode[] = [];
  const add = (node: PlanNode) => {
    nodes.push(node);
    node.Plans?.forEach(add);
  };
  add(plan['QUERY PLAN'][0].Plan);
  const scans = nodes.filter((node) => node['Relation Name'] !== undefined && node['Actual Loops'] > 0);
  const rowsOf = (node: PlanNode) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
  return {
    visited: scans.reduce((sum, node) => sum + rowsOf(node), 0),
    scanned: scans.filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name']!),
  };
}

// In this order: a table keeps what is known of it.
test.each(['unknown to', 'known to'])('a read after a number costs what it returns, in a feed %s the planner', async (known) => {
  if (known === 'unknown to') {
    const company = await onboard(database.db);
    await query(
      `WITH batch AS (
         INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
         SELECT 1 + n % 2, 'test', $1, CASE WHEN n IN (5, 6000) THEN 'departments' ELSE 'employees' END, now() FROM generate_series(1, 12000) n RETURNING id, size
       )
       INSERT INTO muster.changes (batch_id, position, record_id, op, data)
       SELECT id, p, id || '/' || p, 'update', jsonb_build_object('text', repeat('x', 100)) FROM batch, generate_series(0, size - 1) p`,
      [company.companyId],
    );
    await stampChanges(database.db);
  } else await query('ANALYZE muster.change_numbers, muster.change_batches, muster.changes');
  const last = Number(await lastSeq());
  const costs = [];
  for (const jit of ['off', 'on']) {
    for (const text of [
      ...[0, last / 2, last - 300].map((after) => `employees_changes WHERE _seq > ${Math.floor(after)} ORDER BY _seq LIMIT 100`),
      `employees_changes WHERE _seq > ${last - 100}`,
      `employees_changes WHERE _seq > (SELECT ${last - 100}::bigint) ORDER BY _seq`,
      `employees_changes ORDER BY _seq DESC LIMIT 100`,
      'departments_changes ORDER BY _seq LIMIT 100',
      'departments_changes WHERE _seq > 0',
      `departments_changes WHERE _seq > (SELECT max(_seq) - 10 FROM warehouse.departments_changes)`,
    ])
      costs.push({ text, ...(await costOf(`SELECT * FROM warehouse.${text}`, { jit })) });
  }
  expect(costs.filter(({ visited, scanned }) => visited >= 500 || scanned.length > 0)).toEqual([]);
  // The numbers alone.
  const { visited } = await costOf('SELECT max(_seq) FROM warehouse.employees_changes');
  expect(visited).toBeLessThan(1.1 * last);
});
