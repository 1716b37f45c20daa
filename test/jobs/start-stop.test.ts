import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock as clock } from '../../src/core/clock.js';
import type { Service } from '../../src/core/service.js';
import { releaseRun } from '../../src/db/tables/run-releases.js';
import { notificationQueue, tokenQueue } from '../../src/jobs/due-queues.js';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import type { QueueBackend, QueueName } from '../../src/jobs/queue-backend.js';
import { redisBackend } from '../../src/jobs/redis-queue.js';
import { RunQueue, RunWorker } from '../../src/jobs/run-queue.js';
import { Sweeper } from '../../src/jobs/sweeper.js';
import { RunLeases } from '../../src/runs/run-leases.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';

// Every service on a queue (core/service.ts), stopped at every moment. The admin API has its own such test in test/api/plumbing/server.test.ts.

const logger = pino({ level: 'silent' });

// Node warns of an emitter that listeners are added to and added to.
const warnings: string[] = [];
process.on('warning', ({ name }) => warnings.push(name));

/** How to make a service that calls `work` for each of its jobs, and what a job of it is. */
interface Subject {
  readonly queue: QueueName;
  make(work: () => Promise<void>): Service;
  newJob(): Promise<{ name: string; data: object }>;
}

describe.each(['postgres', 'redis'].filter((kind) => kind === 'postgres' || redisUrl()))('with the queue on %s', (kind) => {
  let database: TestDatabase;
  let backend: QueueBackend;
  /** Queues whose worker has begun to close, one entry a worker. */
  const closing: QueueName[] = [];

  beforeAll(async () => {
    database = await testDatabase();
    let opened: QueueBackend;
    if (kind === 'postgres') {
      await migrateQueue(database.url);
      opened = postgresBackend(database.url, logger);
    } else {
      const redis = new Redis(redisUrl()!);
      await redis.flushdb();
      redis.disconnect();
      opened = redisBackend(redisUrl()!, logger);
    }
    backend = {
      ...opened,
      worker: (name, ...rest) => opened.worker(name, ...rest).on('closing', () => closing.push(name)),
      // It is there, however late its answer comes: no stop gives it up.
      answers: () => opened.ping().then(() => true),
    };
  });
  afterAll(async () => {
    await backend.close();
    await database.close(); // fails where a service has kept a connection
  });

  const subjects: Record<string, Subject> = {
    'run worker': {
      queue: 'runs-test',
      make(work) {
        const queue = new RunQueue(backend, logger);
        const leases = new RunLeases(database.db, randomUUID(), logger);
        const execute: ConstructorParameters<typeof RunWorker>[0]['executor']['execute'] = async ({ run }) => {
          await work();
          await releaseRun(database.db, run);
          return 'over';
        };
        const worker = new RunWorker({ backend, queue, executor: { execute }, leases, clock, logger, concurrency: 2 });
        const stop = () => worker.stop().then(() => queue.close());
        return { name: worker.name, start: () => worker.start(), stop };
      },
      async newJob() {
        const run = { environment: 'test', companyId: randomUUID(), trigger: 'manual', mode: 'full' };
        return { name: 'run', data: { runId: (await database.db.prisma.run.create({ data: run })).id } };
      },
    },
    'token worker': {
      queue: 'tokens',
      make: (work) => tokenQueue(backend, { due: async () => [], refresh: work }),
      newJob: async () => ({ name: 'refresh', data: { environment: 'test', companyId: randomUUID() } }),
    },
    'notification worker': {
      queue: 'notifications',
      make: (work) => notificationQueue(backend, { due: async () => [], deliver: work }),
      newJob: async () => ({ name: 'deliver', data: { id: randomUUID() } }),
    },
    sweeper: {
      queue: 'sweeps',
      make: (work) => new Sweeper(backend, [{ name: 'sweep', everyMs: 60_000, run: work }], logger),
      newJob: async () => ({ name: 'sweep', data: {} }),
    },
  };

  test('a sweeper that another one is in the way of starts, and puts its schedules a little later', async () => {
    let swept = 0;
    let isFirst = true;
    const contended = {
      ...backend,
      queue: (name: QueueName) => {
        const queue = backend.queue(name);
        const put = queue.upsertJobScheduler.bind(queue);
        queue.upsertJobScheduler = (...schedule) => {
          if (!isFirst) return put(...schedule);
          isFirst = false;
          return Promise.reject(Object.assign(new Error('deadlock detected'), { code: '40P01' }));
        };
        return queue;
      },
    };
    const sweeper = new Sweeper(contended, [{ name: 'sweep', everyMs: 60_000, run: async () => void (swept += 1) }], logger);
    await sweeper.start();
    await waitFor(() => swept > 0);
    await sweeper.stop();
    expect(swept).toBe(1);
  });

  describe.each(Object.keys(subjects))('the %s', (name) => {
    const { queue, make, newJob } = subjects[name]!;

    async function add(count: number): Promise<void> {
      const jobs = backend.queue(queue);
      await jobs.addBulk(await Promise.all(Array.from({ length: count }, newJob)));
      await jobs.close();
    }

    async function waiting(): Promise<number> {
      const jobs = backend.queue(queue);
      return jobs.getWaitingCount().finally(() => jobs.close());
    }

    /** Services that were stopped work no more: all jobs that are added now are an heir's. */
    async function workedBehind(worked: () => number): Promise<number> {
      const before = worked();
      let inherited = 0;
      const heir = make(async () => void (inherited += 1));
      await heir.start();
      await add(4);
      // Nothing stays in the queue: the next test counts the jobs that it adds itself.
      await waitFor(async () => inherited >= 4 && (await waiting()) === 0);
      await heir.stop();
      return worked() - before;
    }

    test('stops at any moment after its start, once or twice', async () => {
      let worked = 0;
      const work = async () => void (worked += 1);
      await add(4);
      await Promise.all(
        [0, 1, 3, 10, 30].map(async (ms, n) => {
          const service = make(work);
          await service.start();
          await sleep(ms);
          await Promise.all([service.stop(), n % 2 === 0 ? service.stop() : undefined]);
          await service.stop();
        }),
      );
      expect(await workedBehind(() => worked)).toBe(0);
    });

    test('stops before its start has resolved, and is never started once it was stopped', async () => {
      let worked = 0;
      const work = async () => void (worked += 1);
      const services = Array.from({ length: 4 }, () => make(work));
      const starting = services.map((service, n) => (n < 3 ? service.start() : undefined));
      await Promise.all(services.map((service) => service.stop()));
      await Promise.all([...starting, services[3]!.start()]);
      expect(await workedBehind(() => worked)).toBe(0);
    });

    test('waits for the work under way when it stops, and begins no other', async () => {
      const order: string[] = [];
      const finishing: (() => void)[] = [];
      const service = make(async () => {
        order.push('begun');
        await new Promise<void>((resolve) => finishing.push(resolve));
        order.push('ended');
      });
      await service.start();
      await add(1);
      await waitFor(() => finishing.length === 1);
      closing.length = 0;
      const stopping = service.stop().then(() => order.push('stopped'));
      await waitFor(() => closing.includes(queue));
      expect(await workedBehind(() => order.length)).toBe(0);
      finishing[0]!();
      await stopping;
      expect(order).toEqual(['begun', 'ended', 'stopped']);
      expect(await workedBehind(() => order.length)).toBe(0);
    });
  });
});

test('no emitter was listened to ever more', () => expect(warnings).not.toContain('MaxListenersExceededWarning'));
