import {
  type BackendFactory,
  type PgPool,
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
  type Queue,
  runMigrations,
  type Worker,
  withBackend,
} from 'bullmq';
import pg from 'pg';
import type { Logger } from '../observability/logger.js';
import { type QueueBackend, QueueOutage, RETENTION, WORKER_OPTIONS } from './queue-backend.js';

/** Schema of BullMQ's own tables. */
const SCHEMA = 'bullmq';

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

/** The queue in the database that Muster has anyway. */
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
    queue: (name) => outage.watch(new bound.Queue(name, { connection, defaultJobOptions: RETENTION }) as unknown as Queue),
    worker: (name, processor, { concurrency }) =>
      outage.watch(new bound.Worker(name, processor, { connection, concurrency, ...WORKER_OPTIONS }) as unknown as Worker),
    ping,
    requireReachable: ping, // the database has just been migrated
    close: () => {
      outage.close();
      return pool.end();
    },
  };
}

/** How long an attempt to connect that failed keeps its place in the pool. */
const FAILED_CONNECT_MS = 1_000;

/**
 * BullMQ's worker tries again at once and without end when PostgreSQL is there and takes no connection (too many clients,
 * starting up, shutting down); it pauses only where nobody listens. So the attempt fails late, and a pool makes no more of
 * them than it has places, a second.
 */
class PacedClient extends pg.Client {
  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | void {
    // Between two queries nobody but the pool listens, and to a client in use not even that: the event would end the process.
    this.on('error', () => {});
    if (!callback) return super.connect();
    super.connect((error: Error) => void (error ? setTimeout(callback, FAILED_CONNECT_MS, error) : callback(error)));
  }
}

/**
 * A connection of BullMQ that has nothing to wait for before its first query. BullMQ's own looks at the version of its tables
 * first, and keeps the answer: where that one query fails, every later call fails with the same error, without asking again.
 * A queue then is dead until the process ends, and a worker, whose loop retries that at once, takes the process with it: it
 * never returns to the event loop. The tables were brought up to date before (`migrateQueue`).
 */
class ReadyConnection extends PostgresConnection {
  override async waitUntilReady(): Promise<void> {}
}

/** Like BullMQ's `createPostgresBackend`. */
const createBackend: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (
  name,
  options,
  { withBlockingConnection } = {},
) =>
  new PostgresQueueBackend(
    new ReadyConnection(options.connection),
    name,
    options,
    true,
    withBlockingConnection ? name : undefined,
  );
