import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestProcess } from '../support/process.js';
import { columnsOf } from '../warehouse/warehouse-fixture.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const RECORDS = 150;
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 100 },
  },
};
const VIEWS = ['employees', 'employees_history'] as const;

let deployment: Deployment;
let worker: TestProcess;

beforeAll(async () => {
  deployment = await Deployment.open({
    catalogue: CATALOGUE,
    sandbox: { companies: [{ name: 'Extended', employees: RECORDS }] },
  });
  [, worker] = await Promise.all([deployment.startApi(), deployment.startWorker()]);
});
afterAll(() => deployment.close());

/** The worker has made the first view in its transaction, and waits for the second, which somebody reads, when it is killed. */
async function killWhileExtending(cause: () => Promise<unknown>): Promise<void> {
  const { pool } = deployment.database.db;
  // A connection of the pool would be ended if it were idle in a transaction for long.
  const reader = new pg.Client(deployment.database.url);
  await reader.connect();
  try {
    await reader.query('BEGIN');
    await reader.query('SELECT count(*) FROM warehouse.employees_history');
    await cause();
    const waits = () =>
      pool
        .query(`SELECT pid FROM pg_locks WHERE relation = 'warehouse.employees_history'::regclass AND NOT granted`)
        .then(({ rows }) => (rows[0] as { pid: number } | undefined)?.pid);
    const pid = await waitFor(waits, { intervalMs: 10 });
    worker.kill('SIGKILL');
    expect(await worker.exit).toMatchObject({ signal: 'SIGKILL' });
    const isGone = async () => (await pool.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])).rowCount === 0;
    await waitFor(isGone, { what: 'the session of the killed worker to end' });
  } finally {
    await reader.query('COMMIT');
    await reader.end();
  }
}

const columns = () => Promise.all(VIEWS.map((view) => columnsOf(deployment.database.db, view)));
const both = (name: string) => waitFor(async () => (await columns()).every((names) => names.includes(name)), { what: name });

test('kill -9 of a worker that extends views leaves both as they were, and the next walk goes on', async () => {
  const { db } = deployment.database;
  const { sandbox } = deployment;
  const { companyId } = sandbox.companies[0]!;
  const empty = await columns();
  await killWhileExtending(() => deployment.onboard(companyId));
  expect(await columns()).toEqual(empty);

  await deployment.ageHeartbeats();
  worker = await deployment.startWorker();
  expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }] });
  await both('hire_date');
  const query = `SELECT count(hire_date)::int AS n, count(_rest)::int AS rest FROM warehouse.employees`;
  // Keys that few records have get their columns later than others.
  await waitFor(async () => (await db.pool.query<{ rest: number }>(query)).rows[0]!.rest === 0, { what: 'every column' });
  expect((await db.pool.query(query)).rows).toEqual([{ n: RECORDS, rest: 0 }]);
  const made = await columns();

  const list = sandbox.list(companyId, 'employees');
  await killWhileExtending(async () => {
    const [first] = list.texts();
    list.change(0, first!.replace(/^\{/, '{"badge":"blue",'));
    await deployment.call('POST', `/api/companies/test/${companyId}/sync`);
    // A sweep may extend the views for an earlier record.
    const isMirrored = `SELECT FROM mirror.employees WHERE data ? 'badge'`;
    await waitFor(async () => (await db.pool.query(isMirrored)).rowCount === 1, { what: 'the badge' });
  });
  expect(await columns()).toEqual(made);
  // What has no column yet is missing nowhere.
  expect((await db.pool.query(`SELECT _rest FROM warehouse.employees WHERE _rest IS NOT NULL`)).rows).toEqual([
    { _rest: { badge: 'blue' } },
  ]);

  await deployment.ageHeartbeats();
  worker = await deployment.startWorker();
  await both('badge');
  // A run that the killed worker has left would be gone on with instead of a new one.
  await deployment.runEnd(companyId);
  list.remove(1);
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`);
  const next = () => deployment.lastRun(companyId).then(({ status, walks }) => status === 'succeeded' && walks[0]?.deleted === 1);
  await waitFor(next, { what: 'the walk that follows' });
  expect((await db.pool.query(query)).rows).toEqual([{ n: RECORDS - 1, rest: 0 }]);
  expect(await columns()).toEqual(made.map((names) => [...names, 'badge']));
  // Changes stand in the history once they have a number.
  const history = `SELECT count(*) FILTER (WHERE _op = 'delete')::int AS gone FROM warehouse.employees_history`;
  await waitFor(async () => (await db.pool.query<{ gone: number }>(history)).rows[0]!.gone === 1, { what: 'the deletion' });
});
