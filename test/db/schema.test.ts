import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';

// The schema of Prisma and the migrations are two texts: this is what holds them together.
let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterAll(() => database.close());

interface Column {
  type: string;
  nullable: boolean;
}

const TYPES: Record<string, string> = {
  BigInt: 'bigint',
  Bytes: 'bytea',
  Boolean: 'boolean',
  DateTime: 'timestamp with time zone',
  'DateTime[]': 'timestamp with time zone[]',
  Float: 'double precision',
  Int: 'integer',
  'Int[]': 'integer[]',
  Json: 'jsonb',
  String: 'text',
  'String[]': 'text[]',
};

const MODELS = [
  ...readFileSync(new URL('../../prisma/schema.prisma', import.meta.url), 'utf8').matchAll(/^model (\w+) \{(.*?)^\}/gms),
].map(([, model = '', body = '']) => ({
  model,
  table: `${/@@schema\("(\w+)"\)/.exec(body)?.[1]}.${/@@map\("(\w+)"\)/.exec(body)?.[1]}`,
  columns: columnsOf(body),
}));

function columnsOf(body: string): Record<string, Column> {
  const columns: Record<string, Column> = {};
  for (const [line, field = '', name = '', list = '', optional] of body.matchAll(/^ {2}(\w+) +(\w+)(\[\])?(\?)?.*$/gm)) {
    const type = /@db\.(Uuid|Date)\b/.exec(line)?.[1]?.toLowerCase() ?? TYPES[name + (list ?? '')];
    if (type) columns[/@map\("(\w+)"\)/.exec(line)?.[1] ?? field] = { type, nullable: Boolean(optional) || type.endsWith('[]') };
  }
  return columns;
}

describe.each(MODELS)('$model', ({ model, table, columns }) => {
  test(`has the columns of ${table}`, async () => {
    const { rows } = await database.db.pool.query<{ columns: Record<string, Column> }>(
      `SELECT json_object_agg(attname, json_build_object('type', regexp_replace(format_type(atttypid, -1), '\\(.*\\)', ''), 'nullable', NOT attnotnull)) AS columns
       FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`,
      [table],
    );
    expect(rows[0]?.columns).toEqual(columns);
  });

  test('can be read with every field', async () => {
    const delegate = model.replace(/^./, (letter) => letter.toLowerCase());
    // Without a selection Prisma names every column.
    const readers = database.db.prisma as unknown as Record<string, { findFirst(): Promise<unknown> } | undefined>;
    expect(await readers[delegate]?.findFirst()).not.toBeUndefined();
  });
});

test('no table is without a model', async () => {
  const { rows } = await database.db.pool.query<{ name: string }>(
    `SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname IN ('mirror', 'muster')`,
  );
  expect(rows.map((row) => row.name).toSorted()).toEqual(MODELS.map(({ table }) => table).toSorted());
});
