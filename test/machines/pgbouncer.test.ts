import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/db/connection/database.js';
import { runStep } from '../../src/db/connection/step.js';
import { cancelRun } from '../../src/db/tables/runs.js';
import { checkDatabase } from '../../src/doctor/database.js';
import { DatabaseAccess } from '../../src/doctor/database-access.js';
import { checkTransactions } from '../../src/doctor/transactions.js';
import { found } from '../doctor/findings.js';
import { emptyDatabase, testDatabase } from '../support/database.js';
import { startMuster } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';
import { startPgBouncer } from './pgbouncer.js';

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

test('a step through a pool of transactions gives up locks, and leaves nothing behind for the next client', async () => {
  const { url, close } = await testDatabase();
  cleanups.push(close);
  const pooler = await startPgBouncer(url, 'transaction', { default_pool_size: '1' });
  cleanups.push(() => pooler.close());
  const db = openDatabase({ url: pooler.through(url) });
  cleanups.push(() => db.close());
  const text = `SELECT current_setting('lock_timeout') AS lock, current_setting('idle_in_transaction_session_timeout') AS idle`;
  expect(await runStep(db, { text, values: [] })).toEqual([{ lock: '10s', idle: '15s' }]);
  await expect(runStep(db, { text: 'SELECT 1 / $1::int', values: [0] })).rejects.toMatchObject({ code: '22012' });
  expect((await db.pool.query(text)).rows).toEqual([{ lock: '0', idle: '0' }]);
  expect(await runStep(db, { text, values: [] })).toEqual([{ lock: '10s', idle: '15s' }]);
  const blocker = new pg.Client(url);
  await blocker.connect();
  await blocker.query('BEGIN; LOCK TABLE muster.runs');
  await expect(cancelRun(db, { id: randomUUID() })).rejects.toMatchObject({ code: '55P03' });
  await blocker.end();
});

test('an examination behind a pooler warns of a limit that cancels single statements', async () => {
  const { url, close } = await testDatabase();
  cleanups.push(close);
  const pooler = await startPgBouncer(url, 'transaction');
  cleanups.push(() => pooler.close());
  const admin = new pg.Client(url);
  await admin.connect();
  await admin.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET statement_timeout = '1s'`);
  await admin.end();
  const access = new DatabaseAccess({ url: pooler.through(url) });
  const lines = await found(checkDatabase({ access, mirrorTables: [], workerConcurrency: 4, carriesQueue: false }));
  expect(lines).toContainEqual(
    expect.stringMatching(/^warning: through the pooler, statement_timeout = 1000ms holds for statements/),
  );
});

test.each([
  ['session', true, 'ok: a pooler of sessions stands between; its pool must hold the connections of all processes'],
  [
    'transaction',
    false,
    'ok: a pooler that gives each transaction another connection stands between: it works, and each statement is planned again',
  ],
  [
    'transaction',
    true,
    'problem: a pooler that gives each transaction another connection stands between, and the queue in PostgreSQL needs sessions',
  ],
] as const)(
  'an examination through a pool of %ss says so, and leaves nothing behind for the next client',
  async (mode, carriesQueue, line) => {
    const { url, close } = await testDatabase();
    cleanups.push(close);
    const pooler = await startPgBouncer(url, mode, { default_pool_size: '3' });
    cleanups.push(() => pooler.close());
    const access = new DatabaseAccess({ url: pooler.through(url) });
    const needs = { access, mirrorTables: ['employees'], workerConcurrency: 4, carriesQueue };
    const lines = await found(checkDatabase(needs), checkTransactions(access));
    expect(lines).toContain(line);
    expect(lines.at(-1)).toBe('ok: none has been open for 5 minutes');
    const next = new pg.Client(pooler.through(url));
    await next.connect();
    const text = `SELECT current_setting('statement_timeout') AS limit, current_setting('transaction_read_only') AS fixed`;
    expect((await next.query(text)).rows).toEqual([{ limit: '0', fixed: 'off' }]);
    await next.end();
  },
);

describe('migrations through a pool of transactions', () => {
  test('are applied once by several at once, and leave no lock behind', async () => {
    const { url, close } = await emptyDatabase();
    cleanups.push(close);
    const pooler = await startPgBouncer(url, 'transaction');
    cleanups.push(() => pooler.close());
    const env = { DATABASE_URL: pooler.through(url), REDIS_URL: redisUrl()!, MUSTER_ENCRYPTION_KEYS: `k:${'A'.repeat(43)}=` };
    const processes = [1, 2, 3].map(() => startMuster(['migrate', '--json'], env));
    expect(await Promise.all(processes.map(({ exit }) => exit))).toEqual(processes.map(() => ({ code: 0, signal: null })));
    const again = startMuster(['migrate'], env);
    expect(await again.exit).toMatchObject({ code: 0 });
    expect(again.stdout).toBe('The database is up to date.\n');
  });

  test('that wait for a lock which somebody left behind say whose it is', async () => {
    const { url, close } = await emptyDatabase();
    cleanups.push(close);
    const holder = new pg.Client({ connectionString: url, application_name: 'an older Muster' });
    await holder.connect();
    const { rows } = await holder.query<{ pid: number }>('SELECT pg_backend_pid() AS pid FROM pg_advisory_lock(72707369)');
    const migrate = startMuster(['migrate'], {
      DATABASE_URL: url,
      MUSTER_ENCRYPTION_KEYS: `k:${'A'.repeat(43)}=`,
    });
    await migrate.waitForOutput(new RegExp(`process ${rows[0]!.pid} of PostgreSQL holds \\(an older Muster`));
    await holder.end();
    expect(await migrate.exit).toMatchObject({ code: 0 });
    await waitFor(() => migrate.stdout.startsWith('Applied:'));
  });
});
