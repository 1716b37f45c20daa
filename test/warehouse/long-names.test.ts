import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { hasNews } from '../../src/db/tables/schema-columns.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { columnsOf, mirrorRecords } from './warehouse-fixture.js';

// Names of members may have any length, and an index has no room for the longest. Random ones cannot be compressed.

let database: TestDatabase;
let company: CompanyKey;
const endpoint = { resource: 'employees', flatten: 4 };
const catalogue = { endpoints: [endpoint], get: () => endpoint } as unknown as Catalogue;
beforeAll(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, catalogue);
});
afterAll(() => database.close());

const nameOf = (bytes: number) => `x${randomBytes(bytes).toString('hex')}`.slice(0, bytes);
const within = (names: readonly string[], value: unknown) =>
  names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
const mirror = (members: object) =>
  mirrorRecords(
    database.db,
    company,
    Array.from({ length: 3 }, (_, n) => ({ id: `e${n}`, ...members })),
    { catalogue },
  );

test('members with longer names than an index has room for are in _rest, and the other members have columns', async () => {
  const halves = [nameOf(900), nameOf(900)];
  const long = {
    [nameOf(3_000)]: 1,
    [nameOf(1_000_000)]: { inner: 1 },
    [nameOf(1_001)]: [{ amount: 1 }],
    apart: within(halves, { amount: 1 }),
  };
  await mirror({ ...long, salary: 1 });
  expect(await columnsOf(database.db, 'employees')).toContain('salary');
  const { rows } = await database.db.pool.query<{ rest: object }>(
    `SELECT _rest AS rest FROM warehouse.employees WHERE id = 'e1'`,
  );
  expect(rows[0]!.rest).toEqual(long);
  expect(await hasNews(database.db, { employees: 4 })).toBe(false);
});

test('the longest names that there is room for have columns and views', async () => {
  const fifths = Array.from({ length: 5 }, () => nameOf(200));
  const [outer, inner] = [nameOf(1_000), nameOf(1_000)];
  await mirror({ ...(within(fifths, 5) as object), [outer]: [{ [inner]: [{ [nameOf(1_000)]: 1 }] }] });
  const { rows } = await database.db.pool.query<{ bytes: number }>(
    `SELECT octet_length(array_to_string(path, '')) AS bytes FROM warehouse.columns WHERE cardinality(path) = 5 OR view <> resource`,
  );
  expect(rows.map(({ bytes }) => bytes)).toEqual([1_000, 1_000, 1_000]);
});
