import { isMusterError } from '../core/errors.js';
import { requireUsableServer } from '../db/connection/server-check.js';
import { readServerState, type ServerSetting, type ServerState } from '../db/connection/server-state.js';
import { requireCompatible } from '../db/schema/compatibility.js';
import { type MigrationState, readMigrationState } from '../db/schema/migrate.js';
import { requireRuntimeRights } from '../db/schema/runtime-rights.js';
import { type Check, counted, type Finding, holding, ok, problem, warning } from './check.js';
import type { DatabaseAccess, Pooling } from './database-access.js';

export interface DatabaseNeeds {
  readonly access: DatabaseAccess;
  /** Tables that the catalogue has in schema `mirror`. */
  readonly mirrorTables: readonly string[];
  readonly workerConcurrency: number;
  /** Whether the queue is in PostgreSQL, too. */
  readonly carriesQueue: boolean;
}

/** Above this share, the next process may get no connection. */
const FULL = 0.9;

/** PostgreSQL takes no more transactions at 2^31, and vacuums by force from 200 million on. */
const OLD_TRANSACTIONS = 1_000_000_000;

/** Each setting that must be on: the loss while it is off, and what to do. */
const SETTINGS_THAT_ARE_ON: Readonly<Record<ServerSetting, string>> = {
  fsync: 'a power cut may destroy the database',
  full_page_writes: 'a power cut may destroy the database',
  synchronous_commit: 'a power cut may lose the newest tokens, and each company of them must authorize again',
  autovacuum: 'nothing is cleaned up, and the database grows for ever',
  track_counts: 'autovacuum does not see what is to be cleaned up',
};

export function checkDatabase({ access, mirrorTables, ...needs }: DatabaseNeeds): Check {
  return {
    name: 'database',
    look: () =>
      access.examine(async (db, pooling) => {
        const begin = performance.now();
        await db.query('SELECT 1');
        const ms = Math.ceil(performance.now() - begin);
        const state = await readServerState(db);
        const { version, database, role, encoding } = state;
        return [
          ok(`PostgreSQL ${version} answers in ${ms} ms: database ${database}, encoding ${encoding}, role ${role}`),
          ...(await refusalOf(() => requireUsableServer(db as never))),
          ...pooler(pooling, needs),
          ...connections(state, needs),
          ...settings(state),
          ...overridden(state, pooling),
          ...loggedValues(state),
          ...age(state),
          ...migrations(await readMigrationState(db)),
          ...(await refusalOf(
            () => requireRuntimeRights(db, mirrorTables),
            `the role ${role} has every right that api and workers need`,
          )),
          ...(await outdated(db)), // last, since an error ends the transaction
        ];
      }),
  };
}

/** Reports that a newer version has changed the database so that this one cannot run on it. A role that may not read that is told of its rights before. */
async function outdated(db: Parameters<typeof requireCompatible>[0]): Promise<Finding[]> {
  try {
    await requireCompatible(db);
    return [];
  } catch (error) {
    if (!isMusterError(error, 'process_outdated')) return [];
    return [problem(error.message, 'Upgrade this installation: no process of this version starts on this database.')];
  }
}

/** Reports a requirement that is not met. */
async function refusalOf(requirement: () => Promise<void>, met?: string): Promise<Finding[]> {
  try {
    await requirement();
    return met === undefined ? [] : [ok(met)];
  } catch (error) {
    if (!isMusterError(error, 'invalid_configuration')) throw error;
    return [problem(error.message, 'Mend that: no process of Muster starts on this database.')];
  }
}

function pooler(pooling: Pooling, { carriesQueue }: Pick<DatabaseNeeds, 'carriesQueue'>): Finding[] {
  if (pooling === 'none') return [ok('no pooler stands between')];
  if (pooling === 'sessions')
    return [ok('a pooler of sessions stands between; its pool must hold the connections of all processes')];
  const found = 'a pooler that gives each transaction another connection stands between';
  if (!carriesQueue) return [ok(`${found}: it works, and each statement is planned again`)];
  const next = 'Set REDIS_URL, or DATABASE_URL to PostgreSQL itself or to a pool with pool_mode = session.';
  return [problem(`${found}, and the queue in PostgreSQL needs sessions`, next)];
}

