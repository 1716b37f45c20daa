import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';

// PostgreSQL has learned to ask whether a text is a day (16) and to take it at once (17). Each server makes the functions that it can; those of the older
// ones are made here as well, each in a schema of its own.

const MIGRATIONS = ['20261125180000_schema_log', '20261127330000_moments_in_range', '20261128100000_column_types'].map(
  (name) => new URL(`../../prisma/migrations/${name}/migration.sql`, import.meta.url),
);
const VERSION = "current_setting('server_version_num')::integer";

let database: TestDatabase;
let newest: number;
let blocks: string[];
beforeAll(async () => {
  database = await testDatabase();
  const { rows } = await database.db.pool.query<{ version: number }>(`SELECT ${VERSION} AS version`);
  newest = Math.floor(rows[0]!.version / 10_000);
  blocks = MIGRATIONS.flatMap((file) => readFileSync(file, 'utf8').match(/^DO \$do\$[^]*?^END \$do\$;/gm) ?? []);
  for (const version of servers()) {
    await database.db.pool.query(`CREATE SCHEMA as_of_${version}`);
    for (const block of blocks) {
      await database.db.pool.query(block.replaceAll('"muster".', `as_of_${version}.`).replace(VERSION, `${version}0000`));
    }
  }
});
afterAll(() => database.close());

/** Those whose functions this server understands. */
const servers = () => [15, 16, 17].filter((version) => version <= newest);

