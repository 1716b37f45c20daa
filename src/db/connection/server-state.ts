// Reads what PostgreSQL says of itself: version, settings, sessions, sizes. It reads no table of Muster.
import { Prisma } from '../../generated/prisma/client.js';
import type { Reader } from './read-only.js';
import { OVERRIDDEN } from './session.js';
import type { Transaction } from './transaction.js';

export interface ServerState {
  readonly version: string;
  readonly database: string;
  readonly role: string;
  readonly encoding: string;
  /** Connections that a role without special rights can have at most; the limits of the role and of the database count if they are lower. */
  readonly connectionsAtMost: number;
  readonly connectionsInUse: number;
  readonly settings: Readonly<Record<ServerSetting, string>>;
  /** Defaults of the role, the database or the server that Muster's sessions override, as `name = value`. */
  readonly overridden: readonly string[];
  /** Settings, as `name = value`, that put the values of statements into the server's log: records, and the columns of tokens. */
  readonly loggingValues: readonly string[];
  /** Whether the sessions of other roles are shown to this one. */
  readonly seesAllSessions: boolean;
  readonly databaseBytes: number;
  /** Transactions until PostgreSQL takes no more for fear of a wraparound: 0 to 2^31. */
  readonly transactionAge: number;
}

/** Settings of the server on which Muster's promises rest, or its speed. */
const SERVER_SETTINGS = ['fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_counts'] as const;
export type ServerSetting = (typeof SERVER_SETTINGS)[number];

export async function readServerState(db: Reader): Promise<ServerState> {
  const { rows } = await db.query<ServerState>(
    Prisma.sql`SELECT current_setting('server_version') AS version, current_database() AS database, current_user::text AS role,
       current_setting('server_encoding') AS encoding,
       least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
               - coalesce(current_setting('reserved_connections', true)::int, 0),
             nullif((SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), -1), nullif(datconnlimit, -1)) AS "connectionsAtMost",
       (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS "connectionsInUse",
       (SELECT jsonb_object_agg(name, current_setting(name)) FROM unnest(${SERVER_SETTINGS}::text[]) AS name) AS settings,
       ARRAY(SELECT name || ' = ' || reset_val || COALESCE(unit, '')
             FROM pg_settings JOIN unnest(${Object.keys(OVERRIDDEN)}::text[], ${Object.values(OVERRIDDEN)}::text[]) AS o(name, value) USING (name)
             WHERE reset_val <> o.value AND (name <> 'jit' OR pg_jit_available()) ORDER BY name) AS overridden,
       ARRAY(SELECT name || ' = ' || current_setting(name) FROM unnest(ARRAY['log_statement', 'log_min_duration_statement', 'log_min_duration_sample']) AS name
             WHERE current_setting('log_parameter_max_length') <> '0'
               AND (name = 'log_statement' AND current_setting(name) IN ('mod', 'all') OR name <> 'log_statement' AND current_setting(name) <> '-1')
             UNION ALL SELECT 'log_parameter_max_length_on_error = ' || current_setting('log_parameter_max_length_on_error')
             WHERE current_setting('log_parameter_max_length_on_error') <> '0') AS "loggingValues",
       pg_has_role('pg_read_all_stats', 'USAGE') AS "seesAllSessions",
       pg_database_size(oid)::float8 AS "databaseBytes", age(datfrozenxid) AS "transactionAge"
     FROM pg_database WHERE datname = current_database()`,
  );
  return rows[0]!;
}

/** A transaction or slot that is open for long: vacuum removes no row that it may still see. */
export interface LongTransaction {
  readonly kind: 'session' | 'prepared' | 'slot';
  /** Process number, name of the prepared transaction, name of the slot. */
  readonly name: string;
  readonly role: string | null;
  readonly application: string | null;
  readonly isIdle: boolean;
  /** Unknown for a slot. */
  readonly seconds: number | null;
  /** Bytes of write-ahead log that a slot keeps, or has lost; null without a slot. */
  readonly keptBytes: number | null;
  /** Whether the log that the slot's reader needs is gone: it can never go on. */
  readonly isLost: boolean;
}

/**
 * Transactions of this database that have been open for so long, prepared ones too, and replication slots without a reader, or that keep old rows
 * or so much write-ahead log: the longest first. Their statements are not read, since values may stand in them.
 */
export async function findLongTransactions(
  db: Reader,
  { seconds, bytes }: { seconds: number; bytes: number },
): Promise<LongTransaction[]> {
  const { rows } = await db.query<LongTransaction>(
    Prisma.sql`SELECT 'session' AS kind, pid::text AS name, usename::text AS role, nullif(application_name, '') AS application,
       state LIKE 'idle in transaction%' AS "isIdle", extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
       NULL::float8 AS "keptBytes", false AS "isLost"
     FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
       AND xact_start < clock_timestamp() - make_interval(secs => ${seconds})
     UNION ALL
     SELECT 'prepared', gid, owner::text, NULL, true, extract(epoch FROM clock_timestamp() - prepared)::float8, NULL, false
     FROM pg_prepared_xacts WHERE database = current_database() AND prepared < clock_timestamp() - make_interval(secs => ${seconds})
     UNION ALL
     SELECT 'slot', slot_name::text, NULL, plugin::text, NOT active, NULL, kept, COALESCE(wal_status = 'lost', false)
     FROM pg_replication_slots CROSS JOIN LATERAL (
       SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn)::float8 AS kept
     ) w
     WHERE age(coalesce(xmin, catalog_xmin)) > 1000000 OR (NOT active AND restart_lsn IS NOT NULL) OR kept > ${bytes} OR wal_status = 'lost'
     ORDER BY seconds DESC NULLS LAST`,
  );
  return rows;
}

/** The server's clock, in milliseconds since the epoch. */
export async function readServerClock(db: Reader): Promise<number> {
  const { rows } = await db.query<{ now: number }>('SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now');
  return rows[0]!.now;
}

/** Whether Muster has made its tables here. */
export async function hasTables(db: Reader): Promise<boolean> {
  const { rows } = await db.query<{ made: boolean }>(`SELECT to_regclass('muster.connections') IS NOT NULL AS made`);
  return rows[0]!.made;
}

/** The size of the database on disk, in bytes. */
export async function measureDatabase(db: Pick<Transaction, '$queryRaw'>): Promise<number> {
  const [row] = await db.$queryRaw<{ bytes: number }[]>`SELECT pg_database_size(current_database())::float8 AS bytes`;
  return row!.bytes;
}
