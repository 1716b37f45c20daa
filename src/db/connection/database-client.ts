import { Socket } from 'node:net';
import { callbackify } from 'node:util';
import pg from 'pg';
import { connectionFailure } from '../../core/connection-failure.js';
import { type DatabaseHost, placeOf } from './database-address.js';
import { translateDatabaseError } from './sql-state.js';

export interface ClientOptions extends pg.ClientConfig {
  /** The primary is looked for among several. */
  readonly hosts: readonly DatabaseHost[];
}

/** A server that hangs may hold up a new connection for so long, and all of them together for no longer than a pool waits. */
const ATTEMPT_MS = 5_000;
const ALL_ATTEMPTS_MS = 20_000;

/** The place that was the primary when a connection was last opened. It is tried first, so that a dead server costs its timeout once. */
let lastPrimary: string | undefined;

/**
 * A client of `pg`, which itself knows one host only. Of several hosts it connects to the first that is a primary. Each connection looks again,
 * so that after a failover the pool's new connections find the new primary.
 */
export class DatabaseClient extends pg.Client {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions = { hosts: [] }) {
    super(options);
    this.#options = options;
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | void {
    if (this.#options.hosts.length < 2) return callback ? super.connect(callback) : super.connect();
    const connecting = findPrimary(this.#options).then((host) => {
      Object.assign(this, host);
      return super.connect();
    });
    if (!callback) return connecting;
    callbackify(() => connecting)(callback);
  }
}

/**
 * Throws the driver's error where a server refuses this user, as the others would do so, too. Where none of them is a primary that can be
 * reached, throws an error like the server's, with the SQLSTATE that the standard has for it: it passes, as a failover does.
 */
async function findPrimary(options: ClientOptions): Promise<DatabaseHost> {
  const { hosts } = options;
  const found: string[] = [];
  for (const host of hosts.toSorted((a, b) => rank(a) - rank(b))) {
    try {
      if (await isPrimary(host, options)) {
        lastPrimary = placeOf(host);
        return host;
      }
      found.push(`${placeOf(host)}: it is a standby`);
    } catch (error) {
      if (translateDatabaseError(error) === error) throw error;
      found.push(`${placeOf(host)}: ${connectionFailure(error)}`);
    }
  }
  const error = new pg.DatabaseError(`none of them is a primary that takes connections (${found.join('; ')})`, 0, 'error');
  throw Object.assign(error, { severity: 'FATAL', code: '08001' });
}

const rank = (host: DatabaseHost): number => (placeOf(host) === lastPrimary ? 0 : 1);

/** A pooler may hide what the server reports of itself, so it is asked. */
async function isPrimary(host: DatabaseHost, options: ClientOptions): Promise<boolean> {
  const socket = new Socket();
  const limitMs = Math.min(ATTEMPT_MS, ALL_ATTEMPTS_MS / options.hosts.length);
  const timer = setTimeout(() => socket.destroy(new Error('timeout expired')), limitMs);
  const client = Object.assign(new pg.Client({ ...options, connectionTimeoutMillis: 0, stream: () => socket }), host);
  client.on('error', () => {}); // the query under way reports it
  try {
    await client.connect();
    const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
    void client.end();
    return !rows[0]!.standby;
  } finally {
    clearTimeout(timer);
    socket.destroySoon();
  }
}