const DAYS = ['2024-02-29', '2000-02-29', '0001-01-01', '9999-12-31', '1999-04-30'];
const MOMENTS = [
  '2024-02-29T10:00:00Z',
  '2024-02-29T10:00Z',
  '1999-12-31T23:59:59.123456Z',
  '2024-05-01T10:00:00.5+01:00',
  '2024-05-01T10:00-05:30',
];
/** Moments with what they are in UTC, where Date does not know or keep it. */
const EDGES: readonly (readonly [string, string])[] = [
  ['2024-02-29T24:00:00Z', '2024-03-01 00:00:00'],
  ['2024-02-29T24:00Z', '2024-03-01 00:00:00'],
  ['2016-12-31T23:59:60Z', '2017-01-01 00:00:00'],
  ['2024-02-29T10:00:00+15:59', '2024-02-28 18:01:00'],
  ['2024-02-29T10:00:00.12345678901234Z', '2024-02-29 10:00:00.123457'],
  ['0001-01-01T00:00:00Z', '0001-01-01 00:00:00'],
  ['0001-01-01T01:00:00+01:00', '0001-01-01 00:00:00'],
  ['0001-01-01T00:00:00-01:00', '0001-01-01 01:00:00'],
  ['9999-12-31T23:59:59.999999Z', '9999-12-31 23:59:59.999999'],
  ['9999-12-31T23:59:59.9999994Z', '9999-12-31 23:59:59.999999'],
  ['9999-12-31T23:59:59.9999999+00:01', '9999-12-31 23:59:00'],
  ['9999-12-30T24:00:00-12:00', '9999-12-31 12:00:00'],
];
/** Dates with a time and no zone, with what they are. */
const ZONELESS: readonly (readonly [string, string])[] = [
  ['2024-02-29T00:00:00', '2024-02-29 00:00:00'],
  ['2024-02-29T10:00', '2024-02-29 10:00:00'],
  ['2024-02-29 10:00', '2024-02-29 10:00:00'],
  ['2024-02-29 10:00:00', '2024-02-29 10:00:00'],
  ['2024-02-29T10:00:00.1234567', '2024-02-29 10:00:00.123457'],
  ['2024-02-29 10:00:00.5', '2024-02-29 10:00:00.5'],
  ['2024-02-29T10:00:00.123456789012345678901234567890', '2024-02-29 10:00:00.123457'],
  ['2024-02-29T24:00:00', '2024-03-01 00:00:00'],
  ['2024-02-29T24:00', '2024-03-01 00:00:00'],
  ['2016-12-31T23:59:60', '2017-01-01 00:00:00'],
  ['0001-01-01T00:00:00', '0001-01-01 00:00:00'],
  ['9999-12-31T00:00:00', '9999-12-31 00:00:00'],
  ['9999-12-31T23:59:59.999999', '9999-12-31 23:59:59.999999'],
  ['9999-12-31 23:59:59.9999994', '9999-12-31 23:59:59.999999'],
  ['9999-12-30T24:00:00', '9999-12-31 00:00:00'],
];
const ZONELESS_BEYOND = [
  '9999-12-31T23:59:59.9999999',
  '9999-12-31 23:59:59.9999995',
  '9999-12-31T24:00:00',
  '9999-12-31T23:59:60',
  '0000-00-00 00:00:00',
  '0000-00-00T00:00',
  '10000-01-01T00:00:00',
  '+010000-01-01T00:00:00.000',
  '-000001-12-31 23:59:59',
];
/** Written as moments, and beyond the years 1 to 9999 once rounded and moved to UTC. */
const BEYOND = [
  '9999-12-31T23:59:59.9999999Z',
  '9999-12-31T23:59:59.9999995Z',
  '9999-12-31T23:59:59.9999999-12:00',
  '9999-12-31T12:00:00-12:00',
  '9999-12-31T24:00:00Z',
  '9999-12-31T23:59:60Z',
  '0001-01-01T00:00:00+01:00',
  '0001-01-01T15:58:59+15:59',
  '0000-01-01T00:00:00Z',
  '0000-00-00T00:00:00Z',
  '10000-01-01T00:00:00Z',
  '+010000-01-01T00:00:00.000Z',
  '-000001-12-31T23:59:59Z',
];
const NEITHER = [
  ...BEYOND,
  ...ZONELESS_BEYOND,
  '2024-02-29T10:00:00 ',
  '2024-02-29  10:00:00',
  '2024-02-29_10:00:00',
  '2024-02-29t10:00:00',
  '2024-02-29T10:00:00.',
  '2024-02-29T10:00:00,5',
  '2024-02-29T10:00:0',
  '2024-02-29T10:00:000',
  '2024-02-29T10:000',
  '2024-02-29T10:00:',
  '2024-02-29T1:00:00',
  '2024-02-29T10:00:00.1234567890123456789012345678901',
  '2024-02-29T24:00:00.5',
  '2024-02-29T10:00:60.5',
  '2024-02-29T24:00:01',
  '2024-02-30T10:00:00',
  '2023-02-29 10:00:00',
  '2024-02-29T25:00:00',
  '2024-02-29T10:60:00',
  '2024-02-29 10:00 AM',
  '2024-02-29 10:00 BC',
  '2024-02-29 10:00:00+00',
  '2024-02-29 10:00:00 UTC',
  '2024-02-29 10:00:00 Europe/Oslo',
  '２０２４-02-29T10:00:00',
  '2024-02-29Tab:cd',
  '2024.02.29T10:00:00',
  '-infinity',
  '10000-01-01',
  '0000-00-00',
  '   1-01-01',
  '2024-05-01T10:0Z',
  '2024-05-01T24:00:01Z',
  '2024-05-01T24:00:00.5Z',
  '2024-05-01T23:59:61Z',
  '2024-05-01T10:00:00+16:00',
  '0500-01-01T10:00 BC Z',
  '0500-01-01T10:00 bc+00:00',
  '',
  'now',
  'today',
  'infinity',
  '20240229',
  '2023-02-29',
  '1900-02-29',
  '2024-02-30',
  '2024-13-01',
  '2024-00-10',
  '0000-01-01',
  '2024-1-1',
  ' 2024-01-01',
  '2024-01-01 ',
  '２０２４-01-01',
  'abcd-ef-gh',
  '____-__-__',
  '294277-01-01',
  '2024-05-01T25:00:00Z',
  '2024-05-01T10:61:00Z',
  '2024-02-30T10:00:00Z',
  '2024-05-01 10:00:00Z',
  '2024-05-01T10:00:00X',
  '2024-05-01T10:00:00+99:00',
  '2024-05-01Tab:cdZ',
];

