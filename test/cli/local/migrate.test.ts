import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { emptyDatabase } from '../../support/database.js';
import { Line } from '../../support/line.js';
import { startMuster } from '../../support/process.js';
import { waitFor } from '../../support/wait-for.js';

let database: Awaited<ReturnType<typeof emptyDatabase>>;
let line: Line;
beforeEach(async () => {
  database = await emptyDatabase();
  line = await Line.open(new URL(database.url));
  onTestFinished(async () => {
    await line.cut();
    await database.close();
  });
});

const migrate = (...args: readonly string[]) =>
  startMuster(['migrate', ...args], {
    DATABASE_URL: line.url.href,
    MUSTER_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  });

describe('migrate --wait', () => {
  test('waits for a database that cannot be reached, says so, and then does its work once', async () => {
    await line.cut();
    const waiting = migrate('--wait');
    await waiting.waitForOutput(/waiting for the database: PostgreSQL at 127\.0\.0\.1:\d+ cannot be used: .*refused/);
    await line.restore();
    expect(await waiting.exit).toEqual({ code: 0, signal: null });
    expect(waiting.stdout).toMatch(/^Applied:\n/m);
    const again = migrate();
    expect(await again.exit).toEqual({ code: 0, signal: null });
    expect(again.stdout).toBe('The database is up to date.\n');
  });

  test('goes on after a database that goes away during a migration', async () => {
    const client = new pg.Client(database.url);
    await client.connect();
    onTestFinished(() => client.end());
    // The first migration that makes a table waits for this lock, and loses its connection there.
    await client.query(`
      CREATE FUNCTION public.wait() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); END $$;
      CREATE EVENT TRIGGER wait ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.wait();
      SELECT pg_advisory_lock(1)`);
    const waiting = migrate('--wait');
    const pid = await waitFor(
      async () => {
        const { rows } = await client.query<{ pid: number }>(`SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`);
        return rows[0]?.pid;
      },
      { what: 'the migration to wait' },
    );
    await client.query('SELECT pg_terminate_backend($1)', [pid]);
    await waiting.waitForOutput(/waiting for the database/);
    await client.query('SELECT pg_advisory_unlock(1)');
    expect(await waiting.exit).toEqual({ code: 0, signal: null });
  });

  test('ends when a migration fails', async () => {
    const client = new pg.Client(database.url);
    await client.connect();
    await client.query('CREATE SCHEMA mirror; CREATE TABLE mirror.employees (a int)');
    await client.end();
    const failing = migrate('--wait');
    expect(await failing.exit).toEqual({ code: 1, signal: null });
    expect(failing.stderr).toContain('[migration_failed]');
  });
});
