import { readdirSync, writeFileSync } from 'node:fs';
import { WebSocket } from 'undici';
import { type Bench, openBench } from '../bench/bench-setup.js';
import { openDatabase } from '../src/db/connection/database.js';
import { removeOldChanges } from '../src/db/tables/change-batches.js';
import { removeOldRecords } from '../src/jobs/retention.js';
import { anyPort } from '../test/support/port.js';
import { type Series, soakPicture } from './soak-picture.js';

/**
 * npm run soak: nights of a real worker, one behind the other, and what it has at the end that it did not have before. Between them the
 * database's clock is moved on: every record becomes older by the days that have passed, and what is too old is removed as the hourly
 * sweep does. SOAK_NIGHTS, SOAK_COMPANIES and SOAK_PAGES (of a company's list) make it shorter; only a whole one writes docs/soak.svg,
 * unless SOAK_PICTURE names a file. Exits with 1 when anything has grown.
 */
const NIGHTS = 1_000;
const COMPANIES = 20;
const PAGES = 5;
const RECORDS_A_PAGE = 20;

const nights = Number(process.env['SOAK_NIGHTS'] ?? NIGHTS);
const companies = Number(process.env['SOAK_COMPANIES'] ?? COMPANIES);
const pages = Number(process.env['SOAK_PAGES'] ?? PAGES);
/** Looks at the worker, of which the last half must be level: by then, what is kept for some time is as much as it will be. */
const samples = Math.min(100, nights);
const nightsASample = Math.floor(nights / samples);
const keptDays = Math.max(1, Math.floor(nights / 10));

/** By how much a line may rise over its last half: what a collection or a pool makes more or less from one moment to the next. */
const TOLERANCE: Readonly<Record<string, (level: number) => number>> = {
  'heap after collection, MB': (level) => 1.5 + level * 0.03,
  'handles of the worker': () => 6,
  'connections to PostgreSQL': () => 3,
  'rows in schemas muster and bullmq': (level) => 30 + level * 0.03,
};

/** Of the queue's own events, a ring of some hundred a queue is left out, whose length swings. */
const RING = 1_000;

const port = anyPort();
process.env['BENCH_WORKER_FLAGS'] = `--inspect=127.0.0.1:${port}`;
const bench = await openBench({ companies, records: pages * RECORDS_A_PAGE, size: RECORDS_A_PAGE, style: 'skip-take' });
const db = openDatabase({ url: bench.databaseUrl });
const inspector = await inspect(port);
try {
  await soak();
} finally {
  // The worker would wait for its debugger to leave.
  inspector.close();
  await db.close();
  await bench.stop();
}

async function soak(): Promise<void> {
  const series = Object.keys(TOLERANCE).map((name): Series => ({ name, values: [] }));
  for (let sample = 0; sample < samples; sample++) {
    for (let night = 0; night < nightsASample; night++) {
      await bench.control('change=0.01');
      await bench.sync(bench.companyIds);
    }
    await passDays(bench, nightsASample);
    await removeOldRecords(db, { runDays: keptDays, auditDays: keptDays });
    await removeOldChanges(db, keptDays);
    const measured = [
      (await inspector.heapBytes()) / 1e6,
      readdirSync(`/proc/${bench.workerPid}/fd`).length,
      await connections(bench),
      await rows(bench),
    ];
    series.forEach(({ values }, n) => values.push(measured[n]!));
    if ((sample + 1) % 10 === 0) console.error(`${(sample + 1) * nightsASample} nights: ${measured.map(Math.round).join(', ')}`);
  }
  const title = `${(samples * nightsASample * companies * pages).toLocaleString('en-US')} pages in ${(samples * nightsASample * companies).toLocaleString('en-US')} runs of one worker`;
  const isWhole = nights === NIGHTS && companies === COMPANIES && pages === PAGES;
  const picture = process.env['SOAK_PICTURE'] ?? (isWhole ? new URL('../docs/soak.svg', import.meta.url) : undefined);
  if (picture) writeFileSync(picture, soakPicture(title, series));
  console.log(title);
  for (const { name, values } of series) judge(name, values.slice(Math.floor(values.length / 2)));
}

/** Says how a line goes, and has the process fail when it rises. */
function judge(name: string, values: readonly number[]): void {
  const level = values.reduce((sum, value) => sum + value, 0) / values.length;
  const rise = slope(values) * (values.length - 1);
  const mayRise = TOLERANCE[name]!(level);
  console.log(
    `${rise > mayRise ? 'GROWS' : 'level'}  ${name}: ${level.toFixed(1)}, and ${rise.toFixed(2)} more at the end (up to ${mayRise.toFixed(2)})`,
  );
  if (rise > mayRise) process.exitCode = 1;
}

/** Of the line with the least squares, a step. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const covariance = values.reduce((sum, value, n) => sum + (n - middle) * (value - mean), 0);
  const variance = values.reduce((sum, _, n) => sum + (n - middle) ** 2, 0);
  return variance === 0 ? 0 : covariance / variance;
}

/** Everything that has an age becomes older. */
async function passDays({ pool }: Bench, days: number): Promise<void> {
  for (const [table, columns] of [
    ['runs', ['created_at', 'finished_at']],
    ['walks', ['finished_at']],
    ['audit', ['at']],
    ['change_batches', ['changed_at']],
    ['barriers', ['verified_at']],
    ['certificates', ['verified_at']],
    ['notifications', ['occurred_at']],
  ] as const) {
    const older = columns.map((column) => `${column} = ${column} - interval '${days} days'`);
    await pool.query(`UPDATE muster.${table} SET ${older.join(', ')}`);
  }
}

async function connections({ pool }: Bench): Promise<number> {
  const { rows: found } = await pool.query<{ count: number }>(
    `SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()`,
  );
  return found[0]!.count;
}

async function rows({ pool }: Bench): Promise<number> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) AS name FROM pg_tables WHERE schemaname IN ('muster', 'bullmq')`,
  );
  const counts = tables.map(
    ({ name }) => `SELECT GREATEST(0, count(*) - ${name === 'bullmq.event' ? RING : 0}) AS n FROM ${name}`,
  );
  const { rows: found } = await pool.query<{ count: number }>(
    `SELECT sum(n)::int AS count FROM (${counts.join(' UNION ALL ')}) c`,
  );
  return found[0]!.count;
}

/** The worker's own debugger: what its heap holds once nothing is left to collect. */
async function inspect(debugPort: number): Promise<{ heapBytes(): Promise<number>; close(): void }> {
  const [target] = (await (await fetch(`http://127.0.0.1:${debugPort}/json`)).json()) as { webSocketDebuggerUrl: string }[];
  const socket = new WebSocket(target!.webSocketDebuggerUrl);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('error', reject, { once: true });
  });
  let id = 0;
  const call = (method: string): Promise<{ usedSize?: number }> => {
    const own = ++id;
    return new Promise((resolve) => {
      const answered = ({ data }: { data: unknown }) => {
        const message = JSON.parse(String(data)) as { id?: number; result: { usedSize?: number } };
        if (message.id !== own) return;
        socket.removeEventListener('message', answered);
        resolve(message.result);
      };
      socket.addEventListener('message', answered);
      socket.send(JSON.stringify({ id: own, method }));
    });
  };
  return {
    async heapBytes() {
      // The first collection runs finalizers, whose objects the second takes.
      await call('HeapProfiler.collectGarbage');
      await call('HeapProfiler.collectGarbage');
      return (await call('Runtime.getHeapUsage')).usedSize!;
    },
    close: () => socket.close(),
  };
}
