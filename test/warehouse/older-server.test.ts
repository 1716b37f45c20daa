import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';

// PostgreSQL has learned to ask whether a text is a day (16) and to take it at once (17). Each server makes the functions that it can; those of the older
// ones are made here as well, each in a schema of its own.

const MIGRATION = new URL('../../prisma/migrations/20261125180000_schema_log/migration.sql', import.meta.url);
const VERSION = "current_setting('server_version_num')::integer";

let database: TestDatabase;
let newest: number;
let blocks: string[];
beforeAll(async () => {
  database = await testDatabase();
  const { rows } = await database.db.pool.query<{ version: number }>(`SELECT ${VERSION} AS version`);
  newest = Math.floor(rows[0]!.version / 10_000);
  blocks = readFileSync(MIGRATION, 'utf8').match(/^DO \$do\$[^]*?^END \$do\$;/gm) ?? [];
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
const NEITHER = [
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
  '2024-05-01T10:00:00',
  '2024-05-01T10:00',
  '2024-05-01T25:00:00Z',
  '2024-05-01T10:61:00Z',
  '2024-02-30T10:00:00Z',
  '2024-05-01 10:00:00Z',
  '2024-05-01T10:00:00X',
  '2024-05-01T10:00:00+99:00',
  '2024-05-01Tab:cdZ',
];

async function read(schema: string, text: string) {
  const { rows } = await database.db.pool.query<Record<'day' | 'moment' | 'dayText' | 'momentText', unknown>>(
    `SELECT ${schema}.is_date(x) AS day, ${schema}.is_timestamptz(x) AS moment, ${schema}.date_at(data, path, x)::text AS "dayText",
       (${schema}.timestamptz_at(data, path, x) AT TIME ZONE 'UTC')::text AS "momentText"
     FROM (SELECT $1::text AS x, jsonb_build_object('a "key"', jsonb_build_object('0', $1::text)) AS data,
       'strict $."a \\"key\\""."0"'::jsonpath AS path OFFSET 0) t`,
    [text],
  );
  return rows[0]!;
}

test('servers of every version take the same texts for days and moments, and fail on none', async () => {
  expect(blocks.filter((block) => block.includes(VERSION))).toHaveLength(2);
  for (const schema of ['muster', ...servers().map((version) => `as_of_${version}`)]) {
    for (const text of DAYS)
      expect([schema, text, await read(schema, text)]).toEqual([
        schema,
        text,
        { day: true, moment: false, dayText: text, momentText: null },
      ]);
    for (const text of MOMENTS) {
      const { momentText, ...rest } = await read(schema, text);
      expect([schema, text, rest]).toEqual([schema, text, { day: false, moment: true, dayText: null }]);
      expect(Date.parse(`${String(momentText).replace(' ', 'T')}Z`)).toBe(Date.parse(text));
    }
    for (const text of NEITHER)
      expect([schema, text, await read(schema, text)]).toEqual([
        schema,
        text,
        { day: false, moment: false, dayText: null, momentText: null },
      ]);
  }
});

test('PostgreSQL puts each of them into the query, without a call', async () => {
  for (const version of servers()) {
    const { rows } = await database.db.pool.query<Record<string, string>>(
      `EXPLAIN (VERBOSE) SELECT as_of_${version}.date_at(data, 'strict $."a"', data->>'a'), as_of_${version}.timestamptz_at(data, 'strict $."a"', data->>'a')
       FROM mirror.employees`,
    );
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).not.toMatch(/_at\(|is_date|is_timestamptz/);
  }
});
