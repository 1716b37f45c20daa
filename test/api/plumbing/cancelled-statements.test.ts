import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SERVER_LIMITS } from '../../../src/api/plumbing/server-limits.js';
import { renewClaims } from '../../../src/db/tables/runs.js';
import { waitFor } from '../../support/wait-for.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
let client: pg.PoolClient;

beforeAll(async () => {
  admin = await startAdmin();
  client = await admin.db.pool.connect();
});
afterAll(async () => {
  client.release();
  await admin.stop();
});

const isWaiting = 'datname = current_database() AND pg_backend_pid() = ANY(pg_blocking_pids(pid))';

test('a call whose statement PostgreSQL cancels is answered by a problem that says so, and has changed nothing', async () => {
  const { companyId } = await admin.addCompany();
  await client.query('BEGIN');
  await client.query('SELECT 1 FROM muster.connections WHERE company_id = $1 FOR UPDATE', [companyId]);
  const call = admin.call('DELETE', `/api/companies/test/${companyId}`);
  await waitFor(
    async () => (await client.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE ${isWaiting}`)).rows.length > 0,
  );
  const { status, json } = await call;
  await client.query('ROLLBACK');
  expect(status).toBe(503);
  expect(json).toMatchObject({ code: 'statement_cancelled', sql_state: '57014' });
  expect(json.detail).toContain('statement_timeout');
  expect(admin.log()).toContain('"code":"statement_cancelled"');
  expect((await admin.call('DELETE', `/api/companies/test/${companyId}`)).status).toBe(204);
});

test('a call that waits too long for a lock is answered by a problem that says so', async () => {
  const { companyId } = await admin.addCompany();
  await client.query('BEGIN');
  await client.query('SELECT 1 FROM muster.connections WHERE company_id = $1 FOR UPDATE', [companyId]);
  const { status, json } = await admin.call('POST', `/api/companies/test/${companyId}/pause`);
  await client.query('ROLLBACK');
  expect([status, json.code]).toEqual([503, 'database_busy']);
});

test('a call that changes something may take longer than a connection may be silent otherwise', async () => {
  const hasty = await startAdmin(undefined, { limits: { ...SERVER_LIMITS, silenceMs: 100 } });
  const blocker = await hasty.db.pool.connect();
  const { companyId } = await hasty.addCompany();
  await blocker.query('BEGIN');
  await blocker.query('SELECT 1 FROM muster.connections WHERE company_id = $1 FOR UPDATE', [companyId]);
  const call = hasty.call('DELETE', `/api/companies/test/${companyId}`).catch((error: unknown) => error);
  await sleep(1_000);
  await blocker.query('ROLLBACK');
  expect(await call).toMatchObject({ status: 204 });
  blocker.release();
  await hasty.stop();
});

test('a run that is locked for long keeps no other claim from being renewed', async () => {
  const companies = [await admin.addCompany(), await admin.addCompany()];
  const claims = companies.map((company) => ({
    ...company,
    trigger: 'manual',
    mode: 'full',
    status: 'running',
    holder: 'worker',
    heartbeatAt: new Date(0),
  }));
  const runs = await admin.db.prisma.run.createManyAndReturn({ data: claims });
  const ids = runs.map(({ id }) => id);
  await client.query('BEGIN');
  await client.query("UPDATE muster.runs SET status = 'cancelled' WHERE id = $1", [ids[0]]);
  const renewed = await renewClaims(admin.db, { ids, worker: 'worker' });
  await client.query('ROLLBACK');
  expect(renewed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  const beats = await admin.db.prisma.run.findMany({ where: { id: { in: ids } } });
  expect(new Map(beats.map(({ id, heartbeatAt }) => [id, heartbeatAt!.getTime() > 0]))).toEqual(
    new Map([
      [ids[0], false],
      [ids[1], true],
    ]),
  );
});
