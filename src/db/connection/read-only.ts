import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { MusterError } from '../../core/errors.js';
import { explainConnectFailure } from './connect-failure.js';
import { connectionOptions, sessionOptions } from './connection-options.js';
import { DatabaseClient } from './database-client.js';
import { prepareSession, type Session } from './session.js';
import { sqlState } from './sql-state.js';

/** A connection for reads: it changes nothing in the database. */
export type Reader = Pick<pg.Pool, 'query'>;

const CONNECT_MS = 5_000;
/** The limit of one statement: longer than any here takes during a busy night, and short enough for a person who waits. */
const STATEMENT_MS = 8_000;
/** The driver's own limit, for a server that is frozen and keeps no time. */
const ANSWER_MS = STATEMENT_MS + 1_000;
const GOODBYE_MS = 500;

/** SET LOCAL leaves nothing in the connection of a pooler. */
const BEGIN = `BEGIN READ ONLY; SET LOCAL statement_timeout = ${STATEMENT_MS}; SET LOCAL lock_timeout = 2000`;

/**
 * Gives the work a connection of its own, in a transaction that can write nothing. Every wait is bounded, and the connection is gone
 * afterwards, whatever the server does. Throws as the first connection of a worker would, `invalid_configuration` or
 * `database_unavailable`, the latter also where an answer does not come in time.
 */
export async function readOnly<T>(url: string, work: (db: Reader, session: Session) => Promise<T>): Promise<T> {
  const socket = new Socket();
  try {
    const client = new DatabaseClient({
      ...connectionOptions(url, 'muster doctor'),
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: ANSWER_MS,
      stream: () => socket,
    });
    client.on('error', () => {}); // the query under way reports it
    await client.connect();
    const session = await prepareSession(client, sessionOptions(url));
    await client.query(BEGIN);
    const result = await work(client, session);
    await Promise.race([client.end(), sleep(GOODBYE_MS, undefined, { ref: false })]);
    return result;
  } catch (error) {
    throw lateness(error) ?? explainConnectFailure(error, url, 'look into this database');
  } finally {
    socket.destroy();
  }
}

function lateness(error: unknown): MusterError | undefined {
  const problem = problemOf(error);
  if (problem === undefined) return undefined;
  return new MusterError('database_unavailable', `${problem}.`, { cause: error });
}

function problemOf(error: unknown): string | undefined {
  if (sqlState(error) === '57014') return `PostgreSQL took longer than ${STATEMENT_MS / 1_000} s for an answer`;
  if (sqlState(error) === '55P03') return 'Another session holds a lock on a table of Muster, so that it cannot be read';
  // The driver gives this one no code.
  if ((error as Error).message === 'Query read timeout') return `PostgreSQL did not answer within ${ANSWER_MS / 1_000} s`;
  return undefined;
}
