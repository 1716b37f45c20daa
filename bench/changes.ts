import type pg from 'pg';
import { openBench, until } from './bench-setup.js';
import type { Measures } from './measures.js';

/** Changes of a first mirror in one batch, kept as the text that was received. */
const WHOLE = 250;
/** Changes of a night in one batch, which have a row each. */
const MOST_ROWS = 20;
const PAGE = 10_000;
/** Enough to learn the columns from. */
const LEARNED_FROM = 5_000;

const VIEW = 'warehouse.employees_changes';
const TABLE = 'public.plain_changes';

/**
 * What a reader waits for pages of the typed changes after several numbers, against a plain table with the same typed columns and an index on the number.
 * Both are read page by page into the same client, one after the other.
 */
export async function measureChanges(measures: Measures, changes: number): Promise<void> {
  const bench = await openBench({ companies: 1, records: 10, size: 500, style: 'skip-take' });
  try {
    const { pool } = bench;
    await addChanges(pool, LEARNED_FROM);
    await until(
      async () => (await pool.query(`SELECT hire_date, modified_at, address__city FROM ${VIEW} LIMIT 1`)).rowCount === 1,
    );
    await addChanges(pool, changes - LEARNED_FROM);
    await bench.settle();
    await pool.query(`CREATE TABLE ${TABLE} AS SELECT * FROM ${VIEW} ORDER BY _seq; CREATE INDEX ON ${TABLE} (_seq)`);
    await pool.query(`VACUUM ANALYZE ${TABLE}`);
    await pool.query('VACUUM ANALYZE muster.change_batches, muster.changes, muster.change_numbers');
    await pool.query('CHECKPOINT');
    for (const share of [0, 0.25, 0.5, 0.75]) {
      const from = Math.floor(changes * share);
      for (const [columns, named] of [
        ['*', 'all columns'],
        ['_seq, _op, environment, company_id, id, last_name, hire_date, salary', 'three columns'],
      ] as const) {
        const read = (of: string) => seconds(pool, `SELECT ${columns} FROM ${of}`, from, Math.floor(changes / 4));
        await read(VIEW);
        const [plain, view] = [await read(TABLE), await read(VIEW)];
        measures.note(`typed changes of ${changes.toLocaleString('en-US')}, ${named}: rows/s / a plain table`, plain / view);
      }
    }
  } finally {
    await bench.stop();
  }
}

const record = `jsonb_build_object(
  'employeeNumber', n::text, 'firstName', 'First ' || n, 'lastName', 'Last ' || md5(n::text), 'email', 'employee.' || n || '@example.com',
  'hireDate', (date '1990-01-01' + n % 12000)::text, 'departmentId', md5((n % 500)::text), 'jobTitle', 'Account Manager',
  'salary', n * 1.25, 'hourlyRate', 180 + n % 400, 'active', n % 20 > 0, 'note', CASE WHEN n % 3 = 0 THEN 'Works from home on Fridays' END,
  'address', jsonb_build_object('street', 'Storgata ' || n % 180, 'postalCode', (n % 9999)::text, 'city', 'City ' || n % 100),
  'modifiedAt', to_char(timestamp '2020-01-01' + n * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
const COMPANY = `'b0000000-0000-4000-8000-000000000003'::uuid`;

/** Seven tenths are a first mirror, the others nights; a worker numbers them and learns from them. */
async function addChanges(pool: pg.Pool, changes: number): Promise<void> {
  const whole = Math.floor((changes * 0.7) / WHOLE);
  await pool.query(`
    WITH sent AS (
      SELECT b, n, ${record}::text AS text FROM generate_series(1, ${whole}) b, LATERAL generate_series(b * ${WHOLE}, b * ${WHOLE} + ${WHOLE - 1}) n
    ), placed AS (
      SELECT b, n, text, octet_length(text) AS length, 1 + sum(octet_length(text)) OVER (PARTITION BY b ORDER BY n) - octet_length(text) AS start FROM sent
    )
    INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at, ids, starts, lengths, texts)
    SELECT ${WHOLE}, 'test', ${COMPANY}, 'employees', now(), array_agg('e' || n ORDER BY n), array_agg(start::int ORDER BY n),
      array_agg(length ORDER BY n), convert_to(string_agg(text, '' ORDER BY n), 'UTF8')
    FROM placed GROUP BY b ORDER BY b`);
  await pool.query(`
    WITH batch AS (
      INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
      SELECT 1 + n % ${MOST_ROWS}, 'test', ${COMPANY}, 'employees', now()
      FROM generate_series(1, ${Math.floor((2 * (changes - whole * WHOLE)) / (MOST_ROWS + 1))}) n RETURNING id, size
    )
    INSERT INTO muster.changes (batch_id, position, record_id, op, data)
    SELECT id, p, 'e' || n, 'update', ${record} FROM batch, generate_series(0, size - 1) p, LATERAL (SELECT (id * 7 + p)::int AS n) numbered`);
}

/** Of the pages from a number on, until `rows` are read. */
async function seconds(pool: pg.Pool, query: string, from: number, rows: number): Promise<number> {
  const began = performance.now();
  for (let [after, read] = [String(from), 0]; read < rows; ) {
    const { rows: page } = await pool.query<Record<string, string>>(`${query} WHERE _seq > ${after} ORDER BY _seq LIMIT ${PAGE}`);
    if (page.length === 0) break;
    read += page.length;
    after = page.at(-1)!['_seq']!;
  }
  return (performance.now() - began) / 1_000;
}
