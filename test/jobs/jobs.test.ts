import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { releaseRun } from '../../src/db/tables/run-releases.js';
import { type ClaimedRun, claimRun } from '../../src/db/tables/runs.js';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import type { QueueBackend } from '../../src/jobs/queue-backend.js';
import { redisBackend } from '../../src/jobs/redis-queue.js';
import { RunQueue, RunWorker } from '../../src/jobs/run-queue.js';
import { type Sweep, Sweeper } from '../../src/jobs/sweeper.js';
import { orphanedRuns } from '../../src/jobs/sweeps.js';
import { finishRun } from '../../src/runs/attempt.js';
import { RunLeases } from '../../src/runs/run-leases.js';
import { Runs } from '../../src/runs/runs.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { notQuiet } from '../support/quiet.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';

const logger = pino({ level: 'silent' });
const endpoints = endpointsOf({ departments: ENTRIES.departments });
const catalogue = { endpoints, get: () => endpoints[0] };
/** Moved on by a test, in milliseconds. */
let later = 0;
const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + later };

describe.each(['postgres', 'redis'].filter((kind) => kind === 'postgres' || redisUrl()))('with the queue on %s', (kind) => {
  let database: TestDatabase;
  let backend: QueueBackend;
  let queue: RunQueue;
  let runs: Runs;
  let company: CompanyKey;
  let worked: ClaimedRun[];
  let stops: (() => Promise<unknown>)[];

  beforeAll(async () => {
    database = await testDatabase();
    await migrateQueue(database.url);
  });
  afterAll(() => database.close());

  beforeEach(async () => {
    await flush();
    stops = [];
    worked = [];
    backend = open();
    queue = new RunQueue(backend, logger);
    stops.push(() => queue.close());
    const schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 0 };
    runs = new Runs({ db: database.db, catalogue, quiet: notQuiet, schedule, clock, dispatcher: queue });
    company = await onboard(database.db);
  });
  afterEach(async () => {
    for (const stop of stops.toReversed()) await stop();
    await database.db.prisma.run.deleteMany();
  });

  function open(): QueueBackend {
    const opened = kind === 'postgres' ? postgresBackend(database.url, logger) : redisBackend(redisUrl()!, logger);
    stops.push(() => opened.close());
    return opened;
  }

  /** As if the queue had been emptied behind our back. */
  async function flush(): Promise<void> {
    if (kind === 'redis') {
      const redis = new Redis(redisUrl()!);
      await redis.flushdb();
      redis.disconnect();
      return;
    }
    const { rows } = await database.db.pool.query<{ name: string }>(
      `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'bullmq' AND tablename NOT LIKE '%migration%'`,
    );
    const truncate = () => database.db.pool.query(`TRUNCATE ${rows.map(({ name }) => `bullmq.${name}`).join(', ')} CASCADE`);
    // BullMQ holds some of its tables while it waits for others: then one of the two has to give way.
    await waitFor(() => truncate().then(() => true), { what: 'the tables to be emptied' });
  }

  /** The schedules of the sweeps stay, and none of their jobs. */
  async function loseJobs(): Promise<void> {
    if (kind === 'postgres') return void (await database.db.pool.query(`DELETE FROM bullmq.job WHERE queue = 'sweeps'`));
    const redis = new Redis(redisUrl()!);
    await redis.del('muster:sweeps:wait', 'muster:sweeps:delayed');
    redis.disconnect();
  }

  /** A worker whose runs end at once, but for those that wait for `unblocked`. */
  async function startWorker(unblocked: (run: ClaimedRun) => Promise<unknown> = async () => {}): Promise<void> {
    await startWorkerThat(async ({ run }) => {
      await unblocked(run);
      return endRun(run);
    });
  }

  async function endRun(run: ClaimedRun): Promise<'over'> {
    worked.push(run);
    await database.db.prisma.walk.updateMany({ where: { runId: run.id }, data: { status: 'succeeded' } });
    await finishRun(database.db, run, 'succeeded');
    return 'over';
  }

  async function startWorkerThat(execute: ConstructorParameters<typeof RunWorker>[0]['executor']['execute']): Promise<void> {
    const worker = new RunWorker({
      backend,
      queue,
      executor: { execute },
      leases: new RunLeases(database.db, 'worker', logger),
      clock,
      logger,
      concurrency: 2,
    });
    stops.push(() => worker.stop());
    await worker.start();
  }

  async function startSweeper(sweep: Sweep): Promise<void> {
    const sweeper = new Sweeper(backend, [sweep], logger);
    stops.push(() => sweeper.stop());
    await sweeper.start();
  }

  /** The sweep for runs that nobody has claimed. */
  const orphans = (): Sweep => ({ name: 'orphaned-runs', everyMs: 2_000, run: orphanedRuns(database.db, queue) });

  test('asking twice for one claim adds one job, and the next claim gets its own', async () => {
    const { id } = await runs.request({ company, trigger: 'manual' });
    for (let n = 0; n < 5; n += 1) await queue.dispatch([{ id, epoch: 0n, environment: 'test' }]);
    expect(await queue.waiting()).toBe(1);
    const { id: second } = await runs.request({ company: await onboard(database.db), trigger: 'manual' });
    await queue.dispatch([
      { id, epoch: 1n, environment: 'test' },
      { id: second, epoch: 0n, environment: 'test' },
      { id, epoch: 0n, environment: 'test' },
    ]);
    expect(await queue.waiting()).toBe(3);
    await startWorker();
    await waitFor(async () => (await queue.waiting()) === 0);
    await waitFor(() => worked.length === 2);
    expect(worked.map((run) => run.id).toSorted()).toEqual([id, second].toSorted());
  });

  test('runs that wait for the service of one environment keep no slot from the other', async () => {
    const waits: CompanyKey[] = [];
    for (let n = 0; n < 5; n += 1) waits.push(await onboard(database.db));
    for (const each of waits) await runs.request({ company: each, trigger: 'manual' });
    let admit = () => {};
    const budget = new Promise<void>((resolve) => (admit = resolve));
    await startWorker(({ company: { environment } }) => (environment === 'test' ? budget : Promise.resolve()));
    const { id } = await runs.request({ company: await onboard(database.db, 'production'), trigger: 'manual' });
    await waitFor(() => worked.length === 1);
    expect(worked).toMatchObject([{ id }]);
    admit();
    await waitFor(() => worked.length === 6);
  });

  test('a giant steps back once it has had its slice, while others wait', async () => {
    for (let n = 0; n < 4; n += 1) await runs.request({ company: await onboard(database.db), trigger: 'manual' });
    let hasYielded = false;
    await startWorkerThat(async ({ run }, shouldYield) => {
      later += 6_000;
      await waitFor(() => hasYielded || shouldYield());
      if (!hasYielded) {
        hasYielded = true;
        await releaseRun(database.db, run);
        return 'continue';
      }
      return endRun(run);
    });
    const jobs = backend.queue('runs-test');
    stops.push(() => jobs.close());
    const [giant, ...others] = await waitFor(async () => {
      const delayed = await jobs.getDelayed();
      return delayed.length > 0 ? delayed : undefined;
    });
    expect([giant!.delay, others]).toEqual([20_000, []]);
    await waitFor(() => worked.length === 3);
    await giant!.promote();
    await waitFor(() => worked.length === 4);
  });

  test('a run whose job was lost, and one whose worker died, go on by themselves', async () => {
    const lost = await runs.request({ company, trigger: 'manual' });
    const second = await onboard(database.db);
    const held = await runs.request({ company: second, trigger: 'manual' });
    expect(await claimRun(database.db, { id: held.id, worker: 'dead' })).toBeDefined();
    await flush();
    await startWorker();
    await startSweeper(orphans());
    await waitFor(() => worked.length === 2);
    expect(worked.map(({ id }) => id).toSorted()).toEqual([lost.id, held.id].toSorted());
    expect(worked.find(({ id }) => id === held.id)).toMatchObject({ epoch: 2n });
  });

  test('a job that died before it claimed its run does not keep the run from another', async () => {
    const doomed = open().worker('runs-test', () => new Promise(() => {}), { concurrency: 1 });
    const { id } = await runs.request({ company, trigger: 'manual' });
    await waitFor(async () => (await queue.waiting()) === 0);
    await doomed.close(true);
    await startWorker();
    await startSweeper(orphans());
    await waitFor(() => worked.length === 1);
    expect(worked).toMatchObject([{ id }]);
  });

  test('a run is put before the workers again soon while few jobs wait, and rarely while many do', async () => {
    const { id } = await runs.request({ company, trigger: 'manual' });
    const fill = async () => {
      await flush();
      for (let n = 0; n < 100; n += 1) await queue.dispatch([{ id: randomUUID(), epoch: 0n, environment: 'test' }]);
    };
    const sweep = orphans();
    await fill();
    await sweep.run();
    expect(await queue.waiting()).toBe(101);
    await fill();
    await sweep.run();
    expect(await queue.waiting()).toBe(100);
    const now = performance.now();
    const clocks = vi.spyOn(performance, 'now').mockReturnValue(now + 30_000);
    await sweep.run();
    clocks.mockRestore();
    expect(await queue.waiting()).toBe(101);
    await fill();
    await startWorker();
    await waitFor(async () => (await queue.waiting()) === 0);
    expect(worked).toEqual([]);
    await sweep.run();
    await waitFor(() => worked.length === 1);
    expect(worked).toMatchObject([{ id }]);
  });

  test('of a job that is done nothing stays in the queue', async () => {
    await runs.request({ company, trigger: 'manual' });
    await startWorker();
    await waitFor(() => worked.length === 1);
    const jobs = backend.queue('runs-test');
    stops.push(() => jobs.close());
    await waitFor(async () => (await jobs.getJobCounts('waiting', 'active'))['active'] === 0);
    expect(await jobs.getJobCounts('completed', 'failed')).toEqual({ completed: 0, failed: 0 });
  });

  test('sweeps go on after the queue was flushed', async () => {
    let swept = 0;
    const sweep = async () => {
      swept += 1;
    };
    await startSweeper({ name: 'counting', everyMs: 500, run: sweep });
    await waitFor(() => swept >= 2);
    await flush();
    const before = swept;
    expect(await waitFor(() => swept >= before + 3)).toBe(true);
    const jobs = backend.queue('sweeps');
    stops.push(() => jobs.close());
    expect(await jobs.getJobCounts('completed', 'failed')).toEqual({ completed: 0, failed: 0 });
  });

  test.each([
    ['ten minutes ahead', 600_000],
    ['ten minutes back, and their jobs were lost', -600_000],
  ])('sweeps go on after a worker has put them by a clock that was %s', async (_what, ms) => {
    let swept = 0;
    const jobs = backend.queue('sweeps');
    stops.push(() => jobs.close());
    const then = Date.now() + ms;
    const clocks = vi.spyOn(Date, 'now').mockImplementation(() => then);
    await jobs.upsertJobScheduler('counting', { every: 500 }, { name: 'counting' });
    clocks.mockRestore();
    if (ms < 0) await loseJobs();
    await startSweeper({ name: 'counting', everyMs: 500, run: async () => void (swept += 1) });
    expect(await waitFor(() => swept >= 4)).toBe(true);
  });

  test('a sweep that fails is made again', async () => {
    let swept = 0;
    const sweep = async () => {
      swept += 1;
      throw new Error('the database is away');
    };
    await startSweeper({ name: 'failing', everyMs: 300, run: sweep });
    expect(await waitFor(() => swept >= 4)).toBe(true);
  });
});
