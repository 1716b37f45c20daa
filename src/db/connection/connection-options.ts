import { accessSync, constants } from 'node:fs';
import { MusterError } from '../../core/errors.js';
import { AddressFault, isSocket, readDatabaseAddress } from './database-address.js';
import { type ClientOptions, DatabaseClient } from './database-client.js';

/** How long a query waits for a connection, be it a new one or one that is in use. */
const CONNECT_TIMEOUT_MS = 30_000;

/** A connection that is silent for so long is probed, so that a query whose server has vanished fails soon. The system's own time is two hours. */
const KEEP_ALIVE_MS = 60_000;

/** The driver looks whose certificate it is in each of these, and warns that some day it will not. */
const VERIFYING_MODES = new Set(['prefer', 'require', 'verify-ca']);
const TLS_FILES = ['sslrootcert', 'sslcert', 'sslkey'];

/**
 * Turns DATABASE_URL into the options of a DatabaseClient, or of a pool of them. `applicationName` is what pg_stat_activity shows. Throws
 * `invalid_configuration` for an address that cannot be used, and for files of certificates that cannot be read.
 */
export function connectionOptions(
  url: string,
  applicationName: string,
): ClientOptions & { readonly Client: typeof DatabaseClient } {
  const { hosts, user, password, database, parameters } = readDatabaseAddress(url);
  // A socket leaves no machine, so that libpq asks for no TLS there either.
  if (hosts.every(isSocket)) parameters.set('sslmode', 'disable');
  const mode = parameters.get('sslmode');
  for (const name of TLS_FILES) {
    const file = parameters.get(name);
    if (file !== null) requireReadable(name, file);
  }
  const isLikeLibpq = parameters.get('uselibpqcompat') === 'true';
  if (mode === 'verify-ca' && isLikeLibpq && !parameters.has('sslrootcert'))
    throw new AddressFault('sslmode=verify-ca needs sslrootcert, a file with the certificate of the authority that you trust');
  if (mode !== null && VERIFYING_MODES.has(mode) && !isLikeLibpq) parameters.set('sslmode', 'verify-full');
  // The driver decodes its parameters, and of a path all that encodeURI encodes.
  for (const [name, value] of Object.entries({ user, password, host: hosts[0]!.host, port: String(hosts[0]!.port) }))
    parameters.set(name, value);
  return {
    hosts,
    Client: DatabaseClient,
    connectionString: `postgres:///${encodeURI(database)}?${String(parameters)}`,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  };
}

/** The settings that `options` in DATABASE_URL gives each session. */
export function sessionOptions(url: string): string {
  return readDatabaseAddress(url).parameters.get('options') ?? '';
}

function requireReadable(name: string, file: string): void {
  try {
    accessSync(file, constants.R_OK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new MusterError('invalid_configuration', `DATABASE_URL: the file of ${name} cannot be read (${code}): ${file}`, {
      cause,
    });
  }
}
