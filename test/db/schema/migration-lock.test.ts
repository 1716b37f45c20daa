import pg from 'pg';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { migrate, pendingMigrations } from '../../../src/db/schema/migrate.js';
import { testDatabase } from '../../support/database.js';
import { waitFor } from '../../support/wait-for.js';

/** A migration that changes `muster.holds` first, and then reads `muster.audit`. */
const NAME = '20261129110000_syncs_of_lists';

/** A database that lacks NAME alone. */
async function databaseBefore() {
  const { url, close, db } = await testDatabase();
  onTestFinished(close);
  await db.pool.query(
    `DROP TABLE muster.run_request_lists; ALTER TABLE muster.holds DROP COLUMN decided_by, DROP COLUMN decision_reason`,
  );
  await db.pool.query('DELETE FROM _prisma_migrations WHERE migration_name = $1', [NAME]);
  const connect = async (name: string) => {
    const client = new pg.Client({ connectionString: url, application_name: name });
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  };
  return { url, pool: db.pool, connect };
}

test('a migration that waits for a table lets others use it, and says who has it', async () => {
  const { url, pool, connect } = await databaseBefore();
  const dump = await connect('a dump');
  await dump.query('BEGIN; SELECT FROM muster.holds');
  const lines: string[] = [];
  const migrating = migrate(url, pino({ level: 'warn' }, { write: (line) => void lines.push(line) }));
  await waitFor(() => lines.length > 0, { what: 'the migration to say that it waits' });
  expect(lines.join()).toMatch(
    /waits for a table that another session uses, most likely process \d+ of PostgreSQL \(a dump, role/,
  );
  // While the migration waits for the table, this one would wait, too.
  await pool.query(`SET lock_timeout = '30s'; SELECT FROM muster.holds`);
  expect(await pendingMigrations(pool)).toEqual([NAME]);
  // In the pauses it has the lock, and nothing that holds VACUUM back.
  const pausing = `SELECT 1 FROM pg_stat_activity a JOIN pg_locks l USING (pid) WHERE a.datname = current_database() AND l.locktype = 'advisory' AND l.granted
    AND a.state = 'idle in transaction' AND a.backend_xid IS NULL AND a.backend_xmin IS NULL`;
  await waitFor(async () => (await pool.query(pausing)).rowCount === 1, { what: 'a pause' });
  await dump.query('COMMIT');
  expect(await migrating).toEqual({ applied: [NAME] });
});

test('a migration waits for too short a time to make a request the victim of a deadlock, and for longer when that is too short for it', async () => {
  const { url, pool, connect } = await databaseBefore();
  await pool.query(`
    CREATE SEQUENCE public.wait_ms;
    CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM setval('public.wait_ms', setting::int) FROM pg_settings WHERE name = 'lock_timeout';
    END $$;
    CREATE EVENT TRIGGER note ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION public.note();
  `);
  const waitMs = async () => (await pool.query(`SELECT last_value::int AS ms FROM public.wait_ms WHERE is_called`)).rows[0]?.ms;
  const page = await connect('the commit of a large page');
  await page.query('BEGIN; SELECT FROM muster.holds');
  const migrating = migrate(url, pino({ level: 'silent' }));
  await waitFor(async () => (await waitMs()) !== undefined, { what: 'the first try' });
  const [{ ms: deadlockMs }] = (await pool.query(`SELECT setting::int AS ms FROM pg_settings WHERE name = 'deadlock_timeout'`))
    .rows;
  const MOST_TABLES = 4;
  expect(MOST_TABLES * (await waitMs())).toBeLessThan(deadlockMs);
  await waitFor(async () => (await waitMs()) > deadlockMs, { what: 'a longer wait' });
  await page.query('COMMIT');
  expect(await migrating).toEqual({ applied: [NAME] });
});

test('a migration that deadlocks with an older process is tried again, and no process that starts in the pause tries it', async () => {
  const { url, pool, connect } = await databaseBefore();
  // The first try goes on to the second table only when the older process waits for the first one.
  await pool.query(`
    CREATE SEQUENCE public.tries;
    CREATE FUNCTION public.meet() RETURNS event_trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('public.tries') > 1 THEN RETURN; END IF;
      WHILE NOT EXISTS (SELECT FROM pg_locks WHERE relation = 'muster.holds'::regclass AND NOT granted) LOOP
        PERFORM pg_sleep(0.01);
      END LOOP;
    END $$;
    CREATE EVENT TRIGGER meet ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION public.meet();
  `);
  const tries = async () =>
    (await pool.query(`SELECT last_value::int AS tries FROM public.tries WHERE is_called`)).rows[0]?.tries;
  const older = await connect('an older process');
  await older.query(`SET deadlock_timeout = '10min'; BEGIN; LOCK TABLE muster.audit`); // so it is the migration that fails
  const first = migrate(url, pino({ level: 'silent' }));
  await waitFor(async () => (await tries()) === 1);
  await older.query('SELECT FROM muster.holds; COMMIT');
  const isLocked = async () =>
    (
      await pool.query(
        `SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      )
    ).rowCount === 1;
  await waitFor(async () => (await isLocked()) || (await pendingMigrations(pool)).length === 0, { what: 'the pause' });
  const second = migrate(url, pino({ level: 'silent' }));
  expect(await Promise.all([first, second])).toEqual([{ applied: [NAME] }, { applied: [] }]);
  expect(await tries()).toBe(2);
});
