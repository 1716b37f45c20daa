import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PIECE_ROWS } from '../../src/db/statements/in-pieces.js';
import { Prisma } from '../../src/generated/prisma/client.js';
import { runMuster } from '../cli/run-muster.js';
import { Deployment } from '../process/deployment.js';
import { waitFor } from '../process/wait-for.js';
import { testDatabase } from '../support/database.js';
import type { TestProcess } from '../support/process.js';

// A database administrator has given the role of Muster a limit for statements, and a company is so large that some of them take longer.

const ROWS = Number(process.env['TIMEOUT_RECORDS'] ?? 150_000);
/** Statements on 150,000 rows take longer. With fewer they may not, and the sizes of the pieces alone show that no statement is about all of them. */
const LIMIT_MS = 1_000;
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 1_000 },
  },
};
const PATIENCE_MS = 600_000;

let deployment: Deployment;
let api: TestProcess;
let worker: TestProcess;
/** Past Muster, without its settings. */
let client: pg.Client;

beforeAll(async () => {
  const database = await testDatabase();
  client = new pg.Client(database.url);
  await client.connect();
  const { rows } = await client.query<{ role: string; name: string }>(
    'SELECT quote_ident(current_user) AS role, quote_ident(current_database()) AS name',
  );
  const { role, name } = rows[0]!;
  await client.query(`ALTER ROLE ${role} IN DATABASE ${name} SET statement_timeout = ${LIMIT_MS}`);
  deployment = await Deployment.open({
    database,
    catalogue: CATALOGUE,
    sandbox: { companies: [{ name: 'Giant', employees: ROWS }] },
  });
  [api, worker] = await Promise.all([deployment.startApi(), deployment.startWorker()]);
});
afterAll(async () => {
  for (const running of [api, worker]) running.kill('SIGTERM');
  await Promise.all([api.exit, worker.exit]);
  await client.end();
  await deployment.close();
});

const path = (companyId: string) => `/api/companies/test/${companyId}`;

async function living(companyId: string): Promise<number> {
  return deployment.database.db.prisma.employee.count({ where: { environment: 'test', companyId, deletedAt: null } });
}

/** Batches of deletions: how many there are, the largest, and how many records they tell of. */
async function deletions(companyId: string): Promise<{ largest: number; changes: number; records: number }> {
  const { rows } = await deployment.database.db.pool.query<{ largest: number; changes: number; records: number }>(
    `SELECT COALESCE(max(b.size), 0) AS largest, count(c.*)::int AS changes, count(DISTINCT c.record_id)::int AS records
     FROM muster.change_batches b JOIN muster.changes c ON c.batch_id = b.id WHERE b.company_id = $1 AND c.op = 'delete'`,
    [companyId],
  );
  return rows[0]!;
}

/** A company whose last verified walk has received nothing, so that all of its rows are held. Returns its id and that of the hold. */
async function companyWithHold(): Promise<{ companyId: string; hold: string }> {
  const { prisma, pool } = deployment.database.db;
  const company = { environment: 'test', companyId: randomUUID() };
  const list = { ...company, resource: 'employees' };
  await prisma.connection.create({ data: company });
  await prisma.company.create({ data: company });
  const run = await prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'full', status: 'succeeded' } });
  await prisma.list.create({ data: { ...list, epoch: 1n, lastRunId: run.id, records: ROWS } });
  const walk = await prisma.walk.create({ data: { ...list, runId: run.id, position: 0, status: 'succeeded', epoch: 1n } });
  await pool.query(
    `INSERT INTO mirror.employees (environment, company_id, id, data)
     SELECT 'test', $1, lpad(n::text, 6, '0'), jsonb_build_object('id', n, 'text', repeat('x', 200)) FROM generate_series(1, ${ROWS}) n`,
    [company.companyId],
  );
  const held = { ...list, runId: run.id, walkId: walk.id, count: ROWS, living: ROWS, sample: [] };
  return { companyId: company.companyId, hold: (await prisma.hold.create({ data: held })).id };
}

