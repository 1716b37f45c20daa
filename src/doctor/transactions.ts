import { findLongTransactions, type LongTransaction, readServerState } from '../db/connection/server-state.js';
import { type Check, duration, type Finding, ok, problem, size, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';

/** No transaction of Muster is open for so long. */
const LONG_SECONDS = 300;

/** An open transaction keeps vacuum from cleaning up, which slows down a queue in PostgreSQL. */
const VERY_LONG_SECONDS = 3_600;

/** A reader that keeps up holds far less write-ahead log than this, even in a busy night. */
const MUCH_LOG_BYTES = 1e9;

const SHOWN = 5;

export function checkTransactions(access: DatabaseAccess, longSeconds = LONG_SECONDS, muchLogBytes = MUCH_LOG_BYTES): Check {
  return {
    name: 'transactions',
    look: () =>
      access.read(async (db) => {
        const long = await findLongTransactions(db, { seconds: longSeconds, bytes: muchLogBytes });
        const { seesAllSessions, role } = await readServerState(db);
        const hidden = seesAllSessions ? '' : `, of those that the role ${role} sees: it is no member of pg_read_all_stats`;
        if (long.length === 0) return [ok(`none has been open for ${duration(longSeconds)}${hidden}`)];
        const more = long.length - SHOWN;
        return [
          ...long.slice(0, SHOWN).map(findingOf),
          ...(more > 0 ? [warning(`${more} more`, 'See pg_stat_activity, pg_prepared_xacts and pg_replication_slots.')] : []),
        ];
      }),
  };
}

function findingOf(long: LongTransaction): Finding {
  const { kind, name, role, application, isIdle, seconds } = long;
  if (kind === 'slot') return findingOfSlot(long);
  const harm = 'vacuum cleans up nothing that is newer';
  const age = duration(seconds ?? 0);
  if (kind === 'prepared')
    return problem(
      `the prepared transaction ${name} of ${role} has been open for ${age}: ${harm}`,
      `COMMIT PREPARED or ROLLBACK PREPARED '${name}', whichever its program wants.`,
    );
  const grade = (seconds ?? 0) >= VERY_LONG_SECONDS ? problem : warning;
  return grade(
    `process ${name} of ${role}${application ? ` (${application})` : ''} has a transaction open for ${age}${isIdle ? ', idle' : ''}: ${harm}`,
    `End the program, or its session: SELECT pg_terminate_backend(${name})`,
  );
}

function findingOfSlot({ name, isIdle, keptBytes, isLost }: LongTransaction): Finding {
  const drop = `pg_drop_replication_slot('${name}')`;
  if (isLost)
    return problem(
      `the replication slot ${name} has lost write-ahead log that its reader needs: it gets nothing any more`,
      `Drop it: SELECT ${drop}; and create the subscription again; a larger max_slot_wal_keep_size keeps more.`,
    );
  const kept = keptBytes === null ? 'old rows' : `${size(keptBytes)} of write-ahead log, and old rows`;
  if (isIdle)
    return warning(
      `the replication slot ${name} has no reader, and keeps ${kept}: the disk fills`,
      `If its reader does not come back: SELECT ${drop}`,
    );
  return warning(
    `the reader of the replication slot ${name} is too slow, and it keeps ${kept}: the disk fills`,
    'See what its reader waits for: pg_stat_replication here, pg_stat_subscription and the log there.',
  );
}
