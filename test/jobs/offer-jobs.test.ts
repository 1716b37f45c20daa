import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from 'bullmq';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import { type QueueBackend, QueueWorker } from '../../src/jobs/queue-backend.js';
import { redisBackend } from '../../src/jobs/redis-queue.js';
import { RunQueue } from '../../src/jobs/run-queue.js';
import { randomOf } from '../pagers/shifting-list.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';

const logger = pino({ level: 'silent' });

/** Puts the runs before the workers, as the sweep does. */
async function offer(queue: RunQueue, ids: Iterable<string>, delayMs = 0): Promise<void> {
  await queue.dispatch(
    [...ids].map((id) => ({ id, epoch: 0n, environment: 'test' })),
    delayMs,
  );
}

/** Resolves when a worker has had every run. The runs are offered until then. */
async function workOn(backend: QueueBackend, queue: RunQueue, due: Set<string>, meanwhile = async () => {}): Promise<void> {
  const work = async ({ data }: Job) => {
    if (data.runId === undefined) throw new Error('a job without a run');
    due.delete(data.runId);
  };
  const worker = new QueueWorker(backend, 'runs-test', work, { concurrency: 2 });
  worker.start();
  await meanwhile();
  await waitFor(async () => {
    await offer(queue, due);
    return due.size === 0;
  });
  await worker.stop();
}

// Redis may lose single keys: it evicts them, or a person deletes them. Lists, jobs and deduplication keys then contradict each other.
describe.skipIf(!redisUrl())('a queue in Redis that loses keys', () => {
  const QUEUE = 'muster:runs-test';
  let redis: Redis;
  let backend: QueueBackend;
  let queue: RunQueue;

  beforeAll(() => {
    redis = new Redis(redisUrl()!);
    backend = redisBackend(redisUrl()!, logger);
  });
  beforeEach(async () => {
    await redis.flushdb();
    queue = new RunQueue(backend, logger);
    return () => queue.close();
  });
  afterAll(async () => {
    await backend.close();
    redis.disconnect();
  });

  /** A queue with one run in each state, key by key. */
  async function everyState(): Promise<{ runs: readonly string[]; keys: ReadonlyMap<string, Buffer> }> {
    const [waiting, delayed, active] = [randomUUID(), randomUUID(), randomUUID()];
    await offer(queue, [active]);
    const dying = backend.worker('runs-test', () => new Promise(() => {}), { concurrency: 1 });
    await waitFor(() => redis.exists(`${QUEUE}:active`));
    await dying.close(true);
    await offer(queue, [waiting]);
    await offer(queue, [delayed], 20);
    // The job of the dead worker was found without a lock once. The next check gives it to another worker.
    const [job] = await redis.lrange(`${QUEUE}:active`, 0, -1);
    await redis.del(`${QUEUE}:${job}:lock`, `${QUEUE}:stalled-check`);
    await redis.sadd(`${QUEUE}:stalled`, job!);
    const keys = new Map<string, Buffer>();
    for (const key of await redis.keys('*')) keys.set(key, await redis.dumpBuffer(key));
    return { runs: [waiting, delayed, active], keys };
  }

  async function restore(keys: ReadonlyMap<string, Buffer>, lost: readonly string[]): Promise<void> {
    const restoring = redis.multi().flushdb();
    for (const [key, value] of keys) if (!lost.includes(key)) restoring.restore(key, 0, value);
    await restoring.exec();
  }

  test('works on every run, whichever one or two keys are gone', async () => {
    const { runs, keys } = await everyState();
    const names = [...keys.keys()];
    // Each of three runs has a list, a job and a deduplication key.
    const ofRuns = names.filter((key) => key.startsWith(QUEUE) && !/:(events|stalled|meta|id|marker)$/.test(key));
    expect(ofRuns).toHaveLength(9);
    const pairs = ofRuns.flatMap((key, n) => ofRuns.slice(n + 1).map((other) => [key, other]));
    for (const lost of [...names.map((key) => [key]), ...pairs]) {
      await restore(keys, lost);
      await workOn(backend, queue, new Set(runs));
      // A job whose data are gone is nobody's failure.
      expect([lost, await redis.exists(`${QUEUE}:failed`)]).toEqual([lost, 0]);
    }
  });

  test.each([1, 2, 3, 4, 5, 6])('works on every run, whenever each key is deleted (seed %i)', async (seed) => {
    const random = randomOf(seed);
    const due = new Set(Array.from({ length: 30 }, () => randomUUID()));
    await offer(queue, due);
    await workOn(backend, queue, due, async () => {
      for (let n = 0; n < 40; n += 1) {
        const keys = await redis.keys(`${QUEUE}*`);
        if (keys.length > 0) await redis.del(keys[random(keys.length)]!);
        // New runs come, and known ones are offered again.
        due.add(randomUUID());
        await offer(queue, due);
        await sleep(random(5));
      }
    });
    expect(due.size).toBe(0);
  });
});

describe.each(['postgres', 'redis'].filter((kind) => kind === 'postgres' || redisUrl()))('with the queue on %s', (kind) => {
  let database: TestDatabase;
  let backend: QueueBackend;
  let queue: RunQueue;

  beforeAll(async () => {
    database = await testDatabase();
    await migrateQueue(database.url);
    const redis = kind === 'redis' ? new Redis(redisUrl()!) : undefined;
    await redis?.flushdb();
    redis?.disconnect();
    backend = kind === 'postgres' ? postgresBackend(database.url, logger) : redisBackend(redisUrl()!, logger);
    queue = new RunQueue(backend, logger);
  });
  afterAll(async () => {
    await queue.close();
    await backend.close();
    await database.close();
  });

  test('a run that a worker delayed by a fast clock is worked on at once', async () => {
    const id = randomUUID();
    const then = Date.now() + 600_000;
    const clocks = vi.spyOn(Date, 'now').mockReturnValue(then);
    await offer(queue, [id], 20_000);
    clocks.mockRestore();
    const due = new Set([id]);
    await workOn(backend, queue, due);
    expect(due.size).toBe(0);
  });

  test('a run that steps back stays delayed, however often it is offered', async () => {
    const id = randomUUID();
    await offer(queue, [id], 20_000);
    await offer(queue, [id]);
    await offer(queue, [id]);
    const jobs = backend.queue('runs-test');
    expect(await jobs.getJobCounts('waiting', 'delayed')).toMatchObject({ waiting: 0, delayed: 1 });
    await jobs.close();
  });

  test('more jobs than are looked up at once are replaced in one sweep', async () => {
    const lost = Array.from({ length: 250 }, () => randomUUID());
    const then = Date.now() + 600_000;
    const clocks = vi.spyOn(Date, 'now').mockReturnValue(then);
    await offer(queue, lost, 20_000);
    clocks.mockRestore();
    await offer(queue, lost);
    expect(await queue.waiting()).toBe(250);
    await workOn(backend, queue, new Set(lost));
  });
});
