import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { syncHarness } from './sync-harness.js';

const EMPLOYEES = 60;

let sandbox: Sandbox;
let database: TestDatabase;

beforeAll(async () => {
  sandbox = await startSandbox({ companies: [{ name: 'Nordlys', employees: EMPLOYEES }] });
  database = await testDatabase();
});
afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

test('a walk whose statement PostgreSQL cancels says so, waits for its next attempt, and goes on where it stood', async () => {
  const client = new pg.Client(database.url);
  await client.connect();
  let requests = 0;
  let cancelling: Promise<unknown> | undefined;
  const harness = syncHarness(database.db, sandbox, endpointsOf({ employees: ENTRIES.employees }), {
    beforeRequest: async ({ path }) => {
      if (!path.includes('employees') || ++requests !== 2) return;
      // From here on no page can be committed.
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM muster.lists FOR UPDATE');
      cancelling = waitFor(async () => {
        const { rows } = await client.query(
          `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND pg_backend_pid() = ANY(pg_blocking_pids(pid))`,
        );
        return rows.length > 0;
      }).finally(() => client.query('ROLLBACK'));
    },
  });
  try {
    const company = await harness.onboard(sandbox.companies[0]!.companyId);
    const run = await harness.sync(company);
    await cancelling;
    expect(run).toMatchObject({ status: 'queued', error: { code: 'walks_failed' } });
    expect(run.walks).toMatchObject([{ status: 'failed', verified: false, error: { code: 'statement_cancelled' } }]);
    const due = await database.db.prisma.run.findUniqueOrThrow({ where: { id: run.id } });
    expect(due.attempts).toBe(1);
    expect(due.startAfter.getTime()).toBeGreaterThan(Date.now());
    expect(await database.db.prisma.employee.count({ where: { deletedAt: { not: null } } })).toBe(0);
    await database.db.prisma.run.update({ where: { id: run.id }, data: { startAfter: new Date(0) } });
    const again = await harness.work(run.id);
    expect(again).toMatchObject({ status: 'succeeded', walks: [{ verified: true, received: EMPLOYEES, deleted: 0 }] });
    expect(await database.db.prisma.employee.count()).toBe(EMPLOYEES);
  } finally {
    await client.end();
    await harness.close();
  }
});
