import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { randomOf } from '../pagers/shifting-list.js';
import { Deployment } from '../process/deployment.js';
import { PostgresServer } from '../support/postgres-server.js';
import type { TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { RedisServer } from '../support/redis-server.js';
import { waitFor } from '../support/wait-for.js';
import { ENTRIES } from '../walks/company-fixture.js';
import { everyRunEnds, findMirrorFaults } from './settled-mirror.js';
import { IS_LONG, shareOf } from './share.js';

// PostgreSQL and Redis are restarted while companies are synced again and again, and while their records change. Nothing of it may
// be seen afterwards. `FIRST_SEED` draws other moments and outages.

/** Restarts of each server. */
const RESTARTS = shareOf(20);
const SEED = Number(process.env.FIRST_SEED ?? 1);
const LISTS = ['employees', 'departments', 'documents'] as const;
const CATALOGUE = { employees: ENTRIES.employees, departments: ENTRIES.departments, documents: ENTRIES.documents };
/** More companies than two workers walk at once, so that a restart always interrupts runs. */
const COMPANIES = Array.from({ length: IS_LONG ? 50 : 16 }, (_, n) => ({ name: `C${n}`, employees: 20 + ((n * 37) % 120) }));
/** Long enough that a walk is held up at many requests, and that some are under way at any moment. */
const LATENCY_MS = 60;
/** A worker's claims lapse meanwhile: after it, others may go on with its runs. */
const LONG_OUTAGE_MS = 7_000;

/** A short search takes one. */
const backends = (['redis', 'postgres'] as const).filter((backend) => backend === 'postgres' || redisUrl()).slice(0, RESTARTS);

describe.each(backends)('with the queue on %s', (backend) => {
  const random = randomOf(SEED * 7_919);
  const ended: string[] = [];
  let postgres: PostgresServer;
  let redis: RedisServer | undefined;
  let deployment: Deployment;
  let processes: TestProcess[];

  beforeAll(async () => {
    postgres = await PostgresServer.start();
    redis = backend === 'redis' ? await RedisServer.start() : undefined;
    deployment = await Deployment.open({
      database: await postgres.database(),
      redisUrl: redis?.url,
      catalogue: CATALOGUE,
      sandbox: { companies: COMPANIES, latencyMs: LATENCY_MS, etags: true, accessTokenSeconds: 30 },
      env: { REFRESH_MARGIN_SECONDS: '10' },
    });
    processes = await Promise.all([deployment.startApi(), deployment.startWorker(), deployment.startWorker()]);
    for (const [n, { exit }] of processes.entries())
      void exit.then(({ code, signal }) => ended.push(`process ${n} by ${signal ?? code}`));
    for (const { companyId } of deployment.sandbox.companies) await deployment.onboard(companyId);
  });

  afterAll(async () => {
    await deployment.close();
    await redis?.remove();
    await postgres.remove();
  });

  test(`${RESTARTS} restarts of each server cost no run, no row and no process`, async () => {
    const quiet = new AbortController();
    const restarting = Promise.all([ofPostgres(), redis && ofRedis(redis)]).finally(() => quiet.abort());
    const [answers] = await Promise.all([askAgainAndAgain(quiet.signal), restarting]);
    // Refused while PostgreSQL was away, and never in any other way.
    expect(['202', '503 database_unavailable']).toEqual(expect.arrayContaining([...answers]));

    await waitFor(async () => (await deployment.fetch('/readyz')).ok, { what: 'the API to be ready' });
    await everyRunEnds(deployment.database.db);
    const interrupted = processes.flatMap(({ stderr }) => stderr.match(/the database interrupted the run/g) ?? []).length;
    console.info(`${interrupted} runs were interrupted`);
    expect(interrupted).toBeGreaterThan(0);
    // What changed while a list was walked is for the next run.
    expect(await deployment.call('POST', '/api/syncs', {})).toMatchObject({ status: 202 });
    await everyRunEnds(deployment.database.db);

    expect(await query('SELECT status, sum(attempts)::int AS attempts FROM muster.runs GROUP BY status')).toEqual([
      { status: 'succeeded', attempts: 0 },
    ]);
    expect(await query('SELECT status, reauthorization_reason FROM muster.connections GROUP BY 1, 2')).toEqual([
      { status: 'active', reauthorization_reason: null },
    ]);
    expect(deployment.sandbox.reusedRefreshTokens).toBe(0);
    expect(await findMirrorFaults(deployment, LISTS)).toEqual([]);
    expect((await deployment.fetch('/readyz')).status).toBe(200);
    expect(ended).toEqual([]);
    for (const process of processes) process.kill('SIGTERM');
    for (const { exit } of processes) expect(await exit).toEqual({ code: 0, signal: null });
  });

  async function ofPostgres(): Promise<void> {
    for (let n = 0; n < RESTARTS; n += 1) {
      await runsAreUnderWay();
      await postgres.stop(random(2) === 0 ? 'fast' : 'immediate');
      await sleep(outage());
      await postgres.start();
    }
  }

  /** It has nothing on its disk: it comes back empty. */
  async function ofRedis(server: RedisServer): Promise<void> {
    for (let n = 0; n < RESTARTS; n += 1) {
      await runsAreUnderWay();
      await server.stop();
      await sleep(outage());
      await server.start();
    }
  }

  async function runsAreUnderWay(): Promise<void> {
    const { requests } = deployment.sandbox;
    const moment = requests.all().length + random(300);
    await waitFor(() => requests.all().length >= moment);
    deployment.sandbox.mutate(60);
    await waitFor(async () => (await query(`SELECT FROM muster.runs WHERE status = 'running' LIMIT 1`)).length > 0);
    expect(ended).toEqual([]);
  }

  function outage(): number {
    return random(5) === 0 ? LONG_OUTAGE_MS : random(1_500);
  }

  /** Asks for a run of every company until the signal aborts; how the API answered. */
  async function askAgainAndAgain(signal: AbortSignal): Promise<Set<string>> {
    const answers = new Set<string>();
    while (!signal.aborted) {
      const { status, body } = await deployment.call('POST', '/api/syncs', {});
      answers.add(status === 202 ? '202' : `${status} ${(body as { code?: string }).code}`);
      await sleep(300);
    }
    return answers;
  }

  async function query<Row extends object>(sql: string): Promise<Row[]> {
    return (await deployment.database.db.pool.query<Row>(sql)).rows;
  }
});
