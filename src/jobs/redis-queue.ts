import { Queue, Worker } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import type { WaitingJobs } from '../db/schema/queue-tables.js';
import type { Logger } from '../observability/logger.js';
import { ANSWER_TO_STOP_MS, QUEUE_OPTIONS, QUEUES, type QueueBackend, QueueOutage, WORKER_OPTIONS } from './queue-backend.js';
import { lookIntoRedis, requireRedis, tryRedis, unusable } from './redis-server.js';

/** Of every key in Redis. */
const prefix = 'muster';

export function redisBackend(redisUrl: string, logger: Logger): QueueBackend {
  // Workers wait for Redis to come back; whoever adds a job is told at once, since the sweeper adds it later anyway.
  const blocking = quiet(new Redis(redisUrl, { maxRetriesPerRequest: null, lazyConnect: true }));
  const adding = quiet(new Redis(redisUrl, { maxRetriesPerRequest: 1, lazyConnect: true }));
  // More than PING, which a server answers that takes no writes.
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
 * BullMQ prints a warning of the eviction policy, on the console and once a connection, by what INFO says of it. The start has said it in the
 * log, so the line is kept from BullMQ.
 */
function quiet(redis: Redis): Redis {
  const ask = redis.info.bind(redis) as (...args: unknown[]) => Promise<string>;
  redis.info = (...args: unknown[]) => {
    const answer = ask(...args);
    // Asked with a callback, by the driver itself, the promise is nobody's.
    return typeof args.at(-1) === 'function' ? answer : answer.then((text) => text.replace(/^maxmemory_policy:.*$/m, ''));
  };
  redis.duplicate = (changes?: Partial<RedisOptions>) => quiet(new Redis({ ...redis.options, ...changes }));
  return redis;
}

/** What INFO says of the server, and the jobs that wait there. Writes nothing. Throws `invalid_configuration` or `queue_unavailable`. */
export function lookIntoRedisQueues(url: string) {
  return lookIntoRedis(url, async (redis) => {
    const connection = quiet(redis);
    const waiting: WaitingJobs[] = [];
    for (const name of QUEUES) {
      // By itself BullMQ writes what it knows of a queue when it is opened.
      const queue = new Queue(name, { connection, prefix, skipMetasUpdate: true });
      queue.on('error', () => {}); // the call under way reports it
      const [oldest] = await queue.getWaiting(0, 0);
      waiting.push({ queue: name, waiting: await queue.getWaitingCount(), oldestAt: oldest?.timestamp ?? null });
    }
    return waiting;
  });
}
