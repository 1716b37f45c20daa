import { Queue, Worker } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import type { WaitingJobs } from '../db/schema/queue-tables.js';
import type { Logger } from '../observability/logger.js';
import { ANSWER_TO_STOP_MS, QUEUE_OPTIONS, QUEUES, type QueueBackend, QueueOutage, WORKER_OPTIONS } from './queue-backend.js';
import { lookIntoRedis, requireRedis, tryRedis, unusable } from './redis-server.js';

/** The prefix of every key in Redis. */
const prefix = 'muster';

export function redisBackend(redisUrl: string, logger: Logger): QueueBackend {
  // Workers wait for Redis to come back. Adding a job fails at once, since the sweeper adds it later anyway.
  const blocking = quiet(new Redis(redisUrl, { maxRetriesPerRequest: null, lazyConnect: true }));
  const adding = quiet(new Redis(redisUrl, { maxRetriesPerRequest: 1, lazyConnect: true }));
  // PING is not enough: a server that accepts no writes answers it too.
  const ping = () =>
    tryRedis(adding, prefix).catch((error: Error) => {
      throw unusable(redisUrl, error);
    });
  const outage = new QueueOutage('Redis', ping, logger);
  for (const connection of [blocking, adding]) connection.on('error', (error) => void outage.report(error));
  return {
    queue: (name) => outage.watch(new Queue(name, { connection: adding, prefix, ...QUEUE_OPTIONS })),
    worker: (name, processor, { concurrency }) =>
      outage.watch(new Worker(name, processor, { connection: blocking, prefix, concurrency, ...WORKER_OPTIONS })),
    ping,
    answers: () => outage.answers(ANSWER_TO_STOP_MS),
    requireReachable: () => requireRedis(redisUrl, prefix, logger),
    close: async () => {
      outage.close();
      blocking.disconnect();
      adding.disconnect();
    },
  };
}

/**
 * Hides the eviction policy in INFO from BullMQ, which would print a warning about it on the console for each connection. The start of the
 * process has already logged it.
 */
function quiet(redis: Redis): Redis {
  const ask = redis.info.bind(redis) as (...args: unknown[]) => Promise<string>;
  redis.info = (...args: unknown[]) => {
    const info = ask(...args);
    // The driver itself calls with a callback and ignores the promise, so a rejection must not reach a second promise.
    return typeof args.at(-1) === 'function' ? info : info.then((text) => text.replace(/^maxmemory_policy:.*$/m, ''));
  };
  redis.duplicate = (changes?: Partial<RedisOptions>) => quiet(new Redis({ ...redis.options, ...changes }));
  return redis;
}

/** Reads INFO and the waiting jobs, and writes nothing. Throws `invalid_configuration` or `queue_unavailable`. */
export function lookIntoRedisQueues(url: string) {
  return lookIntoRedis(url, async (redis) => {
    const connection = quiet(redis);
    const waiting: WaitingJobs[] = [];
    for (const name of QUEUES) {
      // Without skipMetasUpdate, BullMQ writes its own data about a queue when the queue is opened.
      const queue = new Queue(name, { connection, prefix, skipMetasUpdate: true });
      queue.on('error', () => {}); // the current call reports it
      const [oldest] = await queue.getWaiting(0, 0);
      waiting.push({ queue: name, waiting: await queue.getWaitingCount(), oldestAt: oldest?.timestamp ?? null });
    }
    return waiting;
  });
}
