import { setTimeout as sleep } from 'node:timers/promises';
import {
  assertSchemaCompatibility,
  type BackendFactory,
  LATEST_SCHEMA_VERSION,
  type PgPool,
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
  type Queue,
  runMigrations,
  SchemaMigrationRequiredError,
  type Worker,
  withBackend,
} from 'bullmq';
import pg from 'pg';
import { MusterError } from '../core/errors.js';
import { explainConnectFailure } from '../db/connection/connect-failure.js';
import { connectionOptions, sessionOptions } from '../db/connection/connection-options.js';
import { DatabaseClient } from '../db/connection/database-client.js';
import { poolsTransactions } from '../db/connection/pooling.js';
import { prepareSession, setSearchPath } from '../db/connection/session.js';
import { foreignObject } from '../db/schema/foreign-objects.js';
import { dropEmptied, makeJobSequences, QUEUE_SCHEMA } from '../db/schema/queue-tables.js';
import type { Logger } from '../observability/logger.js';
import { ANSWER_TO_STOP_MS, QUEUE_OPTIONS, QUEUES, type QueueBackend, QueueOutage, WORKER_OPTIONS } from './queue-backend.js';

/**
 * Creates BullMQ's tables or updates them; several processes may do so concurrently. Throws `invalid_configuration` behind a pooler that
 * gives each transaction another connection: BullMQ waits for jobs with LISTEN, and finds its tables by the session's search path.
 */
export async function migrateQueue(databaseUrl: string): Promise<void> {
  if (await poolsTransactions(databaseUrl)) {
    throw new MusterError(
      'invalid_configuration',
      'DATABASE_URL leads through a pooler that gives each transaction another connection (PgBouncer: pool_mode = transaction), and the ' +
        'queue in PostgreSQL needs sessions. Set REDIS_URL, or DATABASE_URL to PostgreSQL itself or to a pool with pool_mode = session',
    );
  }
  const client = new DatabaseClient(connectionOptions(databaseUrl, 'muster migrate'));
  client.on('error', () => {}); // the query under way reports it
  try {
    await client.connect();
    await prepareSession(client, sessionOptions(databaseUrl));
    if (!(await isUpToDate(client))) {
      await dropEmptied(client);
      await runMigrations(client, QUEUE_SCHEMA);
    }
    await makeJobSequences(client, QUEUES);
  } catch (error) {
    throw (
      foreignObject(error, `Schema ${QUEUE_SCHEMA} is kept for the tables of the queue`) ??
      explainConnectFailure(error, databaseUrl, 'look up or make the tables of the queue')
    );
  } finally {
    await client.end().catch(() => {});
  }
}

/** Only reads, so that a role without the right to create tables may call it. */
async function isUpToDate(client: pg.Client): Promise<boolean> {
  try {
    return (await assertSchemaCompatibility(client, QUEUE_SCHEMA)) >= LATEST_SCHEMA_VERSION;
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return false;
    throw error;
  }
}

export function postgresBackend(databaseUrl: string, logger: Logger): QueueBackend {
  // Every worker keeps one connection for LISTEN; the rest serve queries.
  const pool = new pg.Pool({
    ...connectionOptions(databaseUrl, 'muster queue'),
    connectionTimeoutMillis: 0, // BullMQ waits without a limit
    max: 12,
    Client: PacedClient,
    onConnect: (client) =>
      paced(async () => {
        await prepareSession(client, sessionOptions(databaseUrl));
        await setSearchPath(client, QUEUE_SCHEMA);
      }),
  });
  // Each queue and worker adds a listener for the pool's errors, and none removes it.
  pool.setMaxListeners(0);
  const ping = async () => void (await pool.query('SELECT 1'));
  const outage = new QueueOutage('PostgreSQL', ping, logger);
  pool.on('error', (error) => void outage.report(error));
  const bound = withBackend(createBackend);
  // BullMQ's type of the pool is narrower than pg's own.
  const connection = pool as unknown as PgPool;
  // The classes of both backends are the same; only their type parameters differ.
  return {
    queue: (name) => outage.watch(new bound.Queue(name, { connection, ...QUEUE_OPTIONS }) as unknown as Queue),
    worker: (name, processor, { concurrency }) =>
      outage.watch(new bound.Worker(name, processor, { connection, concurrency, ...WORKER_OPTIONS }) as unknown as Worker),
    ping,
    answers: () => outage.answers(ANSWER_TO_STOP_MS),
    requireReachable: ping, // the database has just been migrated
    close: () => {
      outage.close();
      return pool.end();
    },
  };
}

/** How long a failed attempt to connect keeps its place in the pool. */
const FAILED_CONNECT_MS = 1_000;

/**
 * BullMQ's worker retries at once and endlessly if PostgreSQL runs but refuses connections (too many clients, starting up, shutting down);
 * it pauses only if no process listens. Here a failed attempt fails late, so that a pool makes at most as many attempts a second as it has
 * places.
 */
class PacedClient extends DatabaseClient {
  /** Why the connection was lost, even where nothing listened for it yet. */
  lost: Error | undefined;

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | void {
    // Without a listener the event would end the process: the pool listens only to idle clients.
    this.on('error', (error) => {
      this.lost ??= error;
    });
    if (!callback) return super.connect();
    super.connect((error: Error) => void (error ? setTimeout(callback, FAILED_CONNECT_MS, error) : callback(error)));
  }
}

/** Delays a failure of the first queries too: a pooler accepts clients while its server accepts none. */
async function paced(work: () => Promise<void>): Promise<void> {
  await work().catch(async (error: unknown) => {
    await sleep(FAILED_CONNECT_MS);
    throw error;
  });
}

/** A connection of BullMQ that is not dead for the rest of the process after a failure at its beginning. */
class ReadyConnection extends PostgresConnection {
  /**
   * Does not check the version of BullMQ's tables, which `migrateQueue` has updated. BullMQ caches the result of that check: if its one
   * query fails, every later call fails with the same error, and a worker retries without ever returning to the event loop, which blocks
   * the process.
   */
  override async waitUntilReady(): Promise<void> {}

  /** BullMQ listens for errors only once the pool has given out the client. It would keep one that was lost before, and never wake again. */
  override async getListenClient(): ReturnType<PostgresConnection['getListenClient']> {
    const client = await super.getListenClient();
    if (client instanceof PacedClient && client.lost) client.emit('error', client.lost);
    return client;
  }
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
