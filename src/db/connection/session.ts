import type pg from 'pg';
import { MusterError } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';

// A DBA may give a role, a database or a server any default. Each session of Muster sets what its statements rely on:
//
//                 a session of our own          behind a pooler
//   FOLLOWED      set once                      set once: the pooler carries it from one server connection to the next
//   REQUIRED      set once                      refused at the start where the default differs
//   LIMITS, PLANS set once                      set by each transaction (TRANSACTION_SETTINGS)

/** How texts become values and values texts. The drivers read times as ISO texts, and Prisma takes each for UTC; PostgreSQL reports changes of these to its client. */
const FOLLOWED: Settings = { TimeZone: 'UTC', DateStyle: 'ISO', standard_conforming_strings: 'on' };

/**
 * Settings that even a single statement relies on. The fences hold under `read committed`: a statement that waited for a lock must see what was
 * committed while it waited. Without `array_nulls`, NULL in an array literal is the text "NULL".
 */
const REQUIRED: Settings = {
  default_transaction_isolation: 'read committed',
  default_transaction_read_only: 'off',
  array_nulls: 'on',
};

/**
 * The first two keep a worker that was frozen inside a transaction from blocking its successor: longer would stall a run for that long,
 * shorter would break transactions of a merely busy machine. Work takes as long as it takes, so a DBA's limits on statements,
 * transactions and idle sessions do not hold for it; `transaction_timeout` came with PostgreSQL 17.
 */
const LIMITS: Settings = {
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '15s',
  statement_timeout: '0',
  transaction_timeout: '0',
  idle_session_timeout: '0',
};

/**
 * Up to PostgreSQL 17 a plan with `enable_seqscan = off` or its like has a cost of 1e10, far above `jit_above_cost`: each such statement would be
 * compiled, which takes a hundred times as long as to execute it.
 */
const PLANS: Settings = { jit: 'off' };

/**
 * Settings of the connections for steps: "one plan" and "by index" in docs/internals/planner.md. Behind a pooler, statements have no names and are
 * planned each time: steps are right there, and slower.
 */
export const STEPS: Settings = { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off' };

/** The limit of a read that the API answers: the caller has given up by then. The read's own transaction sets it. */
export const READ_TIMEOUT = '30s';

/** Settings that each session, or each transaction behind a pooler, changes if a default differs. Times are in milliseconds, as pg_settings has them. */
export const OVERRIDDEN: Settings = { jit: 'off', statement_timeout: '0', transaction_timeout: '0', idle_session_timeout: '0' };

/** LIMITS and PLANS for one transaction, as its first statements. */
export const TRANSACTION_SETTINGS = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
  SELECT set_config(name, value, true) FROM (VALUES ${Object.entries({ ...LIMITS, ...PLANS })
    .map(([name, value]) => `('${name}', '${value}')`)
    .join(', ')}) AS s(name, value) WHERE current_setting(name, true) IS NOT NULL`;

export type Settings = Readonly<Record<string, string>>;

/** Whether one client has the server's connection for as long as it is connected, or a pooler may change it after each transaction. */
export type Session = 'own' | 'pooled';

/**
 * Gives a new connection what every session needs, whatever the role, the database and the server have for a default. Behind a pooler,
 * where the next client would find what is set here, only what poolers follow is set; the rest is asked for, and `invalid_configuration` thrown
 * where it is not so. `options` of the URL win against our limits; `more` is set where no pooler stands between.
 */
export async function prepareSession(client: pg.ClientBase, options = '', more: Settings = {}): Promise<Session> {
  const limits = Object.entries(LIMITS).filter(([name]) => !options.includes(name));
  const own = await applySettings(client, FOLLOWED, { ...REQUIRED, ...PLANS, ...more, ...Object.fromEntries(limits) });
  if (own) return 'own';
  await requireSettings(client, { ...FOLLOWED, ...REQUIRED });
  return 'pooled';
}

/** Sets the search path of a session that lasts: not behind a pooler of transactions. */
export async function setSearchPath(client: pg.ClientBase, schema: string): Promise<void> {
  await client.query(Prisma.sql`SELECT set_config('search_path', ${schema}, false)`);
}

/**
 * Sets `always`, and `ifOwn` where no pooler stands between; a setting that the server does not know is left out. Returns whether none does: a pooler
 * tells a client a number of a process that is not the server's.
 */
async function applySettings(client: pg.ClientBase, always: Settings, ifOwn: Settings): Promise<boolean> {
  const settings = { ...always, ...ifOwn };
  const { processID } = client as pg.ClientBase & { readonly processID: number | null };
  const { rows } = await client.query<{ own: boolean }>(
    Prisma.sql`SELECT pg_backend_pid() = ${processID}::int AS own, set_config(name, value, false)
     FROM unnest(${Object.keys(settings)}::text[], ${Object.values(settings)}::text[]) WITH ORDINALITY AS s(name, value, n)
     WHERE (n <= ${Object.keys(always).length} OR pg_backend_pid() = ${processID}::int) AND current_setting(name, true) IS NOT NULL`,
  );
  return rows.every(({ own }) => own);
}

async function requireSettings(client: pg.ClientBase, settings: Settings): Promise<void> {
  const { rows } = await client.query<{ role: string; name: string; value: string }>(
    Prisma.sql`SELECT quote_ident(current_user) AS role, name, current_setting(name) AS value FROM unnest(${Object.keys(settings)}::text[]) AS name`,
  );
  const wrong = rows.filter(({ name, value }) => !value.startsWith(settings[name]!));
  if (wrong.length === 0) return;
  const statements = wrong.map(({ role, name }) => `ALTER ROLE ${role} SET ${name} = '${settings[name]}';`);
  throw new MusterError(
    'invalid_configuration',
    `DATABASE_URL: behind a pooler Muster cannot set ${wrong.map(({ name, value }) => `${name} (now ${value})`).join(' and ')} by itself. ` +
      `Run \`${statements.join(' ')}\` and let the pooler reconnect (PgBouncer: RECONNECT), or set DATABASE_URL to PostgreSQL itself`,
  );
}
