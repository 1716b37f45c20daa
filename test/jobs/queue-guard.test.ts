import { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import { type QueueBackend, QueueWorker } from '../../src/jobs/queue-backend.js';
import { QueueGuard } from '../../src/jobs/queue-guard.js';
import { redisBackend } from '../../src/jobs/redis-queue.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';

const logger = pino({ level: 'silent' });

describe.each(['postgres', 'redis'].filter((kind) => kind === 'postgres' || redisUrl()))('with the queue on %s', (kind) => {
  let database: TestDatabase;
  let backend: QueueBackend;
  let guard: QueueGuard;
  let worker: QueueWorker;
  let done: string[];

  beforeAll(async () => {
    database = await testDatabase();
    if (kind === 'redis') await inRedis((redis) => redis.flushdb());
    else await migrateQueue(database.url);
    backend = kind === 'redis' ? redisBackend(redisUrl()!, logger) : postgresBackend(database.url, logger);
  });
  beforeEach(async () => {
    done = [];
    await database.db.prisma.queueStop.deleteMany();
    guard = new QueueGuard({ backend, db: database.db, logger });
    worker = new QueueWorker(backend, 'exports', async ({ name }) => void done.push(name), { concurrency: 1 });
    worker.start();
  });
  afterEach(async () => {
    await Promise.all([guard.stop(), guard.stop(), worker.stop()]);
  });
  afterAll(async () => {
    await backend.close();
    await database.close();
  });

  async function inRedis<T>(work: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(redisUrl()!);
    try {
      return await work(redis);
    } finally {
      redis.disconnect();
    }
  }
  /** What the queue knows of itself, its pause among it, is removed. */
  const wreck = () =>
    kind === 'redis'
      ? inRedis((redis) => redis.del('muster:exports:meta'))
      : database.db.pool.query(`DELETE FROM bullmq.meta WHERE queue = 'exports'`);
  const stops = async () => (await database.db.prisma.queueStop.findMany()).map(({ queue }) => queue);

  test.each(['paused', 'paused and then without its data'])('a queue that is %s goes on, and it is recorded', async (state) => {
    const queue = backend.queue('exports');
    await queue.pause();
    await queue.add('waiting', {});
    await guard.start();
    // A queue writes its data some time after it was opened, so it is removed until that is noticed.
    await waitFor(async () => {
      if (state !== 'paused') await wreck();
      return (await stops()).length > 0;
    });
    expect(await stops()).toEqual(['exports']);
    await waitFor(() => done.length > 0);
    await waitFor(async () => (await queue.getVersion()) !== null);
    expect(await queue.isPaused()).toBe(false);
    await queue.close();
  });

  test('queues that work are left alone', async () => {
    const queue = backend.queue('exports');
    await guard.start();
    await queue.pause();
    await waitFor(async () => (await stops()).length > 0); // it has looked
    expect(await stops()).toEqual(['exports']);
    await queue.close();
  });
});
