import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { removeOldChanges, stampChanges } from '../../src/db/tables/change-batches.js';
import { eraseCompany } from '../../src/erasure/mirror-erasure.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard, verifiedWalk } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, mirrorRecords } from './warehouse-fixture.js';

let database: TestDatabase;

// No key has a column here, so that all of a record stands in `_rest`.

beforeAll(async () => {
  database = await testDatabase();
  await ensureTypedViews(database.db, { endpoints: [{ resource: 'employees' }] } as unknown as Catalogue);
});
afterAll(() => database.close());

type State = readonly string[];

async function texts(query: string, values: unknown[]): Promise<State> {
  const { rows } = await database.db.pool.query<{ text: string }>(query, values);
  return rows.map(({ text }) => text).toSorted();
}

const mirrorNow = ({ companyId }: CompanyKey) =>
  texts(`SELECT id || data::text AS text FROM mirror.employees WHERE company_id = $1 AND deleted_at IS NULL`, [companyId]);

/** What a reader folds from the history at an instant, by its own columns alone. */
const folded = ({ companyId }: CompanyKey, instant: string) =>
  texts(
    `SELECT id || _rest::text AS text FROM warehouse.employees_history
     WHERE company_id = $1 AND _valid_from <= $2::timestamptz AND (_valid_to > $2::timestamptz OR _valid_to IS NULL)`,
    [companyId, instant],
  );

const asOf = ({ companyId }: CompanyKey, instant: string) =>
  texts(`SELECT id || _rest::text AS text FROM warehouse.employees_as_of($2::timestamptz) WHERE company_id = $1`, [
    companyId,
    instant,
  ]);

/** With all its microseconds, which a Date does not have. */
async function now(): Promise<string> {
  const { rows } = await database.db.pool.query<{ now: string }>('SELECT clock_timestamp()::text AS now');
  return rows[0]!.now;
}

/** A night: the records that the list has by then, by id, with what they say; or the list's ids are given up. */
const NIGHT = fc.oneof(
  { weight: 8, arbitrary: fc.dictionary(fc.constantFrom('a', 'B', 'c', 'ä', 'e', 'f', 'g'), fc.integer({ min: 0, max: 2 })) },
  { weight: 1, arbitrary: fc.constant('rekey' as const) },
);

async function happen(company: CompanyKey, night: Record<string, number> | 'rekey'): Promise<void> {
  const known = await database.db.prisma.list.findFirst({ where: { ...company } });
  if (night === 'rekey') {
    if (known) await rekeyList(database.db, { ...company, resource: 'employees' });
    return;
  }
  const records = Object.entries(night).map(([id, n]) => `{"id":"${id}","n":${n}}`);
  await verifiedWalk(database.db, company, records, { share: 1, rows: 1_000 });
}

test('any history, folded at any instant, is the mirror as it was then', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(NIGHT, { minLength: 1, maxLength: 8 }), async (nights) => {
      const company = await onboard(database.db);
      const states: [string, State][] = [[await now(), []]];
      for (const night of nights) {
        await happen(company, night);
        states.push([await now(), await mirrorNow(company)]);
      }
      await stampChanges(database.db);
      for (const [instant, state] of states) {
        expect(await folded(company, instant)).toEqual(state);
        expect(await asOf(company, instant)).toEqual(state);
      }
      const { rows } = await database.db.pool.query<{ broken: number; current: number; missing: number }>(
        `SELECT count(*) FILTER (WHERE _valid_to < _valid_from OR next <> _valid_to AND _op <> 'delete')::int AS broken,
           count(*) FILTER (WHERE _is_current)::int AS current, count(*) FILTER (WHERE _seq IS NULL)::int AS missing
         FROM (SELECT *, lead(_valid_from) OVER (PARTITION BY id ORDER BY _seq) AS next FROM warehouse.employees_history WHERE company_id = $1) h`,
        [company.companyId],
      );
      expect(rows[0]).toEqual({ broken: 0, current: states.at(-1)![1].length, missing: 0 });
      const told = `concat_ws(' ', lpad(seq::text, 9), op, id, data::text) AS text`;
      expect(
        await texts(
          `SELECT ${told} FROM (SELECT *, _seq AS seq, _op AS op, _rest AS data FROM warehouse.employees_history WHERE company_id = $1) h`,
          [company.companyId],
        ),
      ).toEqual(await texts(`SELECT ${told} FROM mirror.changes WHERE company_id = $1`, [company.companyId]));
    }),
    { numRuns: 20, seed: 7 },
  );
});

const hit = (list: readonly string[]) => list.map((text) => `{"id":"${text[0]}","n":${text.slice(1)}}`);
const walk = (company: CompanyKey, ...list: string[]) => verifiedWalk(database.db, company, hit(list), { share: 1, rows: 1_000 });

/** Retention removes all changes that were numbered before. */
async function forget(): Promise<void> {
  await stampChanges(database.db);
  await database.db.pool.query(`UPDATE muster.change_batches SET changed_at = now() - interval '31 days'`);
  await removeOldChanges(database.db, 30);
}

