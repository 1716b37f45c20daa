import { setTimeout as sleep } from 'node:timers/promises';
import { EXPIRED } from '../oauth/fixture.js';
import { Deployment } from '../process/deployment.js';
import { waitFor } from '../process/wait-for.js';
import { Line } from '../support/line.js';
import { PostgresServer } from '../support/postgres-server.js';
import type { TestProcess } from '../support/process.js';
import { RedisServer } from '../support/redis-server.js';
import { SmallDisk } from '../support/small-disk.js';
import { ENTRIES } from '../walks/company-fixture.js';
import type { Random } from './draw.js';
import { everyRunEnds, findMirrorFaults } from './settled-mirror.js';

const LISTS = ['employees', 'departments', 'documents'] as const;
const CATALOGUE = { employees: ENTRIES.employees, departments: ENTRIES.departments, documents: ENTRIES.documents };
const COMPANIES = Array.from({ length: 8 }, (_, n) => ({ name: `C${n}`, employees: 20 + ((n * 37) % 90) }));
/** So long takes a request that some are under way at any moment. */
const LATENCY_MS = 40;
/** PostgreSQL keeps little of its log ahead, so that all of it fits into the disk, and a full one is noticed at once. */
const DISK_MB = 400;
const SETTINGS = { max_wal_size: '64MB', min_wal_size: '32MB' };
/** At each beat of the load every company is to be synced, and a company's token is to be refreshed. */
const BEAT_MS = 400;
const CHANGES_A_BEAT = 4;
/** Longer than a refresh is put off at first. */
const NUDGE_MS = 4_000;

const PRELOADED = { NODE_OPTIONS: `--import ${new URL('jumping-clock.mjs', import.meta.url).href}` };

export type ProcessName = 'api' | 'first worker' | 'second worker';
export const WORKERS = ['first worker', 'second worker'] as const satisfies readonly ProcessName[];

/** An API and two workers with all that they need, each part of which a step may hurt: PostgreSQL, Redis, the service and the way to it. */
export class ChaosWorld {
  readonly #processes = new Map<ProcessName, TestProcess>();
  /** Processes that ended, and that no step had killed. */
  readonly #ended: string[] = [];
  readonly #doomed = new Set<TestProcess>();

  private constructor(
    readonly random: Random,
    /** Undefined where none can be mounted. */
    readonly disk: SmallDisk | undefined,
    readonly postgres: PostgresServer,
    readonly redis: RedisServer,
    readonly line: Line,
    readonly deployment: Deployment,
  ) {}

  /** Resolves when every company is mirrored. */
  static async open(random: Random): Promise<ChaosWorld> {
    const disk = SmallDisk.mount(DISK_MB);
    const postgres = await PostgresServer.start({ folder: disk?.path, settings: SETTINGS });
    const redis = await RedisServer.start();
    const deployment = await Deployment.open({
      database: await postgres.database(),
      redisUrl: redis.url,
      catalogue: CATALOGUE,
      sandbox: { companies: COMPANIES, latencyMs: LATENCY_MS, etags: true },
    });
    const line = await Line.open(deployment.sandbox.url);
    const address = line.url.href.replace(/\/$/, '');
    Object.assign(deployment.env, { TEST_BASE_URL: address, TEST_AUTH_URL: address });
    const world = new ChaosWorld(random, disk, postgres, redis, line, deployment);
    await Promise.all([world.start('api'), ...WORKERS.map((worker) => world.start(worker))]);
    for (const { companyId } of deployment.sandbox.companies) await deployment.onboard(companyId);
    await everyRunEnds(deployment.database.db);
    return world;
  }

  async close(): Promise<void> {
    await this.line.cut();
    await this.deployment.close();
    await this.redis.remove();
    await this.postgres.remove();
    this.disk?.remove();
  }

