import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { hasNews, MOST_COLUMNS, MOST_KEYS } from '../../src/db/tables/schema-columns.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { sweepOf } from '../runs/issue-world.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, learn, mirrorRecords } from '../warehouse/warehouse-fixture.js';

// A member that holds others called by ids gives every record keys of its own.

let database: TestDatabase;
let company: CompanyKey;
beforeAll(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, { endpoints: [{ resource: 'employees' }] } as never);
});
afterAll(() => database.close());

const keysOf = (from: number, count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${from + n}`, n]));
const counts = async () => {
  const { schemaColumn } = database.db.prisma;
  return { keys: await schemaColumn.count(), columns: await schemaColumn.count({ where: { position: { not: null } } }) };
};
const issues = async () => {
  await sweepOf(database.db)();
  return database.db.prisma.issue.findMany({ where: { cause: 'many_keys' }, select: { status: true, resource: true } });
};

test('a few keys are no issue', async () => {
  await mirrorRecords(database.db, company, [{ id: '0', name: 'x' }]);
  expect(await issues()).toEqual([]);
});

test('at nine tenths of the columns an issue says what to do', async () => {
  await mirrorRecords(database.db, company, [{ id: 'n', ...keysOf(0, 672) }]);
  expect([await counts(), await issues()]).toEqual([{ keys: 674, columns: 674 }, []]);
  await mirrorRecords(database.db, company, [{ id: 'n', ...keysOf(0, 673) }]);
  expect(await issues()).toEqual([{ status: 'ongoing', resource: 'employees' }]);
});

test('of 60,000 keys the log keeps few, and an issue says so', async () => {
  await mirrorRecords(database.db, company, [
    { id: '1', ...keysOf(0, 60_000) },
    { id: '2', people: keysOf(60_000, 60_000) },
  ]);
  expect(await counts()).toEqual({ keys: MOST_KEYS, columns: MOST_COLUMNS });
  expect(await issues()).toEqual([{ status: 'ongoing', resource: 'employees' }]);
});

test('what follows adds none, and leaves nothing to be done', async () => {
  const columns = await columnsOf(database.db, 'employees');
  for (let n = 3; n < 6; n += 1) await mirrorRecords(database.db, company, [{ id: String(n), ...keysOf(1_000_000 * n, 5_000) }]);
  await learn(database.db);
  expect(await counts()).toEqual({ keys: MOST_KEYS, columns: MOST_COLUMNS });
  expect(await columnsOf(database.db, 'employees')).toEqual(columns);
  expect(await hasNews(database.db)).toBe(false);
});
