import type pg from 'pg';
import { type Bench, openBench } from './bench-setup.js';
import type { Measures } from './measures.js';

/** Of a first mirror: batches as large as they become, kept as the texts that were received. */
const WHOLE = 250;
/** Of nights: changes of a commit that have a row each. */
const MOST_ROWS = 20;
const PAGE = 1_000;
const PAGES = 40;
const TEXT_BYTES = 600;

/** Pages of 1,000 anywhere in a long feed, by SQL and through the API, and how fast one consumer reads on. */
export async function measureFeed(measures: Measures, changes: number): Promise<void> {
  const bench = await openBench({ companies: 1, records: 10, size: 500, style: 'skip-take' });
  try {
    await fill(bench.pool, changes);
    for (const [name, after] of [
      ['begin', 0],
      ['middle', changes / 2],
      ['end', changes - PAGE * PAGES],
    ] as const) {
      const page = `page of ${PAGE} at the ${name} of ${changes.toLocaleString('en-US')} changes, ms (p95)`;
      const asSql = (seq: number) => bench.pool.query(`SELECT * FROM mirror.changes WHERE seq > ${seq} LIMIT ${PAGE}`);
      measures.note(`SQL, ${page}`, await p95(asSql, after));
      measures.note(`API, ${page}`, await p95((seq) => bench.get(`/api/changes?after=${seq}&limit=${PAGE}`), after));
    }
    measures.note('one consumer of the feed, changes/s', await consume(bench, changes / 2));
  } finally {
    await bench.stop();
  }
}

/** Seven tenths are a first mirror, the others nights; numbered as the sequencer does. */
async function fill(pool: pg.Pool, changes: number): Promise<void> {
  const whole = Math.floor((changes * 0.7) / WHOLE);
  await pool.query(`
    WITH page AS (
      SELECT array_agg(gen_random_uuid()::text) AS ids, array_agg(1 + (n - 1) * ${TEXT_BYTES}) AS starts, array_agg(${TEXT_BYTES}) AS lengths,
        convert_to(string_agg(rpad('{"n": ' || n || ', "text": "', ${TEXT_BYTES - 2}, md5(n::text)) || '"}', '' ORDER BY n), 'UTF8') AS texts
      FROM generate_series(1, ${WHOLE}) n
    )
    INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at, ids, starts, lengths, texts)
    SELECT ${WHOLE}, 'test', gen_random_uuid(), 'employees', now(), ids, starts, lengths, texts FROM page, generate_series(1, ${whole})`);
  await pool.query(`
    WITH batch AS (
      INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
      SELECT 1 + n % ${MOST_ROWS}, 'test', gen_random_uuid(), 'employees', now()
      FROM generate_series(1, ${Math.floor((2 * (changes - whole * WHOLE)) / (MOST_ROWS + 1))}) n RETURNING id, size
    )
    INSERT INTO muster.changes (batch_id, position, record_id, op, data)
    SELECT id, p, gen_random_uuid(), 'update', jsonb_build_object('text', repeat(md5(p::text), ${Math.ceil(TEXT_BYTES / 32)}))
    FROM batch, generate_series(0, size - 1) p`);
  await pool.query('VACUUM ANALYZE muster.change_batches, muster.changes');
}

/** Milliseconds; pages that follow each other. The first, which plans the statement and numbers what is new, is not measured. */
async function p95(read: (after: number) => Promise<unknown>, after: number): Promise<number> {
  const times: number[] = [];
  await read(after);
  for (let n = 0; n < PAGES; n++) {
    const began = performance.now();
    await read(after + n * PAGE);
    times.push(performance.now() - began);
  }
  return times.toSorted((a, b) => a - b)[Math.floor(PAGES * 0.95)]!;
}

/** Passes back next_after for ten seconds, or to the end. */
async function consume({ get }: Bench, from: number): Promise<number> {
  const began = performance.now();
  let count = 0;
  for (let after = from; performance.now() - began < 10_000; ) {
    const { data, next_after } = JSON.parse(await get(`/api/changes?after=${after}&limit=${PAGE}`)) as {
      data: unknown[];
      next_after: number;
    };
    if (data.length === 0) break;
    count += data.length;
    after = next_after;
  }
  return (count * 1_000) / (performance.now() - began);
}
