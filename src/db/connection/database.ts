import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils';
import pg from 'pg';
import { PrismaClient } from '../../generated/prisma/client.js';
import { connectionOptions, sessionOptions } from './connection-options.js';
import { runPooledStep } from './pooled-step.js';
import { PoolerAdapter } from './pooler-adapter.js';
import { prepareSession, type Settings, STEPS } from './session.js';

/** The way to PostgreSQL: Prisma's client, and Prisma's driver adapter for steps, each with connections of its own. */
export interface Database {
  readonly prisma: PrismaClient;
  /** For runStep: what a walk does again and again, by statements whose plans are made once. */
  readonly steps: Pick<SqlDriverAdapter, 'queryRaw'>;
  /** The connections of `prisma`, for work that needs a raw connection (docs/architecture.md, "What bypasses Prisma"). */
  readonly pool: pg.Pool;
  /** Resolves when every connection is closed; waits for those in use. May be called twice. */
  close(): Promise<void>;
}

export interface DatabaseOptions {
  url: string;
  /** Connections at most; 10 unless said. */
  poolSize?: number;
  /** Connections for steps at most; 4 unless said. */
  stepPoolSize?: number;
  /** The name that pg_stat_activity shows. */
  applicationName?: string;
}

/**
 * A new connection costs both sides some 20 ms until it has planned what a walk asks of it. Shorter than what load balancers give one
 * that idles; the shortest time is four minutes.
 */
const IDLE_TIMEOUT_MS = 120_000;

/** Opens no connection yet: the first query does. */
export function openDatabase(options: DatabaseOptions): Database {
  const { url, poolSize = 10, stepPoolSize = 4, applicationName = 'muster' } = options;
  // Until a connection shows otherwise: statements without names go through every pooler.
  let isPooled = true;
  const openPool = (max: number, settings: Settings = {}) => {
    const pool = new pg.Pool({
      ...connectionOptions(url, applicationName),
      max,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      onConnect: async (client) => {
        isPooled = (await prepareSession(client, sessionOptions(url), settings)) === 'pooled';
      },
    });
    // The pool replaces a connection that broke, and its user gets the error from the query. Without a listener
    // the event alone would end the process: for idle connections on the pool, for those in use on the client.
    pool.on('error', () => {});
    pool.on('connect', (client) => void client.on('error', () => {}));
    return pool;
  };
  const adapterOf = (pool: pg.Pool) => {
    const nameOf = statementNames();
    const statementNameGenerator: typeof nameOf = (statement) => (isPooled ? '' : nameOf(statement));
    return new PoolerAdapter(pool, { statementNameGenerator, isPooled: () => isPooled });
  };
  const pool = openPool(poolSize);
  // Any other format looks at the stack of every call, in case that it fails: a twentieth of what a small company costs.
  const prisma = new PrismaClient({ adapter: adapterOf(pool), errorFormat: 'minimal' });
  const stepPool = openPool(stepPoolSize, STEPS);
  const stepAdapter = adapterOf(stepPool).connect();
  let closed: Promise<unknown> | undefined;
  return {
    prisma,
    steps: {
      queryRaw: async (statement) => {
        const adapter = await stepAdapter;
        return isPooled ? runPooledStep(adapter, statement) : adapter.queryRaw(statement);
      },
    },
    pool,
    close: async () => void (await (closed ??= prisma.$disconnect().then(() => Promise.all([pool.end(), stepPool.end()])))),
  };
}

/** A separate connection for checks whether the database answers: they must not wait for other work. The first query opens it. */
export function openCheckConnection(url: string): pg.Pool {
  const pool = new pg.Pool({
    ...connectionOptions(url, 'muster readiness'),
    max: 1,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    onConnect: async (client) => void (await prepareSession(client, sessionOptions(url))),
  });
  pool.on('error', () => {});
  pool.on('connect', (client) => void client.on('error', () => {}));
  return pool;
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
