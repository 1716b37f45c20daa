import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { removeOldChanges, stampChanges } from '../../src/db/tables/change-batches.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { redactStored } from '../../src/erasure/redact-stored.js';
import { privacyOf } from '../../src/privacy/rules.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard, verifiedWalk } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

let database: TestDatabase;

// A past that is not whole is refused by its cause. No key has a column here, so that all of a record is in `_rest`.

beforeAll(async () => {
  database = await testDatabase();
  const endpoints = ['employees', 'departments'].map((resource) => ({ resource }));
  await ensureTypedViews(database.db, { endpoints } as unknown as Catalogue);
});
afterAll(() => database.close());
beforeEach(() =>
  database.db.pool.query(
    `TRUNCATE muster.change_batches, muster.changes, muster.change_numbers, muster.farewells, muster.purges, muster.removed_changes;
     UPDATE muster.change_sequence SET next_seq = 1`,
  ),
);

const RULES = privacyOf({ n: 'drop' }, undefined);

/** A point of the feed: an instant and a number. */
interface Point {
  readonly instant: string;
  readonly seq: string;
}

async function point(): Promise<Point> {
  await stampChanges(database.db);
  const { rows } = await database.db.pool.query<Point>(
    'SELECT clock_timestamp()::text AS instant, last_seq AS seq FROM warehouse.feed',
  );
  return rows[0]!;
}

const walk = (company: CompanyKey, ...list: string[]) =>
  verifiedWalk(
    database.db,
    company,
    list.map((text) => (text.length === 1 ? `{"id":"${text}"}` : `{"id":"${text[0]}","n":${text.slice(1)}}`)),
    { share: 1, rows: 1_000 },
  );

async function asOf({ instant, seq }: Point, { companyId }: CompanyKey): Promise<[unknown[], unknown[]]> {
  const query = (call: string, value: string) =>
    database.db.pool
      .query<{ record: unknown }>(`SELECT _rest AS record FROM warehouse.${call} WHERE company_id = $2 ORDER BY id`, [
        value,
        companyId,
      ])
      .then(
        ({ rows }) => rows.map(({ record }) => record),
        (error: { message: string; hint: string }) => [error.message.replace(/\(.*?\)/, ''), error.hint.replace(/\d.*? on/, '…')],
      );
  return [await query('employees_as_of($1)', instant), await query('employees_as_of_seq($1)', seq)];
}

const refused = (why: string, hint: string) => [
  [`as_of is not answered: ${why}`, `Instants from … are answered. ${hint}`],
  [`as_of_seq is not answered: ${why}`, `Numbers from … are answered. ${hint}`],
];
const both = (records: unknown[]) => [records, records];
const LEFT = 'warehouse.employees_history has what is left of the versions before.';

async function limits() {
  return (await database.db.pool.query('SELECT * FROM warehouse.as_of_limits ORDER BY resource')).rows;
}

test('new privacy rules end the past of a list, and not the present of the records that they leave as they are', async () => {
  const company = await onboard(database.db);
  await walk(company, 'a1', 'b');
  const before = await point();
  await redactStored(database.db, { ...company, resource: 'employees' }, RULES);
  const after = await point();
  expect(await asOf(before, company)).toEqual(refused('what was true then was rewritten by new privacy rules', LEFT));
  expect(await asOf(after, company)).toEqual(both([{ id: 'a' }, { id: 'b' }]));
  await walk(company, 'b', 'c');
  const later = await point();
  expect(await asOf(later, company)).toEqual(both([{ id: 'b' }, { id: 'c' }]));
  expect(await limits()).toMatchObject([{ resource: 'employees', answered_from_seq: after.seq, cause: 'rules' }]);
  const { rows } = await database.db.pool.query(
    `SELECT id, _op, _rest FROM warehouse.employees_changes WHERE _seq > $1 AND _seq <= $2 ORDER BY _seq`,
    [before.seq, after.seq],
  );
  expect(rows).toEqual([
    { id: 'a', _op: 'update', _rest: { id: 'a' } },
    { id: 'b', _op: 'update', _rest: { id: 'b' } },
  ]);
});

test('a removed company ends the past of the lists that it had, and of no other', async () => {
  const [company, other] = [await onboard(database.db), await onboard(database.db)];
  await walk(company, 'a1');
  await walk(other, 'x1');
  const before = await point();
  await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'admin', role: 'admin' }));
  const unnumbered = { instant: before.instant, seq: before.seq };
  // The removal has no number yet, so that none is late enough.
  const { rows } = await database.db.pool.query<{ sure: boolean }>(
    'SELECT answered_from_seq > (SELECT last_seq FROM warehouse.feed) AS sure FROM warehouse.as_of_limits',
  );
  expect(rows).toEqual([{ sure: true }]);
  const after = await point();
  const why = 'a company that had the list then was removed, and its data with it';
  for (const each of [company, other]) expect(await asOf(unnumbered, each)).toEqual(refused(why, LEFT));
  expect(await asOf(after, company)).toEqual(both([]));
  expect(await asOf(after, other)).toEqual(both([{ id: 'x', n: 1 }]));
  expect(await limits()).toMatchObject([{ resource: 'employees', cause: 'removal' }]);
});

test('a record of which retention has left no trace ends the past', async () => {
  const company = await onboard(database.db);
  await walk(company, 'a1', 'b1');
  const before = await point();
  await walk(company, 'a1');
  await stampChanges(database.db);
  await database.db.pool.query(`UPDATE muster.change_batches SET changed_at = now() + interval '1 ms' - interval '31 days'`);
  const after = await point();
  await removeOldChanges(database.db, 30);
  expect(await asOf(after, company)).toEqual(both([{ id: 'a', n: 1 }]));
  const old = new Date(Date.now() - 32 * 86_400_000).toISOString();
  expect(await asOf({ instant: old, seq: before.seq }, company)).toEqual(
    refused('some versions that were valid then are no longer kept', 'CHANGE_RETENTION_DAYS says how long changes are kept.'),
  );
});

test('retention ends what a purge says with what it purged', async () => {
  const company = await onboard(database.db);
  await walk(company, 'a1');
  await redactStored(database.db, { ...company, resource: 'employees' }, RULES);
  await stampChanges(database.db);
  await database.db.pool.query(`UPDATE muster.change_batches SET changed_at = now() - interval '31 days'`);
  await removeOldChanges(database.db, 30);
  expect(await database.db.prisma.purge.count()).toBe(0);
  expect(await limits()).toMatchObject([{ resource: 'employees', cause: 'retention' }]);
});

test('a number that is not given yet is refused, and so is none', async () => {
  const { seq } = await point();
  const next = String(BigInt(seq) + 1n);
  const call = (value: string | null) => database.db.pool.query('SELECT FROM warehouse.employees_as_of_seq($1)', [value]);
  await expect(call(next)).rejects.toThrow(
    `as_of_seq answers up to ${seq}, the last number of the feed: ${next} is not known yet`,
  );
  await expect(call(null)).rejects.toThrow('no number is not known yet');
});
