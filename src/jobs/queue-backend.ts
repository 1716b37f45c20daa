import type { EventEmitter } from 'node:events';
import { type PgPool, type Processor, Queue, runMigrations, Worker, type WorkerOptions, withBackend } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { Logger } from '../observability/logger.js';
import { createBackend, PacedClient } from './postgres-queue.js';
import { QueueOutage } from './queue-outage.js';
import { requireRedis } from './redis-reach.js';

/** Schema of BullMQ's own tables when the queue lives in PostgreSQL. */
const SCHEMA = 'bullmq';

/**
 * What became of a run is in muster.runs. To keep completed jobs for a while would cost more with each one that is kept: PostgreSQL
 * looks at all of them whenever one completes, be it for their age or their number.
 */
const RETENTION = { removeOnComplete: true, removeOnFail: { age: 86_400 } };

/** Where BullMQ keeps its jobs. Both backends run the same code; only what both do alike is used. */
export interface QueueBackend {
  readonly kind: 'redis' | 'postgres';
  queue(name: string): Queue;
  worker(name: string, processor: Processor, options: Pick<WorkerOptions, 'concurrency'>): Worker;
  /** Throws when the backend cannot be reached. */
  ping(): Promise<void>;
  /** The same before anything is built on it: throws `queue_unavailable` within seconds, and says why. */
  requireReachable(): Promise<void>;
  /** Closes the connections; the queues and workers were closed before. */
  close(): Promise<void>;
}

/** Makes BullMQ's tables, or brings them up to date. Safe side by side. */
export async function migrateQueue(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => {}); // the query under way reports it
  await client.connect();
  try {
    await runMigrations(client, SCHEMA);
  } finally {
    await client.end();
  }
}

export function postgresBackend(databaseUrl: string, logger: Logger): QueueBackend {
  // Every worker keeps one connection for LISTEN; the rest serve queries.
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 12,
    keepAlive: true,
    options: `-c search_path=${SCHEMA} -c TimeZone=UTC`,
    application_name: 'muster queue',
    Client: PacedClient,
  });
  const ping = async () => void (await pool.query('SELECT 1'));
  const outage = new QueueOutage('PostgreSQL', ping, logger);
  pool.on('error', (error) => void outage.report(error));
  const bound = withBackend(createBackend);
  // pg's own type of the pool is wider than BullMQ's picture of it.
  const connection = pool as unknown as PgPool;
  // The classes are the same whatever the backend; only their type parameters tell it.
  return {
    kind: 'postgres',
    queue: (name) => quiet(new bound.Queue(name, { connection, defaultJobOptions: RETENTION }) as unknown as Queue, outage),
    worker: (name, processor, options) =>
      quiet(new bound.Worker(name, processor, { connection, ...workerOptions(options) }) as unknown as Worker, outage),
    ping,
    requireReachable: ping, // the database has just been migrated
    close: () => {
      outage.close();
      return pool.end();
    },
  };
}

export function redisBackend(redisUrl: string, logger: Logger): QueueBackend {
  // Workers wait for Redis to come back; whoever adds a job is told at once, since the sweeper adds it later anyway.
  const blocking = new Redis(redisUrl, { maxRetriesPerRequest: null, lazyConnect: true });
  const adding = new Redis(redisUrl, { maxRetriesPerRequest: 1, lazyConnect: true });
  const ping = async () => void (await adding.ping());
  const outage = new QueueOutage('Redis', ping, logger);
  for (const connection of [blocking, adding]) connection.on('error', (error) => void outage.report(error));
  return {
    kind: 'redis',
    queue: (name) => quiet(new Queue(name, { connection: adding, prefix: 'muster', defaultJobOptions: RETENTION }), outage),
    worker: (name, processor, options) =>
      quiet(new Worker(name, processor, { connection: blocking, prefix: 'muster', ...workerOptions(options) }), outage),
    ping,
    requireReachable: () => requireRedis(redisUrl),
    close: async () => {
      outage.close();
      blocking.disconnect();
      adding.disconnect();
    },
  };
}

/**
 * A worker that dies is noticed within seconds. Jobs are only wake-up calls and safe to repeat, so that being called
 * dead too early costs little, and no number of deaths may fail a job for good.
 */
function workerOptions(options: Pick<WorkerOptions, 'concurrency'>): Omit<WorkerOptions, 'connection'> {
  return {
    ...options,
    lockDuration: 6_000,
    stalledInterval: 2_000,
    maxStalledCount: 5,
    maxStartedAttempts: 10,
    removeOnFail: RETENTION.removeOnFail,
  };
}

/** An `error` event without a listener would end the process. */
function quiet<T extends Queue | Worker>(emitter: T, outage: QueueOutage): T {
  (emitter as EventEmitter).on('error', (error: Error) => void outage.report(error, { queue: emitter.name }));
  return emitter;
}
