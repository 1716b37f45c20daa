import { accessSync, constants } from 'node:fs';
import type pg from 'pg';
import { MusterError } from '../core/errors.js';

/** How long a query waits for a connection, be it a new one or one that is in use. */
const CONNECT_TIMEOUT_MS = 30_000;

const TLS_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];
/** The driver looks whose certificate it is in each of these, and warns that some day it will not. */
const VERIFYING_MODES = new Set(['prefer', 'require', 'verify-ca']);
const TLS_FILES = ['sslrootcert', 'sslcert', 'sslkey'];

/**
 * What the driver is told of DATABASE_URL. `applicationName` is what pg_stat_activity shows. Throws `invalid_configuration` for an `sslmode`
 * that nobody knows, and for files of certificates that cannot be read.
 */
export function connectionOptions(url: string, applicationName: string): pg.ClientConfig {
  const parsed = new URL(url);
  const parameters = parsed.searchParams;
  const mode = parameters.get('sslmode');
  if (mode !== null && !TLS_MODES.includes(mode)) refuse(`sslmode must be one of ${TLS_MODES.join(', ')}`);
  for (const name of TLS_FILES) {
    const file = parameters.get(name);
    if (file !== null) requireReadable(name, file);
  }
  const isLikeLibpq = parameters.get('uselibpqcompat') === 'true';
  if (mode === 'verify-ca' && isLikeLibpq && !parameters.has('sslrootcert'))
    refuse('sslmode=verify-ca needs sslrootcert, a file with the certificate of the authority that you trust');
  if (mode !== null && VERIFYING_MODES.has(mode) && !isLikeLibpq) parameters.set('sslmode', 'verify-full');
  return {
    connectionString: parsed.href,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  };
}

/** What the operator has the server set for each session. */
export function sessionOptions(url: string): string {
  return new URL(url).searchParams.get('options') ?? '';
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

function refuse(problem: string): never {
  throw new MusterError('invalid_configuration', `DATABASE_URL: ${problem}`);
}
