import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { connectionFailure } from '../core/connection-failure.js';
import { MusterError } from '../core/errors.js';
import type { Logger } from '../observability/logger.js';
import { type QueueBackend, QueueOutage, RETENTION, WORKER_OPTIONS } from './queue-backend.js';

export function redisBackend(redisUrl: string, logger: Logger): QueueBackend {
  // Workers wait for Redis to come back; whoever adds a job is told at once, since the sweeper adds it later anyway.
  const blocking = new Redis(redisUrl, { maxRetriesPerRequest: null, lazyConnect: true });
  const adding = new Redis(redisUrl, { maxRetriesPerRequest: 1, lazyConnect: true });
  const ping = async () => void (await adding.ping());
  const outage = new QueueOutage('Redis', ping, logger);
  for (const connection of [blocking, adding]) connection.on('error', (error) => void outage.report(error));
  const prefix = 'muster';
  return {
    queue: (name) => outage.watch(new Queue(name, { connection: adding, prefix, defaultJobOptions: RETENTION })),
    worker: (name, processor, { concurrency }) =>
      outage.watch(new Worker(name, processor, { connection: blocking, prefix, concurrency, ...WORKER_OPTIONS })),
    ping,
    requireReachable: () => requireRedis(redisUrl),
    close: async () => {
      outage.close();
      blocking.disconnect();
      adding.disconnect();
    },
  };
}

const LIMIT_MS = 5_000;

/**
 * Throws `queue_unavailable` when Redis does not answer within five seconds, and says why. BullMQ's own connections try
 * for ever, which is right while Muster runs and hides a wrong setting at its start.
 */
async function requireRedis(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: LIMIT_MS,
    maxRetriesPerRequest: 0,
  });
  // What a call rejects with says only that the connection is closed.
  let cause: Error | undefined;
  redis.on('error', (error: Error) => (cause ??= error));
  const limit = new AbortController();
  try {
    const late = sleep(LIMIT_MS, undefined, { signal: limit.signal }).then(() => Promise.reject(new Error('timeout')));
    await Promise.race([redis.connect().then(() => redis.ping()), late]);
  } catch (error) {
    const why = reason(cause ?? (error as Error));
    throw new MusterError(
      'queue_unavailable',
      `Redis at ${place(url)} cannot be used: ${why}. See that it runs and that REDIS_URL is right, ` +
        'or leave REDIS_URL out to keep the queue in PostgreSQL.',
      { cause: cause ?? error },
    );
  } finally {
    limit.abort();
    redis.disconnect();
  }
}

function reason(error: Error): string {
  if (/^(WRONGPASS|NOAUTH|ERR invalid password|ERR AUTH)/.test(error.message)) return 'it refuses the user or the password';
  if (error.name === 'ParserError') return 'what listens there is not Redis';
  return connectionFailure(error);
}

/** Host and port, never the password. */
function place(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || 6379}`;
}
