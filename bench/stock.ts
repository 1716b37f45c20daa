import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { startEmbeddedServer } from '../src/embedded/embedded-server.js';
import { startPgBouncer } from '../test/machines/pgbouncer.js';
import { PostgresServer } from '../test/support/postgres-server.js';
import { RedisServer } from '../test/support/redis-server.js';
import { stockFolder, stockPrograms } from '../test/support/stock-postgres.js';
import { type Bench, type BenchOptions, type BenchServer, openBench } from './bench-setup.js';
import type { Measures, Scale } from './measures.js';

interface Timed {
  readonly seconds: number;
  readonly unit: string;
  /** What the seconds are in that unit. */
  readonly figure: number;
}

/** What a server did in one round, by what it was. */
type Round = Readonly<Record<string, Timed>>;

/** Speed of the one server / speed of the other. report.ts has what is to be reached. */
const RATIOS = [
  ['stock', 'stock with jit = off'],
  ['stock', 'embedded'],
  ['pooled', 'pooled with jit = off'],
] as const;

/** Quiet nights after each first mirror, of which the mean is taken: a single one takes a second or two, and differs fourfold from the next on any server. */
const QUIET_NIGHTS = 8;

/**
 * The PostgreSQL that the machine's packages installed, as it comes and with `jit = off`, both also behind PgBouncer's pool of transactions,
 * beside the embedded server. Each has a bench of its own, and they are measured in turn within each round. All of them flush what they
 * commit (`fsync = on`), and none of them counts statements.
 */
export async function measureStock(measures: Measures, { rounds, records, manyCompanies }: Scale): Promise<void> {
  if (stockFolder() === undefined) {
    console.error('left out: no PostgreSQL is installed here (apt-get install postgresql)');
    return;
  }
  const companies = Math.ceil(manyCompanies / 50);
  await inTurn(measures, rounds, { companies, records: 20, size: 500, style: 'skip-take' }, async (bench) => {
    await bench.settle();
    const seconds = await bench.syncAll();
    return { 'a small company': { seconds, unit: 'ms', figure: (seconds * 1e3) / companies } };
  });
  await inTurn(measures, rounds, { companies: 4, records, size: 500, style: 'skip-take' }, async (bench) => {
    const all = bench.companyIds;
    const timed = (seconds: number): Timed => ({
      seconds,
      unit: 'thousand records/s',
      figure: (all.length * records) / 1e3 / seconds,
    });
    await bench.forget();
    const first = timed(await bench.sync(all));
    // The sync that follows at once pays for what the first mirror left behind.
    await bench.sync(all);
    await bench.settle();
    let seconds = 0;
    for (let night = 0; night < QUIET_NIGHTS; night++) seconds += await bench.sync(all);
    return { 'first mirror': first, 'nothing changed': timed(seconds / QUIET_NIGHTS) };
  });
}

/** One round that is not counted, and then so many of them. Another server comes first in each. */
async function inTurn(
  measures: Measures,
  rounds: number,
  options: BenchOptions,
  measure: (bench: Bench) => Promise<Round>,
): Promise<void> {
  const benches: { name: string; bench: Bench; version: string }[] = [];
  try {
    for (const [name, start] of Object.entries(servers())) {
      const bench = await openBench({ ...options, ...(await start()) });
      const { rows } = await bench.pool.query<{ server_version: string }>('SHOW server_version');
      benches.push({ name, bench, version: rows[0]!.server_version.split(' ')[0]! });
    }
    for (let n = 0; n <= rounds; n++) {
      const results = new Map<string, Round>();
      for (const { name, bench, version } of [...benches.slice(n % benches.length), ...benches.slice(0, n % benches.length)]) {
        const round = await measure(bench);
        results.set(name, round);
        if (n > 0)
          for (const [what, { unit, figure }] of Object.entries(round))
            measures.note(`${what}, ${unit} (${name}, PostgreSQL ${version})`, figure);
      }
      if (n > 0) noteRatios(measures, results);
    }
  } finally {
    for (const { bench } of benches) await bench.stop();
  }
}

function noteRatios(measures: Measures, results: ReadonlyMap<string, Round>): void {
  for (const [one, other] of RATIOS)
    for (const [what, { seconds }] of Object.entries(results.get(one) ?? {}))
      measures.note(`${what}: ${one} / ${other}`, results.get(other)![what]!.seconds / seconds);
}

/** The servers that this machine can start, and the queue's Redis where a server cannot carry the queue. */
function servers(): Readonly<Record<string, () => Promise<Pick<BenchOptions, 'server' | 'redisUrl'>>>> {
  const direct = {
    embedded: async () => ({ server: await startEmbedded() }),
    stock: async () => ({ server: await startStock({}) }),
    'stock with jit = off': async () => ({ server: await startStock({ jit: 'off' }) }),
  };
  if (['pgbouncer', 'redis-server'].some((program) => spawnSync(program, ['--version']).status !== 0)) {
    console.error('left out: a pool of transactions needs pgbouncer and redis-server');
    return direct;
  }
  return { ...direct, pooled: () => startPooled({}), 'pooled with jit = off': () => startPooled({ jit: 'off' }) };
}

async function startEmbedded(): Promise<BenchServer> {
  const home = await mkdtemp(join(tmpdir(), 'muster-bench-'));
  const { url, stop } = await startEmbeddedServer({ home, logger: pino({ level: 'silent' }) });
  return { url, stop: () => stop().then(() => rm(home, { recursive: true, force: true })) };
}

async function startStock(settings: Readonly<Record<string, string>>): Promise<BenchServer> {
  const server = await PostgresServer.start({ programs: stockPrograms(), settings: { fsync: 'on', ...settings } });
  return { url: server.url, stop: () => server.remove() };
}

async function startPooled(settings: Readonly<Record<string, string>>): Promise<{ server: BenchServer; redisUrl: string }> {
  const [stock, redis] = await Promise.all([startStock(settings), RedisServer.start()]);
  const pooler = await startPgBouncer(stock.url, 'transaction');
  const server = {
    url: stock.url,
    pooledUrl: pooler.through(stock.url),
    stop: () => Promise.all([pooler.close(), redis.remove(), stock.stop()]),
  };
  return { server, redisUrl: redis.url };
}
