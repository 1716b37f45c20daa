import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { openFileDestination } from '../../src/warehouse/export/destinations/file-destination.js';
import { exportResource } from '../../src/warehouse/export/export-resource.js';
import type { ExportFormat } from '../../src/warehouse/export/export-settings.js';
import { schemaSweep } from '../../src/warehouse/schema-sweep.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { type Duck, openDuck } from './duck.js';
import { mirrorRecords, NO_ENTRIES } from './warehouse-fixture.js';

// Days and moments beyond the years 1 to 9999, after rounding and in UTC, stand as texts beside their columns.

const MIGRATIONS = new URL('../../prisma/migrations/', import.meta.url);
const FOR_EVER = '9999-12-31T23:59:59.9999999Z';

let database: TestDatabase;
let company: CompanyKey;
let folder: string;
let duck: Duck;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-beyond-'));
  duck = await openDuck();
});
beforeEach(async () => {
  database = await testDatabase();
  company = await onboard(database.db);
  await ensureTypedViews(database.db, { endpoints: [{ resource: 'employees' }] } as never);
});
afterEach(() => database.close());
afterAll(() => {
  duck.close();
  rmSync(folder, { recursive: true });
});

const query = async <Row extends object>(text: string) => (await database.db.pool.query<Row>(text)).rows;
const moment = (n: number) => `2024-05-${String(1 + (n % 28)).padStart(2, '0')}T10:00:00Z`;
const typeOf = async (name: string) =>
  (
    await query<{ type: string }>(
      `SELECT data_type AS type FROM information_schema.columns WHERE table_schema = 'warehouse' AND table_name = 'employees' AND column_name = '${name}'`,
    )
  )[0]?.type;

/** Records of which each value beyond has one. */
const records = (values: Readonly<Record<string, readonly string[]>>, count = 40) =>
  Array.from({ length: count }, (_, n) => ({
    id: `e${n}`,
    validTo: values['validTo']?.[n] ?? moment(n),
    born: values['born']?.[n] ?? moment(n).slice(0, 10),
  }));

test('a column of moments stays one where some say for ever, and each that does not fit is a text beside it', async () => {
  const beyond = [
    FOR_EVER,
    '9999-12-31T23:59:59.9999999-12:00',
    '0001-01-01T00:00:00+01:00',
    '0000-00-00T00:00:00Z',
    '+010000-01-01T00:00:00.000Z',
  ];
  const within = ['9999-12-31T23:59:59.9999994Z', '0001-01-01T00:00:00Z', '2024-02-29T24:00:00Z'];
  await mirrorRecords(
    database.db,
    company,
    records({ validTo: [...beyond, ...within], born: ['10000-01-01', '0000-00-00', '9999-12-31', '0001-01-01'] }),
  );
  expect([await typeOf('valid_to'), await typeOf('born')]).toEqual(['timestamp with time zone', 'date']);
  const shown = await query(
    `SELECT (valid_to AT TIME ZONE 'UTC')::text AS at, valid_to__text AS text FROM warehouse.employees ORDER BY substr(id, 2)::int LIMIT 8`,
  );
  expect(shown).toEqual([
    ...beyond.map((text) => ({ at: null, text })),
    { at: '9999-12-31 23:59:59.999999', text: null },
    { at: '0001-01-01 00:00:00', text: null },
    { at: '2024-03-01 00:00:00', text: null },
  ]);
  expect(
    await query(`SELECT born::text, born__text AS text FROM warehouse.employees ORDER BY substr(id, 2)::int LIMIT 5`),
  ).toEqual([
    { born: null, text: '10000-01-01' },
    { born: null, text: '0000-00-00' },
    { born: '9999-12-31', text: null },
    { born: '0001-01-01', text: null },
    { born: '2024-05-05', text: null },
  ]);
  const [history] = await query(`SELECT valid_to, valid_to__text FROM warehouse.employees_history WHERE id = 'e0'`);
  expect(history).toEqual({ valid_to: null, valid_to__text: FOR_EVER });
});

test('a date and a time without a zone are a timestamp, and what is beyond the years is a text beside it', async () => {
  const beyond = ['9999-12-31T23:59:59.9999999', '0000-00-00 00:00:00'];
  const within = ['0001-01-01T00:00:00', '2024-02-29 10:00:00.1234567', '2024-02-29T10:00'];
  const other = Array.from({ length: 40 }, (_, n) => moment(n).slice(0, 19));
  const validTo = [...beyond, ...within, ...other].slice(0, 40);
  await mirrorRecords(database.db, company, records({ validTo }));
  expect(await typeOf('valid_to')).toBe('timestamp without time zone');
  expect(
    await query(`SELECT valid_to::text, valid_to__text AS text FROM warehouse.employees ORDER BY substr(id, 2)::int LIMIT 6`),
  ).toEqual([
    ...beyond.map((text) => ({ valid_to: null, text })),
    { valid_to: '0001-01-01 00:00:00', text: null },
    { valid_to: '2024-02-29 10:00:00.123457', text: null },
    { valid_to: '2024-02-29 10:00:00', text: null },
    { valid_to: '2024-05-01 10:00:00', text: null },
  ]);
  expect(await database.db.prisma.schemaTypeMismatch.count()).toBe(0);
  await mirrorRecords(database.db, company, [{ ...records({})[7]!, validTo: moment(7) }]);
  expect(await query(`SELECT valid_to, valid_to__text AS text FROM warehouse.employees WHERE id = 'e7'`)).toEqual([
    { valid_to: null, text: moment(7) },
  ]);
  expect(await database.db.prisma.schemaTypeMismatch.count()).toBe(1);
});

