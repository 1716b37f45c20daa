import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { Deployment } from '../process/deployment.js';
import { startNode, type TestProcess } from '../support/process.js';

/** What an attacker has: as many connections of a kind, from a process of his own. */
const CONNECTIONS = 5_000;
const FLOODER = fileURLToPath(new URL('flooder.mjs', import.meta.url));
/** Probes of each flood, and how long after one the next is sent: from this process, which does nothing else, each over a connection of its own. */
const PROBES = 400;
const PROBE_EVERY_MS = 25;
/**
 * Of a hundred probes, one may take longer: flooder, API, worker, PostgreSQL and this process share the processors.
 */
const PROBE_LIMIT_MS = 250;
const START_LIMIT_MS = 1_000;
const RSS_LIMIT_MB = 400;

const COMPANY = '00000000-0000-4000-8000-0000000000f1';
/** Companies whose metrics are scraped; nothing is due for them. */
const COMPANIES = 5_000;

let deployment: Deployment;
let api: TestProcess;
let worker: TestProcess;
let followed: string;

beforeAll(async () => {
  const files = Number(/^Max open files +\d+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
  if (files < CONNECTIONS + 1_000)
    throw new Error(`This test opens ${CONNECTIONS} connections: allow a process more than ${files} open files (ulimit -Hn).`);
  deployment = await Deployment.open({ sandbox: { companies: [{ companyId: COMPANY, name: 'Small', employees: 20 }] } });
  const { pool, prisma } = deployment.database.db;
  await pool.query(`
    WITH added AS (
      INSERT INTO muster.connections (environment, company_id, paused, next_sync_at)
      SELECT 'production', gen_random_uuid(), false, now() + interval '30 days' FROM generate_series(1, ${COMPANIES}) RETURNING *),
    listed AS (INSERT INTO muster.lists (environment, company_id, resource) SELECT environment, company_id, unnest('{employees,departments}'::text[]) FROM added)
    INSERT INTO muster.runs (environment, company_id, trigger, mode, status, finished_at)
    SELECT environment, company_id, 'nightly', 'full', 'succeeded', now() FROM added, generate_series(1, 20)`);
  await pool.query('ANALYZE');
  api = await deployment.startApi();
  worker = await deployment.startWorker();
  await deployment.onboard(COMPANY);
  await deployment.runEnd(COMPANY);
  // Nobody ends it: its company is paused.
  const paused = { environment: 'test', companyId: '00000000-0000-4000-8000-0000000000f2' };
  await prisma.connection.create({ data: { ...paused, paused: true } });
  followed = (await prisma.run.create({ data: { ...paused, trigger: 'manual', mode: 'full' } })).id;
});
afterAll(() => deployment.close());

/** Milliseconds until the whole answer was there, without end where it is not the answer of a Muster that is ready. */
function probe(): Promise<number> {
  return new Promise((resolve) => {
    const begin = performance.now();
    const sent = request(`${deployment.url}/readyz`, { agent: new Agent({ keepAlive: false }), timeout: 20_000 }, (response) => {
      response.resume().once('end', () => {
        resolve(response.statusCode === 200 ? performance.now() - begin : Infinity);
      });
    });
    sent.on('error', () => resolve(Infinity)).end();
  });
}

async function probeMany(): Promise<number[]> {
  const times: Promise<number>[] = [];
  for (let i = 0; i < PROBES; i++) {
    times.push(probe());
    await sleep(PROBE_EVERY_MS);
  }
  return (await Promise.all(times)).toSorted((a, b) => a - b);
}

/** Milliseconds from the call of the API to the worker's start of the run. */
async function startDelay(): Promise<number> {
  const askedAt = Date.now();
  const { body } = await deployment.call('POST', `/api/companies/test/${COMPANY}/sync`);
  const { id } = (body as { run: RunModel }).run;
  await deployment.runEnd(COMPANY);
  const { startedAt } = await deployment.database.db.prisma.run.findUniqueOrThrow({ where: { id } });
  return startedAt!.getTime() - askedAt;
}

/** Seconds that the process has computed so far. */
function cpuSeconds({ pid }: TestProcess): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number);
  return (user! + system!) / 100;
}

/** The most memory that the process had so far, in MB. */
function peakRss({ pid }: TestProcess): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
}

test.each<[string, () => string]>([
  ['headers', () => '-'],
  ['bodies', () => '/api/companies'],
  ['bodies', () => '/nothing'],
  ['streams', () => `/api/runs/${followed}/events`],
  ['scrapes', () => '-'],
])('while there are 5,000 connections of slow %s, Muster is ready and syncs', async (kind, path) => {
  const flooder = startNode([FLOODER, deployment.port, String(CONNECTIONS), kind, path(), deployment.adminToken]);
  const cpuBefore = cpuSeconds(api);
  const wallBefore = performance.now();
  const times = await probeMany();
  await flooder.waitForOutput(/^open$/m);
  const delay = await startDelay();
  flooder.kill('SIGTERM');
  await flooder.exit;
  const p99 = times[Math.ceil(times.length * 0.99) - 1]!;
  const figures = {
    p50: times[times.length / 2],
    p99,
    max: times.at(-1),
    apiCpu: ((cpuSeconds(api) - cpuBefore) / (performance.now() - wallBefore)) * 1000,
    lost: times.filter((time) => time === Infinity).length,
    delay,
    peakRss: peakRss(api),
  };
  console.info(kind, path(), JSON.stringify(figures), flooder.stdout);
  expect(p99).toBeLessThan(PROBE_LIMIT_MS);
  expect(delay).toBeLessThan(START_LIMIT_MS);
  expect(figures.peakRss).toBeLessThan(RSS_LIMIT_MB);
});

test('afterwards everything ends as it should', async () => {
  for (const process of [api, worker]) {
    process.kill('SIGTERM');
    expect(await process.exit).toEqual({ code: 0, signal: null });
  }
});