/** Makes the call, and kills the API when it has come to the row with the id, which somebody has locked. */
async function killHalfWay(method: string, address: string, { companyId, id }: { companyId: string; id: string }): Promise<void> {
  await client.query('BEGIN');
  await client.query('SELECT 1 FROM mirror.employees WHERE company_id = $1 AND id = $2 FOR UPDATE', [companyId, id]);
  const attempt = deployment.call(method, address).catch(() => undefined);
  await waitFor(
    async () => {
      const { rows } = await client.query(
        'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pg_backend_pid() = ANY(pg_blocking_pids(pid))',
      );
      return rows.length > 0;
    },
    { timeoutMs: PATIENCE_MS },
  );
  api.kill('SIGKILL');
  await Promise.all([api.exit, attempt]);
  await client.query('ROLLBACK');
  // The server goes on with the statement that waited, until it finds that nobody wants its answer.
  await waitFor(
    async () => {
      const { rows } = await client.query(
        `SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
         WHERE c.relname = 'employees' AND l.mode = 'RowExclusiveLock' AND l.pid <> pg_backend_pid()`,
      );
      return rows.length === 0;
    },
    { timeoutMs: PATIENCE_MS },
  );
  api = await deployment.startApi();
}

test('a large company is synced, read a second time, exported, forgotten of, and removed', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  await deployment.onboard(companyId);
  const run = await deployment.runEnd(companyId);
  expect(run).toMatchObject({ status: 'succeeded', walks: [{ verified: true, inserted: ROWS }] });

  expect((await deployment.call('POST', `${path(companyId)}/sync`, { mode: 'full' })).status).toBe(202);
  const again = await deployment.runEnd(companyId);
  expect(again).toMatchObject({ status: 'succeeded', walks: [{ verified: true, unchanged: ROWS, deleted: 0 }] });

  expect((await deployment.call('POST', `${path(companyId)}/verify`)).status).toBe(202);
  const reading = await deployment.runEnd(companyId);
  const found = { missing: 0, extra: 0, different: 0, compared: ROWS };
  expect(reading).toMatchObject({ status: 'succeeded', walks: [{ verify: found }] });

  const output = join(deployment.home, 'employees.ndjson');
  const args = ['export', 'employees', '--format', 'ndjson', '--output', output, '--company', companyId];
  expect(await runMuster(args, deployment.env)).toMatchObject({ code: 0 });
  expect(readFileSync(output, 'utf8').trimEnd().split('\n')).toHaveLength(ROWS);

  const { id } = await deployment.database.db.prisma.employee.findFirstOrThrow({ where: { companyId } });
  const forgotten = await deployment.call('POST', `${path(companyId)}/forget`, { resource: 'employees', id });
  expect(forgotten).toEqual({ status: 200, body: { erased: 1 } });

  expect(await deployment.call('DELETE', path(companyId))).toMatchObject({ status: 204 });
  expect(await deployment.database.db.prisma.employee.count({ where: { companyId } })).toBe(0);
  expect(await deletions(companyId)).toEqual({ largest: PIECE_ROWS, changes: ROWS, records: ROWS });
});

test('kill -9 in the middle of an approval, and of a removal, leaves all as it was, and the next call does it', async () => {
  const { companyId, hold } = await companyWithHold();
  // In the last piece.
  const last = { companyId, id: String(ROWS - 1).padStart(6, '0') };
  await killHalfWay('POST', `/api/holds/${hold}/approve`, last);
  expect(await living(companyId)).toBe(ROWS);
  expect(await deletions(companyId)).toEqual({ largest: 0, changes: 0, records: 0 });
  expect(await deployment.database.db.prisma.hold.findUniqueOrThrow({ where: { id: hold } })).toMatchObject({ status: 'open' });

  expect(await deployment.call('POST', `/api/holds/${hold}/approve`)).toMatchObject({
    status: 200,
    body: { status: 'approved' },
  });
  expect(await living(companyId)).toBe(0);
  expect(await deletions(companyId)).toEqual({ largest: PIECE_ROWS, changes: ROWS, records: ROWS });
  const { prisma } = deployment.database.db;
  expect(await prisma.list.findFirstOrThrow({ where: { companyId } })).toMatchObject({ records: 0 });
  expect(await prisma.walk.findFirstOrThrow({ where: { companyId } })).toMatchObject({ deleted: ROWS });

  await prisma.employee.updateMany({ where: { companyId }, data: { deletedAt: null } });
  await killHalfWay('DELETE', path(companyId), last);
  expect(await living(companyId)).toBe(ROWS);
  expect(await deletions(companyId)).toEqual({ largest: PIECE_ROWS, changes: ROWS, records: ROWS });
  expect(await prisma.change.count({ where: { batch: { companyId }, data: { not: Prisma.DbNull } } })).toBe(ROWS);

  expect(await deployment.call('DELETE', path(companyId))).toMatchObject({ status: 204 });
  expect(await prisma.employee.count({ where: { companyId } })).toBe(0);
  expect(await deletions(companyId)).toEqual({ largest: PIECE_ROWS, changes: 2 * ROWS, records: ROWS });
});
