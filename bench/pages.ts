import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { pino } from 'pino';
import { PAGES } from '../src/dashboard/page-routes.js';
import { migrate } from '../src/db/schema/migrate.js';
import { startEmbeddedServer } from '../src/embedded/embedded-server.js';
import { everyAddress, everyPage, nextCursor, withQuery } from '../test/support/every-address.js';
import { fillLarge, LARGE, largeValues } from '../test/support/large-database.js';
import { anyPort } from '../test/support/port.js';
import { NODE, until } from './bench-setup.js';
import type { Measures } from './measures.js';

const MUSTER = fileURLToPath(new URL('../bin/muster', import.meta.url));
/** Read by programs, and seldom: no list and no page. */
const METRICS = '/metrics';
/** Their answers serve everybody for some seconds, and after that are made of all companies anew. */
const SHARED = ['/', '/api/overview?environment=production', METRICS];
const SHARED_MS = 5_100;
const SHARED_ROUNDS = 20;

const TOKEN = randomBytes(16).toString('hex');

interface Times {
  readonly address: string;
  readonly median: number;
  readonly p95: number;
  readonly longest: number;
}

/**
 * Every page and every list, with every filter, in a database in which 10,000 companies were synced for 30 nights: so many requests of each, one
 * after another. The slowest are noted; the time of each goes to standard error.
 */
export async function measurePages(measures: Measures, requests: number): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'muster-bench-'));
  const logger = pino({ level: 'silent' });
  const server = await startEmbeddedServer({ home, logger });
  const pool = new pg.Pool({ connectionString: server.url });
  pool.on('error', () => {});
  await migrate(server.url, logger);
  await fillLarge(pool, LARGE);
  await pool.query('CHECKPOINT');
  const { api, url } = startApi(home, server.url);
  try {
    await until(async () => (await fetch(`${url}/readyz`)).ok);
    const times: Times[] = [];
    const headers = { authorization: `Bearer ${TOKEN}`, cookie: await signIn(url) };
    for (const address of await addresses(url, headers, await largeValues(pool)))
      times.push(await timesOf(address, requests, () => read(url + address, headers)));
    times.push(...(await timesOfShared((address) => read(url + address, headers))));
    note(measures, times);
  } finally {
    api.kill('SIGTERM');
    if (api.exitCode === null) await once(api, 'exit');
    await pool.end();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

function startApi(home: string, databaseUrl: string): { api: ChildProcess; url: string } {
  const port = String(anyPort());
  const env = {
    PATH: process.env['PATH'],
    MUSTER_HOME: home,
    DATABASE_URL: databaseUrl,
    MUSTER_ADMIN_TOKEN: TOKEN,
    MUSTER_ENCRYPTION_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    PORT: port,
    LOG_LEVEL: 'warn',
    // The night of the newest runs, and no worker that would begin another one.
    SYNC_CRON: `0 ${(new Date().getUTCHours() + 20) % 24} * * *`,
    // Nobody answers there, and nobody is asked.
    TEST_BASE_URL: 'http://127.0.0.1:9',
    TEST_AUTH_URL: 'http://127.0.0.1:9',
    TEST_CLIENT_ID: 'bench',
    TEST_CLIENT_SECRET: 'bench-secret',
  };
  const api = spawn(NODE, [MUSTER, 'api'], { env, stdio: ['ignore', 'inherit', 'inherit'] });
  return { api, url: `http://127.0.0.1:${port}` };
}

async function signIn(url: string): Promise<string> {
  const body = new URLSearchParams({ token: TOKEN });
  const answer = await fetch(`${url}/login`, {
    method: 'POST',
    body,
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin' },
  });
  return answer.headers.get('set-cookie')!.split(';')[0]!;
}

/** Where a list goes on, there as well, behind 500 rows. */
async function addresses(url: string, headers: Record<string, string>, values: Awaited<ReturnType<typeof largeValues>>) {
  const document = JSON.parse(await read(`${url}/api/openapi.json`, headers));
  const all = everyAddress(document, values, { pairs: false });
  const further: string[] = [];
  for (const address of all.filter((each) => !each.includes('?'))) {
    if (!nextCursor(await read(url + address, headers))) continue;
    const cursor = nextCursor(await read(url + withQuery(address, { limit: '500' }), headers));
    if (cursor) further.push(withQuery(address, { cursor }));
  }
  return [...all, ...further, ...everyPage([...Object.keys(PAGES), '/settings'], document, values)];
}

async function timesOf(address: string, requests: number, ask: () => Promise<unknown>): Promise<Times> {
  const times: number[] = [];
  for (let n = 0; n < requests; n++) times.push(await timeOf(ask));
  return summary(address, times);
}

/** Of answers that are made anew, each behind a pause: what the first one waits who looks for a while. */
async function timesOfShared(ask: (address: string) => Promise<unknown>): Promise<Times[]> {
  const times = new Map(SHARED.map((address) => [address, [] as number[]]));
  for (let n = 0; n < SHARED_ROUNDS; n++) {
    await sleep(SHARED_MS);
    for (const [address, each] of times) each.push(await timeOf(() => ask(address)));
  }
  return [...times].map(([address, each]) => summary(`${address} (made anew)`, each));
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function summary(address: string, times: readonly number[]): Times {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!;
  return { address, median: at(0.5), p95: at(0.95), longest: at(1) };
}

async function read(url: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(url, { headers, redirect: 'manual' });
  if (!response.ok) throw new Error(`${url} was answered ${response.status}`);
  return response.text();
}

function note(measures: Measures, times: readonly Times[]): void {
  const sorted = times.toSorted((a, b) => b.p95 - a.p95);
  console.error('     p50      p95  longest  ms');
  for (const { address, ...figures } of sorted)
    console.error(
      `${[figures.median, figures.p95, figures.longest].map((ms) => ms.toFixed(1).padStart(8)).join(' ')}  ${address}`,
    );
  for (const [what, isMeant] of [
    ['page', (address: string) => !address.startsWith('/api/') && !address.startsWith(METRICS)],
    ['list or call of the API', (address: string) => address.startsWith('/api/')],
    ['scrape', (address: string) => address.startsWith(METRICS)],
  ] as const) {
    const slowest = sorted.find(({ address }) => isMeant(address))!;
    measures.note(`the slowest ${what} with 10,000 companies and 300,000 runs, ms (p95)`, slowest.p95);
  }
}
