import type pg from 'pg';

/** A company of each environment, whose gadgets are exported. */
const COMPANIES = [
  ['production', 'a0000000-0000-4000-8000-000000000001'],
  ['test', 'a0000000-0000-4000-8000-000000000002'],
] as const;

/** Columns of every type, under names that need quoting everywhere. The texts of `data` go through PostgreSQL alone. */
const VIEW = `
  SELECT environment, company_id, id,
    data->>'name' AS name,
    data->>'note' AS "a ""quoted"", 😀 name",
    data->>'often' AS often,
    data->>'often' AS "dotted.name,",
    (data->>'active')::boolean AS active,
    (data->>'hours')::numeric AS hours,
    (data->>'price')::numeric AS price,
    (data->>'exact')::numeric AS exact,
    (data->>'beyond')::numeric AS beyond,
    (data->>'odd')::numeric AS odd,
    (data->>'born')::date AS born,
    (data->>'ends')::date AS ends,
    (data->>'at')::timestamptz AS at,
    (data->>'local')::timestamp AS local,
    (data->>'until')::timestamptz AS until,
    data->'tags' AS tags,
    NULL::numeric AS never,
    first_seen_at AS _first_seen_at, changed_at AS _changed_at
  FROM mirror.gadgets WHERE deleted_at IS NULL`;

/** Texts that some format, reader or language takes for something else. */
const TEXTS = [
  '',
  ' ',
  'NULL',
  '\\N',
  '\\.',
  'null',
  '"',
  '""',
  ',',
  ';',
  '\t',
  '\r',
  '\n',
  '\r\n',
  'a,b',
  'say "hello"',
  'line\none',
  "it's",
  '\\',
  '\\"',
  '=1+1',
  '+1',
  '-1',
  '@SUM(A1)',
  '😀',
  'Łódź',
  '\u{10ffff}',
  '\ue000',
  '\ufeff',
  '\u2028',
  'é',
  'e\u0301',
  '0012',
  '1e5',
  'true',
  '2024-02-30',
  'x'.repeat(5_000),
]; // prettier-ignore

/** A table of a resource of our own, with its view, and this many living records in it beside some that are deleted. */
export async function makeGadgets(client: pg.ClientBase | pg.Pool, records: number): Promise<void> {
  await client.query(`CREATE SCHEMA IF NOT EXISTS warehouse`);
  await client.query(`CREATE TABLE mirror.gadgets (LIKE mirror.employees INCLUDING ALL)`);
  await client.query(`CREATE VIEW warehouse.gadgets AS ${VIEW}`);
  for (const [environment, companyId] of COMPANIES) {
    await client.query(`INSERT INTO muster.connections (environment, company_id) VALUES ($1, $2)`, [environment, companyId]);
  }
  await client.query(
    `INSERT INTO mirror.gadgets (environment, company_id, id, data, first_seen_at, changed_at, deleted_at)
     SELECT CASE n % 2 WHEN 0 THEN 'production' ELSE 'test' END,
       CASE n % 2 WHEN 0 THEN $2::uuid ELSE $3::uuid END, 'g' || n,
       jsonb_strip_nulls(jsonb_build_object(
         'name', 'Gadget number ' || n,
         'note', CASE WHEN n % 7 <> 0 THEN ($4::text[])[1 + n % cardinality($4::text[])] END,
         'often', (ARRAY['red', 'green', 'blue'])[1 + n % 3],
         'active', CASE n % 3 WHEN 0 THEN true WHEN 1 THEN false END,
         'hours', CASE WHEN n % 5 <> 0 THEN (n * 37.25 - 5000)::numeric END,
         'price', round(n * 1.5, 2),
         'exact', CASE WHEN n % 4 <> 0 THEN (CASE n % 3 WHEN 0 THEN -1 ELSE 1 END) * (12345678901234567890123456789::numeric + n / 1000.0) END,
         'beyond', CASE n % 50 WHEN 0 THEN 1234567890123456789012345678901234567890.123 + n ELSE n END,
         'odd', CASE n % 100 WHEN 7 THEN 'NaN' WHEN 8 THEN '-Infinity' ELSE n::text END,
         'born', date '1890-01-01' + n,
         'ends', CASE n % 60 WHEN 3 THEN 'infinity' WHEN 4 THEN '0044-03-15 BC' ELSE (date '2024-01-01' + n)::text END,
         'at', timestamptz '1969-12-31 23:00:00Z' + n * interval '7.000001 minutes',
         'local', CASE n % 80 WHEN 9 THEN '-infinity' WHEN 10 THEN '12026-01-01 00:00:00' ELSE (timestamp '1969-12-31 23:00:00' + n * interval '7.000001 minutes')::text END,
         'until', CASE n % 90 WHEN 5 THEN '-infinity' WHEN 6 THEN '294276-12-31 23:59:59.999999Z' ELSE '2024-06-01T00:00:00+02:00' END,
         'tags', jsonb_build_array(n, ('1.' || repeat('0', n % 9) || n)::numeric, ($4::text[])[1 + n % cardinality($4::text[])])
       )), timestamptz '2026-01-01 00:00:00.000001Z' + n * interval '1 second', now(), CASE WHEN n > $1 THEN now() END
     FROM generate_series(1, $1::int + 10) n`,
    [records, COMPANIES[0][1], COMPANIES[1][1], TEXTS],
  );
  await client.query(
    `INSERT INTO muster.lists (environment, company_id, resource, records)
     SELECT environment, company_id, 'gadgets', count(*) FROM mirror.gadgets WHERE deleted_at IS NULL GROUP BY 1, 2`,
  );
}
