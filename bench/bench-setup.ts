import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { pino } from 'pino';
import { type EmbeddedServer, startEmbeddedServer } from '../src/embedded/embedded-server.js';
import { anyPort } from '../test/support/port.js';

/** Of Muster's own processes. */
export const NODE = process.env['BENCH_NODE'] ?? process.execPath;
const ROOT = fileURLToPath(new URL('..', import.meta.url));

export interface BenchOptions {
  readonly companies: number;
  /** Records of each company. */
  readonly records: number;
  /** Records a page. */
  readonly size: number;
  readonly style: 'skip-take' | 'continuation';
  /** Worker processes that share the companies; 1 unless told. */
  readonly workers?: number;
  /** Companies that each worker walks side by side; its share of them, where there are several workers, unless told. */
  readonly concurrency?: number;
  /** Records of the first company, where it is larger than the others. */
  readonly giant?: number;
  /** Privacy rules of the list. */
  readonly privacy?: Readonly<Record<string, string>>;
  /** Further variables of API and workers. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where BullMQ keeps its jobs; in PostgreSQL unless told. */
  readonly redisUrl?: string;
  /** An empty server, which is stopped with the rest; an embedded one that counts statements unless told. */
  readonly server?: BenchServer;
}

export interface BenchServer {
  readonly url: string;
  /** Where Muster reaches it by way of a pooler. */
  readonly pooledUrl?: string;
  stop(): Promise<unknown>;
}

/** The provider, PostgreSQL, the admin API and the workers, each a process of its own. */
export interface Bench {
  readonly pool: pg.Pool;
  readonly providerUrl: string;
  readonly databaseUrl: string;
  /** Of the first worker. */
  readonly workerPid: number;
  readonly companyIds: readonly string[];
  /** The text of an answer of the admin API. */
  get(path: string): Promise<string>;
  /** Tells the provider how to behave; gives what it has counted. */
  control(query: string): Promise<{ requests: number; firstRequestAt?: number }>;
  /** Syncs these companies side by side, all of them as a night does, put into the queue at once; seconds from the first start to the last end. */
  sync(companyIds: readonly string[]): Promise<number>;
  /** The same of every company, and seconds from the moment that the first was put into the queue. */
  syncAll(): Promise<number>;
  /** Milliseconds from POST …/sync to the first request at the provider. */
  dispatch(companyId: string): Promise<number>;
  /** Empties the mirror, as if the companies had never been walked. */
  forget(): Promise<void>;
  /** The same of one company. */
  forgetCompany(companyId: string): Promise<void>;
  /** Makes the night's sync of every company due now, and says when that was. */
  makeDue(): Promise<Date>;
  /** Resolves when the runs of these companies that were asked for since have ended. */
  untilEnded(companyIds: readonly string[], since: Date): Promise<void>;
  /** Has everything numbered and written back that waits for it, as it has been when a night comes: its first write to a page of a table is logged whole. */
  settle(): Promise<void>;
  /** Bytes of WAL written so far. */
  walBytes(): Promise<bigint>;
  /** Peak resident memory of the first worker so far, in bytes. */
  workerPeak(): Promise<number>;
  stop(): Promise<void>;
}

