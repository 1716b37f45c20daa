import pg from 'pg';
import { PrismaClient } from '../generated/prisma/client.js';
import { BulkAdapter } from './bulk-statement.js';

/** One pool of connections, seen twice: as typed models through Prisma, and as plain `pg` for SQL of our own. */
export interface Database {
  readonly prisma: PrismaClient;
  readonly pool: pg.Pool;
  /** Resolves when every connection is closed; waits for those in use. May be called twice. */
  close(): Promise<void>;
}

export interface DatabaseOptions {
  url: string;
  /** Connections at most; 10 unless said. */
  poolSize?: number;
  /** What pg_stat_activity shows. */
  applicationName?: string;
}

/**
 * Settings of every session. Without UTC the adapter shifts timestamps by the session's offset. The two timeouts keep a
 * worker that was frozen inside a transaction from blocking its successor: longer would stall a run for that long,
 * shorter would break transactions of a merely busy machine.
 */
const SESSION = '-c TimeZone=UTC -c idle_in_transaction_session_timeout=15000 -c lock_timeout=10000';

/** How long a query waits for a connection, be it a new one or one that is in use. */
const CONNECT_TIMEOUT_MS = 30_000;

/**
 * A new connection costs both sides some 20 ms until it has planned what a walk asks of it. Shorter than what load balancers give one
 * that idles, of which the shortest is four minutes.
 */
const IDLE_TIMEOUT_MS = 120_000;

/** Opens no connection yet: the first query does. */
export function openDatabase({ url, poolSize = 10, applicationName = 'muster' }: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: withSessionOptions(url),
    max: poolSize,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
  });
  // The pool replaces a connection that broke, and whoever used it gets the error from the query. Without a listener
  // the event alone would end the process: for idle connections on the pool, for those in use on the client.
  pool.on('error', () => {});
  pool.on('connect', (client) => void client.on('error', () => {}));

  const prisma = new PrismaClient({
    adapter: new BulkAdapter(pool, { statementNameGenerator: statementNames() }),
    // Any other looks at the stack of every call, in case that it fails: a twentieth of what a small company costs.
    errorFormat: 'minimal',
  });
  let closed: Promise<void> | undefined;
  return {
    prisma,
    pool,
    close: () => (closed ??= prisma.$disconnect().then(() => pool.end())),
  };
}

/** Statements with a name, at most. Later ones are parsed and planned each time: texts of ever new lengths end there. */
const MOST_NAMES = 500;

/** Names statements by their text, so that each connection parses and plans one only the first times it meets it. '' = no name. */
export function statementNames(): (statement: { readonly sql: string }) => string {
  const names = new Map<string, string>();
  return ({ sql }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    if (names.size === MOST_NAMES) return '';
    const name = `muster_${names.size}`;
    names.set(sql, name);
    return name;
  };
}

/** Options in the URL would replace ours instead of adding to them; the operator's come last and so win. */
function withSessionOptions(url: string): string {
  const parsed = new URL(url);
  parsed.searchParams.set('options', [SESSION, parsed.searchParams.get('options')].filter(Boolean).join(' '));
  return parsed.href;
}
