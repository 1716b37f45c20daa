import type pg from 'pg';
import { openBench, until } from './bench-setup.js';
import type { Measures } from './measures.js';

const COMPANIES = 10;
const MIRROR = 'FROM mirror.employees WHERE deleted_at IS NULL';
const VIEW = 'FROM warehouse.employees';
const COMPANY = "environment = 'test' AND company_id = 'b0000000-0000-4000-8000-000000000003'";

/** What an analyst writes who does not want one odd value to fail the whole query. */
const safe = (text: string, type: string) => `CASE WHEN pg_input_is_valid(${text}, '${type}') THEN (${text})::${type} END`;

/**
 * Each query over the mirror and over the view. Over the mirror it has the type that an analyst would give the value: by a bare cast, which fails with the
 * first value that does not fit; and where it is called `safe` with null for such a value, as the view has it.
 */
const QUERIES: Readonly<Record<string, readonly [overJsonb: string, overView: string]>> = {
  count: [`SELECT count(*) ${MIRROR}`, `SELECT count(*) ${VIEW}`],
  'one company': [
    `SELECT id, data->>'lastName', (data->>'salary')::numeric ${MIRROR} AND ${COMPANY}`,
    `SELECT id, last_name, salary ${VIEW} WHERE ${COMPANY}`,
  ],
  'one id': [
    `SELECT id, data->>'lastName', (data->>'salary')::numeric ${MIRROR} AND ${COMPANY} AND id = 'e3'`,
    `SELECT id, last_name, salary ${VIEW} WHERE ${COMPANY} AND id = 'e3'`,
  ],
  'sum of a numeric': [`SELECT sum((data->>'salary')::numeric) ${MIRROR}`, `SELECT sum(salary) ${VIEW}`],
  'count of a boolean': [
    `SELECT count(*) FILTER (WHERE (data->>'active')::boolean) ${MIRROR}`,
    `SELECT count(*) FILTER (WHERE active) ${VIEW}`,
  ],
  'greatest text': [`SELECT max(data->>'lastName') ${MIRROR}`, `SELECT max(last_name) ${VIEW}`],
  'greatest nested text': [`SELECT max(data->'address'->>'city') ${MIRROR}`, `SELECT max(address__city) ${VIEW}`],
  'greatest date, safe': [`SELECT max(${safe("data->>'hireDate'", 'date')}) ${MIRROR}`, `SELECT max(hire_date) ${VIEW}`],
  'greatest timestamptz, safe': [
    `SELECT max(${safe("data->>'modifiedAt'", 'timestamptz')}) ${MIRROR}`,
    `SELECT max(modified_at) ${VIEW}`,
  ],
  'greatest date, bare cast': [`SELECT max((data->>'hireDate')::date) ${MIRROR}`, `SELECT max(hire_date) ${VIEW}`],
  'greatest timestamptz, bare cast': [
    `SELECT max((data->>'modifiedAt')::timestamptz) ${MIRROR}`,
    `SELECT max(modified_at) ${VIEW}`,
  ],
};

/** Enough records to learn the columns from; the others are read by the queries alone. */
const LEARNED_FROM = 20_000;
/** Each round runs every query, of which some read everything. */
const MOST_ROUNDS = 3;
/** A query that is over in less is run again and again, and counts with its mean. */
const LEAST_SECONDS = 0.05;

/** What a typed view takes beside the same query on jsonb, one right behind the other. */
export async function measureViews(
  measures: Measures,
  { rounds, giant: records }: { rounds: number; giant: number },
): Promise<void> {
  const bench = await openBench({ companies: 1, records: 10, size: 500, style: 'skip-take' });
  try {
    const { pool } = bench;
    await addCompanies(pool);
    await addRecords(pool, 1, Math.min(LEARNED_FROM, records));
    await learnColumns(pool);
    await until(async () => (await seconds(pool, `SELECT hire_date, modified_at, address__city ${VIEW} LIMIT 1`)) > 0);
    if (records > LEARNED_FROM) await addRecords(pool, LEARNED_FROM + 1, records);
    await pool.query('VACUUM ANALYZE mirror.employees');
    await pool.query('CHECKPOINT');
    for (let round = 0; round <= Math.min(rounds, MOST_ROUNDS); round += 1) {
      for (const [name, [overJsonb, overView]] of Object.entries(QUERIES)) {
        const [plain, typed] = [await meanSeconds(pool, overJsonb), await meanSeconds(pool, overView)];
        // The first round reads from the disk and plans.
        if (round > 0)
          measures.note(`typed view, ${name} of ${records.toLocaleString('en-US')} records / on jsonb`, typed / plain);
      }
    }
  } finally {
    await bench.stop();
  }
}

const company = `('b0000000-0000-4000-8000-' || lpad((n % ${COMPANIES})::text, 12, '0'))::uuid`;

async function addCompanies(pool: pg.Pool): Promise<void> {
  await pool.query(
    `INSERT INTO muster.connections (environment, company_id) SELECT 'test', ${company} FROM generate_series(0, ${COMPANIES - 1}) n`,
  );
}

/** A worker counts the keys of the records where they stand, and makes columns of them. */
async function learnColumns(pool: pg.Pool): Promise<void> {
  await pool.query(
    `INSERT INTO muster.schema_resources (resource, rebuild_asked_at) VALUES ('employees', now())
     ON CONFLICT (resource) DO UPDATE SET rebuild_asked_at = now()`,
  );
}

/** Records as a service has them. */
async function addRecords(pool: pg.Pool, from: number, to: number): Promise<void> {
  await pool.query(
    `INSERT INTO mirror.employees (environment, company_id, id, data, first_seen_at, changed_at)
     SELECT 'test', ${company}, 'e' || n, jsonb_build_object(
       'employeeNumber', n::text, 'firstName', 'First ' || n, 'lastName', 'Last ' || md5(n::text), 'email', 'employee.' || n || '@example.com',
       'hireDate', (date '1990-01-01' + n % 12000)::text, 'departmentId', md5((n % 500)::text), 'jobTitle', 'Account Manager',
       'salary', n * 1.25, 'hourlyRate', 180 + n % 400, 'active', n % 20 > 0, 'note', CASE WHEN n % 3 = 0 THEN 'Works from home on Fridays' END,
       'address', jsonb_build_object('street', 'Storgata ' || n % 180, 'postalCode', (n % 9999)::text, 'city', 'City ' || n % 100),
       'modifiedAt', to_char(timestamp '2020-01-01' + n * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
     ), now(), now() FROM generate_series(${from}, ${to}) n`,
  );
}

async function meanSeconds(pool: pg.Pool, query: string): Promise<number> {
  let [total, times] = [0, 0];
  for (; total < LEAST_SECONDS; times += 1) total += await seconds(pool, query);
  return total / times;
}

async function seconds(pool: pg.Pool, query: string): Promise<number> {
  const began = performance.now();
  await pool.query(query);
  return (performance.now() - began) / 1_000;
}
