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
 * Makes BullMQ's tables, or brings them up to date. Safe side by side. Throws `invalid_configuration` where a pooler gives each
 * transaction another connection: BullMQ waits for jobs by LISTEN, and finds its tables by the session's search path.
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

/** Only looks, which takes no right to make anything. */
async function isUpToDate(client: pg.Client): Promise<boolean> {
  try {
    return (await assertSchemaCompatibility(client, QUEUE_SCHEMA)) >= LATEST_SCHEMA_VERSION;
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return false;
    throw error;
  }
}

/** The queue in the database that Muster has anyway. */
export function postgresBackend(databaseUrl: string, logger: Logger): QueueBackend {
  // Every worker keeps one connection for LISTEN; the rest serve queries.
  const pool = new pg.Pool({
    ...connectionOptions(databaseUrl, 'muster queue'),
    connectionTimeoutMillis: 0, // BullMQ waits for as long as it takes
    max: 12,
    keepAlive: true,
    Client: PacedClient,
    onConnect: (client) =>
      paced(async () => {
        await prepareSession(client, sessionOptions(databaseUrl));
        await setSearchPath(client, QUEUE_SCHEMA);
      }),
  });
  // Each queue and each worker listens for the pool's errors, and none of them stops.
  pool.setMaxListeners(0);
  const ping = async () => void (await pool.query('SELECT 1'));
  const outage = new QueueOutage('PostgreSQL', ping, logger);
  pool.on('error', (error) => void outage.report(error));
  const bound = withBackend(createBackend);
  // pg's own type of the pool is wider than BullMQ's picture of it.
  const connection = pool as unknown as PgPool;
  // The classes are the same whatever the backend; only their type parameters tell it.
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

/** How long an attempt to connect that failed keeps its place in the pool. */
const FAILED_CONNECT_MS = 1_000;

/**
 * BullMQ's worker tries again at once and without end when PostgreSQL is there and takes no connection (too many clients,
 * starting up, shutting down); it pauses only where nobody listens. So the attempt fails late, and a pool makes no more of
 * them than it has places, a second.
 */
class PacedClient extends DatabaseClient {
  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | void {
    // Between two queries nobody but the pool listens, and to a client in use not even that: the event would end the process.
    this.on('error', () => {});
    if (!callback) return super.connect();
    super.connect((error: Error) => void (error ? setTimeout(callback, FAILED_CONNECT_MS, error) : callback(error)));
  }
}

/** The same for what a new connection is asked first: a pooler takes clients while its server takes none. */
async function paced(work: () => Promise<void>): Promise<void> {
  await work().catch(async (error: unknown) => {
    await sleep(FAILED_CONNECT_MS);
    throw error;
  });
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
