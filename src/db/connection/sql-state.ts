import { isDriverAdapterError } from '@prisma/driver-adapter-utils';
import { isMusterError, MusterError } from '../../core/errors.js';

/**
 * The five letters with which PostgreSQL names an error (https://www.postgresql.org/docs/current/errcodes-appendix.html),
 * from an error of `pg` or of Prisma; undefined for everything else.
 */
export function sqlState(error: unknown): string | undefined {
  const code = member(adapterError(error), 'originalCode') ?? member(error, 'code');
  if (typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code)) return undefined;
  // Prisma's own codes look alike. Codes of the operating system have only letters, unlike any SQLSTATE.
  return /^P[1-6]\d{3}$/.test(code) || /^[A-Z]+$/.test(code) ? undefined : code;
}

/**
 * A failure of the connection as MusterError `database_unavailable`, a cancelled statement as `statement_cancelled`, a full disk as `database_full`, a
 * server out of memory or with files that fail as `database_failing`, every other error as it came. Whether the statement or commit that was under way took effect is unknown after the first: a caller that repeats it needs an epoch or
 * a key that makes it harmless. A cancelled statement has had no effect, nor has its transaction.
 */
export function translateDatabaseError(error: unknown): unknown {
  if (sqlState(error) === CANCELLED) {
    return new MusterError(
      'statement_cancelled',
      'PostgreSQL cancelled a statement, which changed nothing: it took longer than the limit that is set (statement_timeout), or was ' +
        'cancelled. Try again; if it stays so, lift the limit for the role of Muster (ALTER ROLE … SET statement_timeout = 0)',
      { cause: error, details: { sql_state: CANCELLED } },
    );
  }
  const exhausted = exhaustion(error);
  if (exhausted) return exhausted;
  if (!isUnavailable(error)) return error;
  return new MusterError(
    'database_unavailable',
    'The database cannot be reached or closed the connection; see that it runs and try again',
    { cause: error, details: { sql_state: sqlState(error) ?? null } },
  );
}

/** Says what the server has run out of; undefined for other errors. A statement that failed for it has had no effect, nor has its transaction. */
function exhaustion(error: unknown): MusterError | undefined {
  const state = sqlState(error) ?? '';
  const details = { sql_state: state };
  if (state === DISK_FULL) {
    return new MusterError(
      'database_full',
      'The disk of PostgreSQL is full, and nothing was changed. Make room there, or give it a larger one; then everything goes on by itself',
      { cause: error, details },
    );
  }
  if (!FAILING_STATES.has(state)) return undefined;
  return new MusterError(
    'database_failing',
    `PostgreSQL could not do its work (SQLSTATE ${state}), and nothing was changed: it is out of memory or of another resource, or a file of it fails. ` +
      'Its log says more',
    { cause: error, details },
  );
}

/** The outcome of the work, its error as `translateDatabaseError` has it. */
export async function withDatabaseErrors<T>(work: PromiseLike<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw translateDatabaseError(error);
  }
}

/**
 * Translates an error for a caller as `translateDatabaseError` does, and a conflict with another transaction as `database_busy`: the caller is to try again. Code that goes on by itself asks for
 * the SQLSTATE.
 */
export function explainDatabaseError(error: unknown): unknown {
  const state = sqlState(error) ?? '';
  if (!CONFLICT_STATES.has(state)) return translateDatabaseError(error);
  return new MusterError(
    'database_busy',
    'Another transaction was in the way for too long, and nothing was changed: a company that is being removed, for example, is locked ' +
      'until that is done. Try again in a minute',
    { cause: error, details: { sql_state: state } },
  );
}

/** query_canceled: statement_timeout, or pg_cancel_backend. */
const CANCELLED = '57014';

/** disk_full */
const DISK_FULL = '53100';

const FAILING_STATES = new Set([
  '53000', // insufficient_resources
  '53200', // out_of_memory
  '53400', // configuration_limit_exceeded: temp_file_limit
  '58030', // io_error
]);

/** Another transaction was in the way. */
const CONFLICT_STATES = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '55P03', // lock_not_available: lock_timeout
]);

/** Whether the database failed in a way that is over soon: it went away, or another transaction was in the way. */
export function isPassingTrouble(error: unknown): boolean {
  if (isMusterError(error)) return error.code === 'database_unavailable';
  return CONFLICT_STATES.has(sqlState(error) ?? '') || isUnavailable(error);
}

const UNAVAILABLE_STATES = new Set([
  '25006', // read_only_sql_transaction: the server has become a standby
  '25P03', // idle_in_transaction_session_timeout: this process was frozen
  '53300', // too_many_connections
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
]);

/** P1001, P1002, P1008, P1017: not reached, timed out, closed. P2024, P2028: no connection, or no answer, in the given time. */
const UNAVAILABLE_PRISMA = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028']);

/** The adapter's kinds of the same failures: a raw query's own code is always P2010. */
const UNAVAILABLE_ADAPTER = new Set(['DatabaseNotReachable', 'ConnectionClosed', 'SocketTimeout']);

const UNAVAILABLE_SYSTEM = new Set([
  'EACCES', // the socket file, or its folder, is not for this user
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT', // the socket file of a server that does not run
  'ENOTDIR', // the folder of the socket is a file
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/** `pg` gives these no code at all: only their texts tell what they are. */
const UNAVAILABLE_TEXT = new Set([
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Connection terminated',
  'Connection terminated due to connection timeout',
  'Connection terminated unexpectedly',
  'timeout exceeded when trying to connect',
  'timeout expired',
]);

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof MusterError) return false;
  const state = sqlState(error);
  if (state !== undefined) return state.startsWith('08') || UNAVAILABLE_STATES.has(state);
  const code = member(error, 'code');
  const kind = member(adapterError(error), 'kind');
  if (typeof kind === 'string' && UNAVAILABLE_ADAPTER.has(kind)) return true;
  if (typeof code !== 'string') return UNAVAILABLE_TEXT.has(error.message);
  // `syscall` tells a socket that failed from, say, a file that is missing.
  return UNAVAILABLE_PRISMA.has(code) || (UNAVAILABLE_SYSTEM.has(code) && isSocketFailure(error));
}

function isSocketFailure(error: Error): boolean {
  const syscall = member(error, 'syscall');
  // Prisma copies the code of a socket's error, but not its syscall; so does Node for a name with several addresses.
  return syscall === undefined
    ? error.name.startsWith('PrismaClient') || error instanceof AggregateError
    : ['connect', 'getaddrinfo', 'read', 'write'].includes(String(syscall));
}

/** The driver's error inside one of Prisma's driver adapter, which Prisma's client puts into its own. */
function adapterError(error: unknown): unknown {
  const ofAdapter =
    error instanceof Error && isDriverAdapterError(error) ? error : member(member(error, 'meta'), 'driverAdapterError');
  return member(ofAdapter, 'cause');
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}