  async start(name: ProcessName): Promise<void> {
    const { deployment } = this;
    const started = await (name === 'api' ? deployment.startApi() : deployment.startWorker(PRELOADED));
    this.#processes.set(name, started);
    void started.exit.then(({ code, signal }) => this.#doomed.has(started) || this.#ended.push(`${name} by ${signal ?? code}`));
  }

  process(name: ProcessName): TestProcess {
    return this.#processes.get(name)!;
  }

  /** kill -9, a pause, and a new one. */
  async replace(...names: readonly ProcessName[]): Promise<void> {
    const killed = names.map((name) => this.process(name));
    for (const process of killed) {
      this.#doomed.add(process);
      process.kill('SIGKILL');
    }
    await Promise.all(killed.map(({ exit }) => exit));
    await this.pause();
    await Promise.all(names.map((name) => this.start(name)));
  }

  /** What is hurt stays so for a while: now and then long enough for claims of runs to lapse. */
  async pause(): Promise<void> {
    await sleep(this.random(4) === 0 ? 7_000 : 500 + this.random(2_500));
  }

  async isReady(): Promise<boolean> {
    return this.deployment.fetch('/readyz').then(
      ({ ok }) => ok,
      () => false,
    );
  }

  /** Resolves when the API says that it is not ready: what was done to a server has arrived. */
  async unready(): Promise<void> {
    await waitFor(async () => !(await this.isReady()), { what: 'the API to notice' });
  }

  async query<Row extends object>(sql: string): Promise<Row[]> {
    return (await this.deployment.database.db.pool.query<Row>(sql)).rows;
  }

  /** Makes the access tokens of these companies expire: each is refreshed at its next use. */
  async expireTokens(companies: readonly string[]): Promise<void> {
    const ids = companies.map((id) => `'${id}'`).join(', ');
    await this.query(`UPDATE muster.tokens SET ${EXPIRED} WHERE company_id IN (${ids})`);
  }

  /** Some of the companies, in an order that is drawn. */
  someCompanies(count: number): string[] {
    return shuffled(
      this.deployment.sandbox.companies.map(({ companyId }) => companyId),
      this.random,
    ).slice(0, count);
  }

  /** Does the work while the service's data change, every company is synced again and again, and tokens are refreshed. */
  async underLoad(work: () => Promise<void>): Promise<void> {
    const ending = new AbortController();
    const load = this.#load(ending.signal);
    try {
      await waitFor(async () => (await this.query(`SELECT FROM muster.runs WHERE status = 'running' LIMIT 1`)).length > 0, {
        what: 'a run to be under way',
      });
      await sleep(this.random(600));
      await work();
    } finally {
      ending.abort();
      await load;
    }
  }

  /** Resolves when everything goes on: why companies had to authorize again, and what is not as it should be, a line each. */
  async settle(): Promise<{ readonly lost: readonly string[]; readonly faults: readonly string[] }> {
    await waitFor(() => this.isReady(), { what: 'the API to be ready' });
    const lost: string[] = [];
    for (let before = -1; before < lost.length; ) {
      before = lost.length;
      // What changed while a list was walked is for the next run.
      for (let n = 0; n < 2; n += 1) await this.#syncAll(lost);
    }
    const unfit = await this.query<{ line: string }>(`
      SELECT company_id || ': its last run ' || status AS line FROM (
        SELECT DISTINCT ON (company_id) company_id, status FROM muster.runs WHERE kind = 'sync' ORDER BY company_id, seq DESC) last
      WHERE status <> 'succeeded'
      UNION ALL SELECT 'run: ' || error::text FROM muster.runs WHERE error->>'code' = 'internal_error'
      UNION ALL SELECT resource || ': ' || error::text FROM muster.walks WHERE error->>'code' = 'internal_error'`);
    const mirrors = await findMirrorFaults(this.deployment, LISTS);
    return { lost, faults: [...this.#ended, ...unfit.map(({ line }) => line), ...mirrors] };
  }

  /** How each process ends when it is told to. */
  async stop(): Promise<readonly object[]> {
    for (const process of this.#processes.values()) {
      this.#doomed.add(process);
      process.kill('SIGTERM');
    }
    return Promise.all([...this.#processes.values()].map(({ exit }) => exit));
  }

  async #load(signal: AbortSignal): Promise<void> {
    const { sandbox } = this.deployment;
    while (!signal.aborted) {
      sandbox.mutate(CHANGES_A_BEAT);
      // Whatever is hurt just now, these fail.
      await this.deployment.call('POST', '/api/syncs', {}).catch(() => undefined);
      await this.expireTokens(this.someCompanies(1)).catch(() => undefined);
      await sleep(BEAT_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /**
   * Resolves when every company was synced once more. A run that waits to retry is asked for again, and a company authorizes again that must, as by a
   * person who knows that all is mended; the reasons of the latter are added to `lost`.
   */
  async #syncAll(lost: string[]): Promise<void> {
    lost.push(...(await this.#reauthorize()));
    await this.#ask('/api/syncs', {}, 202);
    let isOver = false;
    const over = everyRunEnds(this.deployment.database.db).finally(() => {
      isOver = true;
    });
    for (;;) {
      await Promise.race([over, sleep(NUDGE_MS)]);
      lost.push(...(await this.#reauthorize()));
      if (isOver) return over;
      const waiting = await this.query<{ id: string }>(
        `SELECT company_id::text AS id FROM muster.runs WHERE status = 'queued' AND start_after > now()`,
      );
      for (const { id } of waiting) await this.deployment.call('POST', `/api/companies/test/${id}/sync`);
    }
  }

  async #ask(path: string, body: object, expected: number): Promise<void> {
    const answer = await this.deployment.call('POST', path, body);
    if (answer.status !== expected) throw new Error(`POST ${path} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  }

  /** A person authorizes each company that needs it; of these the reasons. */
  async #reauthorize(): Promise<string[]> {
    const { deployment } = this;
    const found = await this.query<{ id: string; reason: string }>(
      `SELECT company_id::text AS id, reauthorization_reason AS reason FROM muster.connections WHERE status = 'reauthorization_required'`,
    );
    for (const { id } of found) {
      const refresh_token = deployment.sandbox.issueRefreshToken(id).reveal();
      await this.#ask('/api/companies', { environment: 'test', company_id: id, refresh_token }, 200);
    }
    return found.map(({ reason }) => reason);
  }
}

/** The same things in an order that is drawn. */
export function shuffled<T>(things: readonly T[], random: Random): T[] {
  return things
    .map((thing) => ({ thing, at: random(1_000_000_000) }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ thing }) => thing);
}