test('where retention has been, as_of answers from the moment on from which every version is kept', async () => {
  const company = await onboard(database.db);
  await walk(company, 'a1', 'b1', 'c1', 'd1');
  await walk(company, 'a1', 'b1', 'c1');
  await forget();
  const start = await now();
  expect(await asOf(company, start)).toEqual(await mirrorNow(company));
  await walk(company, 'a1', 'b1', 'c1', 'd2', 'e1');
  const grown = [await now(), await mirrorNow(company)] as const;
  await stampChanges(database.db);
  // Nothing that was valid is missing: d was deleted at the start, and e was not there.
  expect(await asOf(company, start)).toHaveLength(3);
  expect(await asOf(company, grown[0])).toEqual(grown[1]);
  await walk(company, 'a2', 'b1', 'd2', 'e1');
  const changed = [await now(), await mirrorNow(company)] as const;
  await stampChanges(database.db);
  expect(await asOf(company, changed[0])).toEqual(changed[1]);
  const refusal = asOf(company, grown[0]);
  await expect(refusal).rejects.toThrow(
    /^as_of\(employees, .*\) is not answered: some versions that were valid then are no longer kept$/,
  );
  // Nor where nothing that is kept was valid then: an empty answer would say that there was nothing.
  await expect(asOf({ ...company, companyId: randomUUID() }, grown[0])).rejects.toThrow('no longer kept');
  const { hint } = (await refusal.catch((error: unknown) => error)) as { hint: string };
  const from = /^Instants from (.*) on are answered/.exec(hint)![1]!;
  expect(await asOf(company, from)).toEqual(changed[1]);
  // Of each record that lives there is a current version, and no other.
  const { rows } = await database.db.pool.query<{ id: string }>(
    'SELECT id FROM warehouse.employees_history WHERE company_id = $1 AND _is_current ORDER BY id',
    [company.companyId],
  );
  expect(rows.map(({ id }) => id)).toEqual(['a', 'b', 'd', 'e']);
});

test('as_of does not speak of what is to come', async () => {
  const company = await onboard(database.db);
  await expect(asOf(company, '2999-01-01')).rejects.toThrow(
    'as_of answers for the past: 2999-01-01 00:00:00+00 is not known yet',
  );
});

test('as_of of no instant is an error, and no empty list', async () => {
  const refused = (instant: string) =>
    expect(database.db.pool.query(`SELECT * FROM warehouse.employees_as_of(${instant})`)).rejects.toThrow('no instant');
  await refused('NULL');
  await refused(`(SELECT max(verified_at) FROM warehouse.barriers WHERE resource = 'nothing')`);
});

test('a change whose transaction began before that of the one before it ends no version before it began', async () => {
  const company = await onboard(database.db);
  await walk(company, 'a1');
  await walk(company, 'a2');
  await database.db.pool.query(
    `UPDATE muster.change_batches SET changed_at = changed_at - interval '1 hour'
     WHERE id = (SELECT max(id) FROM muster.change_batches WHERE company_id = $1)`,
    [company.companyId],
  );
  await stampChanges(database.db);
  const { rows } = await database.db.pool.query(
    `SELECT _valid_to - _valid_from AS lasted, _is_current FROM warehouse.employees_history WHERE company_id = $1 ORDER BY _seq`,
    [company.companyId],
  );
  expect(rows).toMatchObject([
    { lasted: {}, _is_current: false },
    { lasted: null, _is_current: true },
  ]);
});

test('of a company that was removed the history has no data', async () => {
  const company = await onboard(database.db);
  await walk(company, 'a1', 'b1');
  await walk(company, 'a2', 'b1');
  await inTransaction(database.db, (tx) => eraseCompany(tx, company));
  await stampChanges(database.db);
  const { rows } = await database.db.pool.query<{ data: unknown; current: boolean }>(
    'SELECT _rest AS data, _is_current AS current FROM warehouse.employees_history WHERE company_id = $1',
    [company.companyId],
  );
  expect(rows).toHaveLength(5);
  expect(rows.every(({ data, current }) => data === null && !current)).toBe(true);
});

test('history has the columns of the typed view, in any order in which they are learned, and as_of goes with it', async () => {
  const company = await onboard(database.db);
  const person = (id: string, more: object) => ({ id, name: `N${id}`, ...more });
  const many = Array.from({ length: 25 }, (_, n) => String(n));
  const resource = 'departments';
  await ensureTypedViews(database.db, { endpoints: [{ resource }] } as unknown as Catalogue);
  await mirrorRecords(
    database.db,
    company,
    many.map((id) => person(id, {})),
    { resource },
  );
  const before = await now();
  await database.db.pool.query(
    `CREATE VIEW public.theirs AS SELECT h.* FROM warehouse.departments_history h; CREATE VIEW public.then AS SELECT * FROM warehouse.departments_as_of('2026-01-01')`,
  );
  await mirrorRecords(
    database.db,
    company,
    many.map((id) => person(id, { size: Number(id) })),
    { resource },
  );
  const fixed = ['environment', 'company_id', 'id'];
  const validity = ['_valid_from', '_valid_to', '_is_current', '_op', '_seq', '_next_seq', '_rest'];
  expect(await columnsOf(database.db, 'departments_history')).toEqual([...fixed, 'id_2', 'name', ...validity, 'size']);
  const { rows } = await database.db.pool.query(
    `SELECT 'now' AS at, name, size FROM warehouse.departments_as_of(now()) WHERE id = '7'
     UNION ALL SELECT 'before', name, size FROM warehouse.departments_as_of($1) WHERE id = '7'`,
    [before],
  );
  expect(rows).toEqual([
    { at: 'now', name: 'N7', size: '7' },
    { at: 'before', name: 'N7', size: null },
  ]);
});