/** src/app.ts opens at most so many connections, for `up` as for `api` and a `worker`. */
function connectionsOfProcess({
  workerConcurrency,
  carriesQueue,
}: Pick<DatabaseNeeds, 'workerConcurrency' | 'carriesQueue'>): number {
  return workerConcurrency + 6 + workerConcurrency + 1 + (carriesQueue ? 12 : 0);
}

function connections(
  { connectionsAtMost: most, connectionsInUse: used }: ServerState,
  needs: Pick<DatabaseNeeds, 'workerConcurrency' | 'carriesQueue'>,
): Finding[] {
  const each = connectionsOfProcess(needs);
  const fitting = Math.floor(most / each);
  const found =
    `${used} of ${most} connections are in use; a process of Muster takes ${each} at most, ` +
    `so that ${counted(fitting, 'process', 'processes')} have room`;
  const next = 'Raise max_connections (or the limit of the role or the database), or lower WORKER_CONCURRENCY.';
  if (fitting < 1) return [problem(found, next)];
  return [fitting < 2 || used >= FULL * most ? warning(found, next) : ok(found)];
}

function settings({ settings: found }: ServerState): Finding[] {
  const off = Object.entries(SETTINGS_THAT_ARE_ON).filter(([name]) => found[name as ServerSetting] === 'off');
  return off.map(([name, loss]) =>
    warning(`${name} is off: ${loss}`, `As superuser: ALTER SYSTEM SET ${name} = on; SELECT pg_reload_conf();`),
  );
}

/** Reports server defaults that would slow down or cancel Muster's statements. */
function overridden({ overridden: defaults, role }: ServerState, pooling: Pooling): Finding[] {
  if (defaults.length === 0) return [];
  const listed = defaults.join(', ');
  if (pooling === 'none') return [ok(`Muster's sessions override ${listed}`)];
  const limits = defaults.filter((each) => /^(statement|transaction)_timeout/.test(each));
  if (limits.length === 0) return [ok(`Muster's transactions override ${listed}`)];
  return [
    warning(
      `through the pooler, ${limits.join(', ')} holds for statements that Muster sends outside of its transactions, and cancels those that take longer`,
      `Set ${limits.map((each) => each.split(' ')[0]).join(' and ')} to 0 for the role ${role} (ALTER ROLE), and let the pooler reconnect (PgBouncer: RECONNECT).`,
    ),
  ];
}

function loggedValues({ loggingValues }: ServerState): Finding[] {
  if (loggingValues.length === 0) return [];
  return [
    warning(
      `the server's log gets records, and tokens as they are encrypted, as the values of statements (${loggingValues.join(', ')})`,
      'As superuser: ALTER SYSTEM SET log_parameter_max_length = 0; ALTER SYSTEM SET log_parameter_max_length_on_error = 0; SELECT pg_reload_conf();',
    ),
  ];
}

function age({ transactionAge }: ServerState): Finding[] {
  if (transactionAge < OLD_TRANSACTIONS) return [];
  const next = 'End what holds vacuum back (see transactions), and run VACUUM in this database.';
  return [problem(`vacuum has not come round for ${transactionAge} transactions; at 2147483648 PostgreSQL takes no more`, next)];
}

function migrations({ pending, newer, problem: refusal }: MigrationState): Finding[] {
  if (refusal !== undefined) return [problem(refusal, 'Do what it says: nothing starts before.')];
  const found = holding(
    newer.length > 0 &&
      warning(
        `the database has ${counted(newer.length, 'migration')} of a newer version (${newer.join(', ')})`,
        'Upgrade this installation, too.',
      ),
    pending.length > 0 &&
      warning(
        `${counted(pending.length, 'migration')} pending, ${pending[0]} first`,
        'The next start of up, api or worker applies them, or `muster migrate` now.',
      ),
  );
  return found.length > 0 ? found : [ok('every migration is applied')];
}
