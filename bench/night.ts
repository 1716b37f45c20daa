import { type BenchOptions, openBench } from './bench-setup.js';
import type { Measures, Scale } from './measures.js';
import { openRedis } from './redis.js';

/** Of a company in a night, in milliseconds from when it was due. */
interface Ended {
  readonly begun: number;
  readonly done: number;
}

/** Worker processes, each with as many companies side by side as it has unless told. */
const WORKERS = 4;
const SIDE_BY_SIDE = 4;
const RECORDS = 20;

/**
 * A night of many small companies that are due at once: how long each waits for its start and its end, and how many statements it costs, of
 * ours and of BullMQ's. Then the same beside a company of very many records. For each queue backend in turn; that of Redis needs a `redis-server`,
 * or REDIS_URL (whose keys it deletes).
 */
export async function measureNight(measures: Measures, { manyCompanies, giant }: Scale): Promise<void> {
  const redis = await openRedis();
  try {
    for (const [kind, redisUrl] of [['PostgreSQL', undefined], ...(redis ? [['Redis', redis.url] as const] : [])] as const) {
      const number = `a night of ${manyCompanies.toLocaleString('en-US')} companies (${kind})`;
      const alone = await night({ companies: manyCompanies, ...(redisUrl && { redisUrl }) });
      const beside = await night({ companies: manyCompanies + 1, giant, ...(redisUrl && { redisUrl }) });
      for (const [what, of] of [
        ['due to begun', ({ begun }: Ended) => begun],
        ['due to done', ({ done }: Ended) => done],
      ] as const) {
        for (const share of [0.5, 0.95])
          measures.note(`${number}: ${what}, p${share * 100}, s`, quantile(alone.ended.map(of), share) / 1e3);
        measures.note(
          `${number}: ${what}, p95 beside one of ${giant.toLocaleString('en-US')} records / without it`,
          quantile(beside.ended.map(of), 0.95) / quantile(alone.ended.map(of), 0.95),
        );
      }
      measures.note(`${number}: statements a company`, alone.statements.ours / manyCompanies);
      if (!redisUrl) measures.note(`${number}: the queue's statements a company`, alone.statements.queue / manyCompanies);
    }
  } finally {
    redis?.stop();
  }
}

/** The second night: nothing has changed for a small company, and the giant, if there is one, is mirrored anew. */
async function night(options: Pick<BenchOptions, 'companies' | 'giant' | 'redisUrl'>) {
  const bench = await openBench({
    ...options,
    records: RECORDS,
    size: 500,
    style: 'skip-take',
    workers: WORKERS,
    concurrency: SIDE_BY_SIDE,
  });
  try {
    const giant = options.giant === undefined ? undefined : bench.companyIds[0];
    if (giant !== undefined) await bench.forgetCompany(giant);
    await bench.settle();
    await bench.pool.query('SELECT pg_stat_statements_reset()');
    const small = bench.companyIds.filter((id) => id !== giant);
    const due = await bench.makeDue();
    await bench.untilEnded(small, due);
    const { rows } = await bench.pool.query<{ ours: number; queue: number }>(
      `SELECT COALESCE(sum(calls) FILTER (WHERE is_ours), 0)::int AS ours, COALESCE(sum(calls) FILTER (WHERE NOT is_ours), 0)::int AS queue
       FROM (SELECT calls, query ~ '(muster|mirror)[.]' OR query ~* '^(BEGIN|COMMIT|ROLLBACK|SET)' AS is_ours FROM pg_stat_statements) s`,
    );
    const ended = await bench.pool.query<Ended>(
      `SELECT extract(epoch FROM started_at - $1::timestamptz)::float8 * 1000 AS begun,
              extract(epoch FROM finished_at - $1::timestamptz)::float8 * 1000 AS done
       FROM muster.runs WHERE created_at >= $1 AND status = 'succeeded' AND company_id = ANY($2::uuid[])`,
      [due, small],
    );
    if (ended.rows.length !== small.length) throw new Error(`${small.length - ended.rows.length} runs did not succeed`);
    return { ended: ended.rows, statements: rows[0]! };
  } finally {
    await bench.stop();
  }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}