test('a value beyond is no reason for an issue, even where it comes later', async () => {
  await mirrorRecords(database.db, company, records({}));
  await mirrorRecords(database.db, company, [{ ...records({})[1]!, validTo: FOR_EVER }]);
  expect(await query(`SELECT valid_to, valid_to__text FROM warehouse.employees WHERE id = 'e1'`)).toEqual([
    { valid_to: null, valid_to__text: FOR_EVER },
  ]);
  expect(await database.db.prisma.schemaTypeMismatch.count()).toBe(0);
  expect(await database.db.prisma.schemaColumn.findFirst({ where: { name: 'valid_to' } })).toMatchObject({ misfits: 1n });
  await mirrorRecords(database.db, company, [{ ...records({})[1]!, validTo: 'soon' }]);
  expect(await database.db.prisma.schemaTypeMismatch.count()).toBe(1);
});

test('a column of which every value says for ever is one of moments; codes that look like days of large years are texts', async () => {
  await mirrorRecords(
    database.db,
    company,
    records({ validTo: Array<string>(40).fill(FOR_EVER), born: Array.from({ length: 40 }, (_, n) => `${10_000 + n}-11-12`) }),
  );
  expect([await typeOf('valid_to'), await typeOf('born')]).toEqual(['timestamp with time zone', 'text']);
  expect(await query(`SELECT valid_to, valid_to__text, born FROM warehouse.employees WHERE id = 'e3'`)).toEqual([
    { valid_to: null, valid_to__text: FOR_EVER, born: '10003-11-12' },
  ]);
});

test.each(['parquet', 'csv', 'ndjson'] satisfies ExportFormat[])(
  'an export as %s keeps the type, and has the text',
  async (format) => {
    await mirrorRecords(database.db, company, records({ validTo: [FOR_EVER, '0001-01-01T00:00:00+01:00'] }));
    const path = join(folder, `${Math.random()}.${format}`);
    const manifest = await exportResource({
      db: database.db,
      request: { resource: 'employees' },
      format,
      destination: await openFileDestination(path),
    });
    const { type, stored_as } = manifest.columns.find(({ name }) => name === 'valid_to')!;
    expect([type, stored_as]).toEqual(['timestamptz', format === 'parquet' ? 'TIMESTAMP' : undefined]);
    const file =
      format === 'ndjson' ? `read_ndjson('${path}')` : format === 'csv' ? `read_csv('${path}', all_varchar = true)` : `'${path}'`;
    expect(
      await duck.rows(`SELECT valid_to IS NULL, valid_to__text FROM ${file} WHERE id IN ('e0', 'e1', 'e2') ORDER BY id`),
    ).toEqual([
      [true, FOR_EVER],
      [true, '0001-01-01T00:00:00+01:00'],
      [false, null],
    ]);
  },
);

test('a view of the version before is right from the migration on, and has its text column with the next sweep', async () => {
  const learned = readFileSync(new URL('20261125180000_schema_log/migration.sql', MIGRATIONS), 'utf8');
  const functions = [
    ...learned.matchAll(/^(?:DO \$do\$[^]*?^END \$do\$;|CREATE FUNCTION "muster"."kind_of"[^]*?END \$\$;)/gm),
  ].map(([text]) => text);
  expect(functions).toHaveLength(3);
  for (const text of functions) await database.db.pool.query(text.replaceAll('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION'));
  await mirrorRecords(database.db, company, records({ validTo: [FOR_EVER] }));
  const read = () => query(`SELECT * FROM warehouse.employees WHERE id = 'e0'`);
  const [before] = await database.db.pool
    .query<{ year: string }>(
      `SELECT extract(year FROM valid_to AT TIME ZONE 'UTC')::text AS year FROM warehouse.employees WHERE id = 'e0'`,
    )
    .then(({ rows }) => rows);
  expect(before).toEqual({ year: '10000' });

  await database.db.pool.query(readFileSync(new URL('20261127330000_moments_in_range/migration.sql', MIGRATIONS), 'utf8'));
  expect(await read()).toMatchObject([{ valid_to: null }]);
  await schemaSweep({ db: database.db, catalogue: NO_ENTRIES, clock: systemClock, logger: pino({ level: 'silent' }) })();
  expect(await read()).toMatchObject([{ valid_to: null, valid_to__text: FOR_EVER, born: expect.anything() as Date }]);
  expect(await typeOf('valid_to')).toBe('timestamp with time zone');
});