async function read(schema: string, text: string) {
  const { rows } = await database.db.pool.query<
    Record<'day' | 'zoneless' | 'moment' | 'dayText' | 'zonelessText' | 'momentText', unknown>
  >(
    `SELECT ${schema}.is_date(x) AS day, ${schema}.is_timestamp(x) AS zoneless, ${schema}.is_timestamptz(x) AS moment,
       ${schema}.timestamp_at(data, path, x)::text AS "zonelessText", ${schema}.date_at(data, path, x)::text AS "dayText",
       (${schema}.timestamptz_at(data, path, x) AT TIME ZONE 'UTC')::text AS "momentText"
     FROM (SELECT $1::text AS x, jsonb_build_object('a "key"', jsonb_build_object('0', $1::text)) AS data,
       'strict $."a \\"key\\""."0"'::jsonpath AS path OFFSET 0) t`,
    [text],
  );
  return rows[0]!;
}

test('servers of every version take the same texts for days and moments, and fail on none', async () => {
  expect(blocks.filter((block) => block.includes(VERSION))).toHaveLength(6);
  for (const schema of ['muster', ...servers().map((version) => `as_of_${version}`)]) {
    for (const text of DAYS)
      expect([schema, text, await read(schema, text)]).toEqual([
        schema,
        text,
        { day: true, zoneless: false, moment: false, dayText: text, zonelessText: null, momentText: null },
      ]);
    for (const text of MOMENTS) {
      const { momentText, ...rest } = await read(schema, text);
      expect([schema, text, rest]).toEqual([
        schema,
        text,
        { day: false, zoneless: false, moment: true, dayText: null, zonelessText: null },
      ]);
      expect(Date.parse(`${String(momentText).replace(' ', 'T')}Z`)).toBe(Date.parse(text));
    }
    for (const [text, momentText] of EDGES) {
      const shown = { day: false, zoneless: false, moment: true, dayText: null, zonelessText: null, momentText };
      expect([schema, text, await read(schema, text)]).toEqual([schema, text, shown]);
    }
    for (const [text, zonelessText] of ZONELESS) {
      const shown = { day: false, zoneless: true, moment: false, dayText: null, zonelessText, momentText: null };
      expect([schema, text, await read(schema, text)]).toEqual([schema, text, shown]);
    }
    for (const text of NEITHER)
      expect([schema, text, await read(schema, text)]).toEqual([
        schema,
        text,
        { day: false, zoneless: false, moment: false, dayText: null, zonelessText: null, momentText: null },
      ]);
  }
});

test('what is beyond the years that are shown has a kind of its own', async () => {
  const kindOf = async (text: string) =>
    (await database.db.pool.query<{ kind: string }>('SELECT muster.kind_of(to_jsonb($1::text)) AS kind', [text])).rows[0]!.kind;
  for (const text of BEYOND) expect([text, await kindOf(text)]).toEqual([text, 'timestamptz_beyond']);
  for (const text of ZONELESS_BEYOND) expect([text, await kindOf(text)]).toEqual([text, 'timestamp_beyond']);
  for (const [text] of ZONELESS) expect([text, await kindOf(text)]).toEqual([text, 'timestamp']);
  for (const text of ['10000-01-01', '0000-00-00', '9999-99-99', '+010000-01-01'])
    expect([text, await kindOf(text)]).toEqual([text, 'date_beyond']);
  for (const text of ['', '-infinity', '2024-02-30', '12345-6-7890', 'ABCDE-12-34', '12345-67', '0000-00-00x', '10000-01-01T'])
    expect([text, await kindOf(text)]).toEqual([text, 'string']);
  for (const text of DAYS) expect([text, await kindOf(text)]).toEqual([text, 'date']);
  for (const text of [...MOMENTS, ...EDGES.map(([each]) => each)])
    expect([text, await kindOf(text)]).toEqual([text, 'timestamptz']);
});

test('PostgreSQL puts each of them into the query, without a call', async () => {
  for (const version of servers()) {
    const { rows } = await database.db.pool.query<Record<string, string>>(
      `EXPLAIN (VERBOSE) SELECT as_of_${version}.date_at(data, 'strict $."a"', data->>'a'), as_of_${version}.timestamptz_at(data, 'strict $."a"', data->>'a'),
         as_of_${version}.timestamp_at(data, 'strict $."a"', data->>'a')
       FROM mirror.employees`,
    );
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).not.toMatch(/_at\(|is_date|is_timestamp/);
  }
});
