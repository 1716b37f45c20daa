import type pg from 'pg';
import { MusterError } from '../core/errors.js';

/**
 * What every statement relies on: the drivers read times as ISO texts, and Prisma's takes each for UTC. Poolers follow these two from one
 * connection of the server to the next, as PostgreSQL reports each change of them to its client.
 */
const FOLLOWED: Settings = { TimeZone: 'UTC', DateStyle: 'ISO' };

/** The fences hold under `read committed`: a statement that waited for a lock must see what was committed meanwhile. */
const TRANSACTIONS: Settings = { default_transaction_isolation: 'read committed', default_transaction_read_only: 'off' };

/**
 * The timeouts keep a worker that was frozen inside a transaction from blocking its successor: longer would stall a run for that long,
 * shorter would break transactions of a merely busy machine.
 */
const TIMEOUTS: Settings = { lock_timeout: '10s', idle_in_transaction_session_timeout: '15s' };

/**
 * Of connections for steps. Their statements are long to plan, and their plans depend on none of their values: PostgreSQL would plan each
 * five times a connection before it keeps a plan. A plan is kept, and one that was made while a table was small must not scan all of it once
 * it is large. Behind a pooler, statements have no names and are planned each time: steps are right there, and slower.
 */
export const STEPS: Settings = { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off' };

/** What transactions need of it, for one of them, as its first statement. */
export const TRANSACTION_SETTINGS = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
  SET LOCAL lock_timeout = '${TIMEOUTS.lock_timeout}';
  SET LOCAL idle_in_transaction_session_timeout = '${TIMEOUTS.idle_in_transaction_session_timeout}'`;

export type Settings = Readonly<Record<string, string>>;

/** Whose the server's connection is: that of one client for as long as it is connected, or a pooler's, which may change it behind each transaction. */
export type Session = 'own' | 'pooled';

/**
 * Gives a new connection what every session needs, whatever the role, the database and the server have for a default. Behind a pooler,
 * where the next client would find what is set here, only what poolers follow is set; the rest is asked for, and `invalid_configuration` thrown
 * where it is not so. `options`, those of the URL, win against our timeouts; `more` is set where no pooler stands between.
 */
export async function prepareSession(client: pg.ClientBase, options = '', more: Settings = {}): Promise<Session> {
  const timeouts = Object.entries(TIMEOUTS).filter(([name]) => !options.includes(name));
  const own = await applySettings(client, FOLLOWED, { ...TRANSACTIONS, ...more, ...Object.fromEntries(timeouts) });
  if (own) return 'own';
  await requireSettings(client, { ...FOLLOWED, ...TRANSACTIONS });
  return 'pooled';
}

/** Of a session that lasts: not behind a pooler of transactions. */
export async function setSearchPath(client: pg.ClientBase, schema: string): Promise<void> {
  await client.query(`SELECT set_config('search_path', $1, false)`, [schema]);
}

/** Sets `always`, and `ifOwn` where no pooler stands between. Returns whether none does: a pooler tells a client a number of a process that is not the server's. */
async function applySettings(client: pg.ClientBase, always: Settings, ifOwn: Settings): Promise<boolean> {
  const settings = { ...always, ...ifOwn };
  const { processID } = client as pg.ClientBase & { readonly processID: number | null };
  const { rows } = await client.query<{ own: boolean }>(
    `SELECT pg_backend_pid() = $1::int AS own, set_config(name, value, false)
     FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS s(name, value, n) WHERE n <= $4 OR pg_backend_pid() = $1::int`,
    [processID, Object.keys(settings), Object.values(settings), Object.keys(always).length],
  );
  return rows.every(({ own }) => own);
}

async function requireSettings(client: pg.ClientBase, settings: Settings): Promise<void> {
  const { rows } = await client.query<{ role: string; name: string; value: string }>(
    `SELECT quote_ident(current_user) AS role, name, current_setting(name) AS value FROM unnest($1::text[]) AS name`,
    [Object.keys(settings)],
  );
  const wrong = rows.filter(({ name, value }) => !value.startsWith(settings[name]!));
  if (wrong.length === 0) return;
  const statements = wrong.map(({ role, name }) => `ALTER ROLE ${role} SET ${name} = '${settings[name]}';`);
  throw new MusterError(
    'invalid_configuration',
    `DATABASE_URL: behind a pooler Muster cannot set ${wrong.map(({ name, value }) => `${name} (now ${value})`).join(' and ')} by itself. ` +
      `Run \`${statements.join(' ')}\` and let the pooler connect anew (PgBouncer: RECONNECT), or set DATABASE_URL to PostgreSQL itself`,
  );
}
