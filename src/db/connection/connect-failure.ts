import { connectionFailure } from '../../core/connection-failure.js';
import { MusterError } from '../../core/errors.js';
import { type DatabaseAddress, isSocket, placesOf, readDatabaseAddress } from './database-address.js';
import { sqlState, translateDatabaseError } from './sql-state.js';

/** Node's codes for a certificate without a trusted issuer. */
const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** `pg` gives this one no code. */
const NO_TLS = 'The server does not support SSL connections';

/** Explains the usual failures of a first start by the setting that mends each. `work` names what the role may not do, if a right is missing. */
export function explainConnectFailure(error: unknown, url: string, work = 'use this database'): unknown {
  if (error instanceof MusterError) return error;
  const address = readDatabaseAddress(url);
  const place = placesOf(address);
  if (sqlState(error) === '42501') return lackingRights(address.user, `may not ${work}`, error);
  const reason = refusal(error, place, address) ?? tlsRefusal(error, place);
  if (reason) return new MusterError('invalid_configuration', `DATABASE_URL: ${reason}`, { cause: error });
  const translated = translateDatabaseError(error);
  if (translated === error) return error;
  return new MusterError(
    'database_unavailable',
    `PostgreSQL at ${place} cannot be used: ${connectionFailure(error)}. ` +
      'See that it runs and that DATABASE_URL is right, then try again.',
    { cause: error, details: { sql_state: sqlState(error) ?? null } },
  );
}

/** The error of a role that lacks a right. */
export function lackingRights(role: string, what: string, cause?: unknown): MusterError {
  return new MusterError(
    'invalid_configuration',
    `DATABASE_URL: the role ${role} ${what}. Run \`muster migrate --grant-runtime ${quotedForShell(role)}\` as the owner of the database, ` +
      'with the same settings: it applies what is pending, and grants what api and workers need',
    { cause },
  );
}

function quotedForShell(name: string): string {
  return /^[\w.@-]+$/.test(name) ? name : `'${name.replaceAll("'", String.raw`'\''`)}'`;
}

function refusal(error: unknown, place: string, { user, database, hosts, parameters }: DatabaseAddress): string | undefined {
  switch (sqlState(error) ?? '') {
    case '3D000':
      return `the database ${database || user} does not exist; create it first (createdb)`;
    case '28000':
      return `the server at ${place} refuses the user ${user}${hintOfRefusal(hosts.every(isSocket), parameters)}`;
    case '28P01':
      return `the server at ${place} refuses this password of the user ${user}`;
    default:
      return undefined;
  }
}

function hintOfRefusal(overSocket: boolean, parameters: URLSearchParams): string {
  if (overSocket)
    return '; over a socket its pg_hba.conf may take users of the operating system alone, each by its own name (peer)';
  return parameters.has('sslmode') ? '' : '; where its pg_hba.conf takes connections over TLS alone, add ?sslmode=require';
}

function tlsRefusal(error: unknown, place: string): string | undefined {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (UNTRUSTED.has(code))
    return (
      `the certificate of the server at ${place} has no trusted issuer; name a file with your authority's certificate ` +
      '(?sslmode=verify-full&sslrootcert=/path/ca.crt), or encrypt without looking whose it is (?sslmode=no-verify)'
    );
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return (
      `the certificate of the server is not one for ${place}; use the name that it is for, or look at the authority alone ` +
      '(?sslmode=verify-ca&uselibpqcompat=true&sslrootcert=/path/ca.crt)'
    );
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return `the certificate of the server at ${place} is not valid now`;
  if (message === NO_TLS) return `the server at ${place} offers no TLS; switch it on there, or take sslmode out of the address`;
  return undefined;
}