export async function openBench(options: BenchOptions): Promise<Bench> {
  const { workers = 1 } = options;
  const home = await mkdtemp(join(tmpdir(), 'muster-bench-'));
  const server: BenchServer = options.server ?? (await startCountingServer(home));
  // What the benchmark itself asks is not counted.
  const pool = new pg.Pool({ connectionString: server.url, options: '-c pg_stat_statements.track=none' });
  // The server is stopped while the last connections close.
  pool.on('error', () => {});
  const provider = spawn(
    process.execPath,
    [
      '--import',
      'tsx',
      join(ROOT, 'bench/provider.ts'),
      String(options.companies),
      String(options.records),
      String(options.giant ?? options.records),
    ],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      cwd: ROOT,
    },
  );
  const providerUrl = `http://127.0.0.1:${await lineMatch(provider, /listening (\d+)/)}`;
  const catalogue = join(home, 'catalogue.json');
  await writeFile(catalogue, JSON.stringify(catalogueOf(options)));

  const token = randomBytes(16).toString('hex');
  const port = String(anyPort());
  const env = {
    PATH: process.env['PATH'],
    MUSTER_HOME: home,
    DATABASE_URL: server.pooledUrl ?? server.url,
    MUSTER_CATALOGUE: catalogue,
    MUSTER_PRIVACY_KEY: Buffer.alloc(32, 2).toString('base64'),
    MUSTER_ADMIN_TOKEN: token,
    MUSTER_ENCRYPTION_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    PORT: port,
    LOG_LEVEL: 'warn',
    ...(options.redisUrl && { REDIS_URL: options.redisUrl }),
    // No nightly run comes between, at whatever hour this is measured.
    SYNC_CRON: '0 0 29 2 *',
    TEST_BASE_URL: providerUrl,
    TEST_AUTH_URL: providerUrl,
    TEST_CLIENT_ID: 'bench',
    TEST_CLIENT_SECRET: 'bench-secret',
    ...options.env,
  };
  const api = spawn(NODE, [join(ROOT, 'bin/muster'), 'api'], { env, stdio: ['ignore', 'inherit', 'inherit'] });
  const flags = process.env['BENCH_WORKER_FLAGS']?.split(' ') ?? [];
  const startWorker = () =>
    spawn(NODE, [...flags, join(ROOT, 'bin/muster'), 'worker'], {
      env:
        workers > 1 ? { ...env, WORKER_CONCURRENCY: String(options.concurrency ?? Math.ceil(options.companies / workers)) } : env,
      cwd: home,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  const firstWorker = startWorker();
  const moreWorkers = Array.from({ length: workers - 1 }, startWorker);

  const call = async (method: string, path: string, body?: object): Promise<{ status: number; body: unknown }> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  };
  const control = async (query: string) =>
    (await fetch(`${providerUrl}/control?${query}`)).json() as Promise<{
      requests: number;
      firstRequestAt?: number;
      companies: string[];
    }>;
  await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok);
  const { companies } = await control('');
  const activeRuns = async () =>
    (await pool.query<{ n: number }>(`SELECT count(*)::int AS n FROM muster.runs WHERE status IN ('queued', 'running')`)).rows[0]!
      .n;
  const settle = async () => {
    await until(
      async () => (await pool.query('SELECT FROM muster.change_batches WHERE first_seq IS NULL LIMIT 1')).rowCount === 0,
    );
    await pool.query('CHECKPOINT');
  };
  const left = companies.values();
  const onboard = async () => {
    for (const company_id of left)
      await call('POST', '/api/companies', { environment: 'test', company_id, refresh_token: `${company_id}/0` });
  };
  await Promise.all([onboard(), onboard(), onboard(), onboard()]);
  await until(async () => (await activeRuns()) === 0);
  const syncSince = async (from: 'started_at' | 'created_at', companyIds: readonly string[]) => {
    if (companyIds.length === companies.length) await call('POST', '/api/syncs', {});
    else for (const id of companyIds) await call('POST', `/api/companies/test/${id}/sync`, {});
    await until(async () => (await activeRuns()) === 0);
    const { rows } = await pool.query<{ seconds: number; failed: number }>(
      `SELECT extract(epoch FROM max(finished_at) - min(${from}))::float AS seconds, count(*) FILTER (WHERE status <> 'succeeded')::int AS failed
       FROM (SELECT * FROM muster.runs ORDER BY seq DESC LIMIT $1) r`,
      [companyIds.length],
    );
    if (rows[0]!.failed > 0) throw new Error(`${rows[0]!.failed} runs failed`);
    return rows[0]!.seconds;
  };

  return {
    pool,
    providerUrl,
    databaseUrl: server.url,
    workerPid: firstWorker.pid!,
    companyIds: companies,
    async get(path) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${token}` } });
      if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
      return response.text();
    },
    control,
    sync: (companyIds) => syncSince('started_at', companyIds),
    syncAll: () => syncSince('created_at', companies),
    async dispatch(companyId) {
      await control('reset');
      const began = Date.now();
      await call('POST', `/api/companies/test/${companyId}/sync`, {});
      await until(async () => (await activeRuns()) === 0);
      return (await control('')).firstRequestAt! - began;
    },
    async forget() {
      await pool.query(
        'TRUNCATE mirror.employees, muster.lists, muster.walk_pages, muster.page_snapshots, muster.page_keys, muster.rejected_records, muster.walks, muster.runs, muster.changes, muster.change_batches, muster.change_numbers RESTART IDENTITY CASCADE',
      );
      await settle();
    },
    async forgetCompany(companyId) {
      for (const table of ['mirror.employees', 'muster.lists', 'muster.runs', 'muster.change_batches']) {
        await pool.query(`DELETE FROM ${table} WHERE company_id = $1`, [companyId]);
        // What is deleted at once is no part of a night: a vacuum of a million rows beside it would be measured.
        await pool.query(`VACUUM ANALYZE ${table}`);
      }
    },
    async makeDue() {
      const { rows } = await pool.query<{ due: Date }>(
        'UPDATE muster.connections SET next_sync_at = now() RETURNING next_sync_at AS due',
      );
      return rows[0]!.due;
    },
    untilEnded: (companyIds, since) =>
      until(async () => {
        const { rows } = await pool.query<{ ended: number }>(
          'SELECT count(*)::int AS ended FROM muster.runs WHERE company_id = ANY($1::uuid[]) AND created_at >= $2 AND finished_at IS NOT NULL',
          [companyIds, since],
        );
        return rows[0]!.ended >= companyIds.length;
      }),
    settle,
    walBytes: async () =>
      BigInt(
        (await pool.query<{ at: string }>(`SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text AS at`)).rows[0]!.at,
      ),
    async workerPeak() {
      const status = await readFile(`/proc/${firstWorker.pid}/status`, 'utf8');
      return Number(/VmHWM:\s+(\d+) kB/.exec(status)![1]) * 1024;
    },
    async stop() {
      for (const child of [firstWorker, ...moreWorkers, api]) {
        child.kill('SIGTERM');
        if (child.exitCode === null) await once(child, 'exit');
      }
      provider.stdin.end();
      await pool.end();
      await server.stop();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** An embedded server that counts statements. */
async function startCountingServer(home: string): Promise<EmbeddedServer> {
  const logger = pino({ level: 'silent' });
  const first = await startEmbeddedServer({ home, logger });
  const client = new pg.Client(first.url);
  await client.connect();
  await client.query(`ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`);
  await client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
  await client.end();
  await first.stop();
  return startEmbeddedServer({ home, logger });
}

function catalogueOf({ size, style, privacy }: BenchOptions): object {
  return style === 'skip-take'
    ? {
        employees: {
          method: 'GET',
          path: '/api/companies/{company_id}/employees',
          pager: { style, in: 'query', skipName: 'skip', takeName: '$take', size },
          ...(privacy && { privacy }),
        },
      }
    : { employees: { method: 'GET', path: '/api/companies/{company_id}/people', pager: { style, in: 'query', size } } };
}

async function lineMatch(child: ChildProcess, pattern: RegExp): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const match = pattern.exec(line);
    if (match) return match[1]!;
  }
  throw new Error(`a process ended before it wrote ${String(pattern)}`);
}

/** Resolves once the check says so; one that throws says no. */
export async function until(check: () => Promise<boolean>): Promise<void> {
  for (;;) {
    if (await check().catch(() => false)) return;
    // Looking takes from the same two cores.
    await sleep(200);
  }
}
