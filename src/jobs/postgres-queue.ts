import { type BackendFactory, PostgresConnection, type PostgresConnectionOptions, PostgresQueueBackend } from 'bullmq';
import pg from 'pg';

/** How long an attempt to connect that failed keeps its place in the pool. */
const FAILED_CONNECT_MS = 1_000;

/**
 * BullMQ's worker tries again at once and without end when PostgreSQL is there and takes no connection (too many clients,
 * starting up, shutting down); it pauses only where nobody listens. So the attempt fails late, and a pool makes no more of
 * them than it has places, a second.
 */
export class PacedClient extends pg.Client {
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
export const createBackend: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (
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
