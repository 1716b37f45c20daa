import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runMuster } from '../cli/run-muster.js';
import { occurrencesOf } from '../support/occurrences.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const EMPLOYEES = 600;
/** Requests behind these are answered late, so that a walk is under way for as long as it must be. */
const HALF_WAY = 12;
/** A record that a walk has passed by then, and one that it has not. */
const [EARLY, LATE] = [45, 500];
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 20 },
  },
};
/** Where readers of the feed are told of the record. */
const FEED = [
  'mirror.changes.id',
  'muster.changes.record_id',
  'muster.stamped_changes.record_id',
  'warehouse.employees_changes.id',
  'warehouse.employees_history.id',
];

let deployment: Deployment;
let api: TestProcess;
let worker: TestProcess;
let next = 0;

beforeAll(async () => {
  deployment = await Deployment.open({
    catalogue: CATALOGUE,
    sandbox: { companies: Array.from({ length: 4 }, (_, n) => ({ name: `C${n}`, employees: EMPLOYEES })) },
    env: { LOG_LEVEL: 'trace' },
  });
  [api, worker] = await Promise.all([deployment.startApi(), deployment.startWorker()]);
});
afterAll(() => deployment.close());

const newCompany = () => deployment.sandbox.companies[next++]!.companyId;
const uidOf = (companyId: string, at: number) =>
  (JSON.parse(deployment.sandbox.list(companyId, 'employees').texts()[at]!) as { uid: string }).uid;
const path = (companyId: string) => `/api/companies/test/${companyId}`;
const forget = (companyId: string, id: string) =>
  deployment.call('POST', `${path(companyId)}/forget`, { resource: 'employees', id });

function holdUpHalfWay(): void {
  deployment.sandbox.faults.add({ kind: 'hold' }, { path: '/employees', skip: HALF_WAY, times: Infinity });
}

async function walkIsHalfWay(companyId: string): Promise<void> {
  await waitFor(async () => ((await deployment.lastRun(companyId)).walks[0]?.pages ?? 0) >= 6, { intervalMs: 20 });
}

async function rows(companyId: string): Promise<string[]> {
  const { rows: found } = await deployment.database.db.pool.query<{ id: string }>(
    'SELECT id FROM mirror.employees WHERE company_id = $1',
    [companyId],
  );
  return found.map(({ id }) => id);
}

const isIn = async (from: string, id: string) =>
  (await deployment.database.db.pool.query(`SELECT FROM ${from} WHERE id = $1`, [id])).rowCount !== 0;

/** Where the id is, once the feed has numbered what it says of it. */
async function numberedPlacesOf(id: string): Promise<string[]> {
  await waitFor(() => isIn('mirror.changes', id), { what: 'the feed to number the record' });
  return occurrencesOf(deployment.database.db, id);
}

/** The record is nowhere but in the entry that tells readers of it, and no process has said its id. */
async function expectForgotten(companyId: string, id: string): Promise<void> {
  expect(await rows(companyId)).not.toContain(id);
  expect(await rows(companyId)).toHaveLength(EMPLOYEES - 1);
  const places = await numberedPlacesOf(id);
  expect(FEED).toEqual(expect.arrayContaining(places));
  for (const process of [api, worker]) expect(process.stdout + process.stderr).not.toContain(id);
}

test.each([
  ['SIGKILL', EARLY],
  ['SIGSTOP', LATE],
] as const)('a record is forgotten beside a walk whose worker meets %s', async (signal, at) => {
  const companyId = newCompany();
  const uid = uidOf(companyId, at);
  holdUpHalfWay();
  await deployment.onboard(companyId);
  await walkIsHalfWay(companyId);
  worker.kill(signal);
  expect(await forget(companyId, uid)).toMatchObject({ status: 200, body: { erased: at === EARLY ? 1 : 0 } });
  deployment.sandbox.faults.clear();
  if (signal === 'SIGSTOP') worker.kill('SIGCONT');
  else {
    await worker.exit;
    await deployment.ageHeartbeats();
    worker = await deployment.startWorker();
  }
  const run = await deployment.runEnd(companyId);
  expect(run).toMatchObject({ status: 'succeeded', walks: [{ verified: true, received: EMPLOYEES, deleted: 0 }] });
  expect(await rows(companyId)).toHaveLength(EMPLOYEES - 1);
  expect(await rows(companyId)).not.toContain(uid);
  for (const process of [api, worker]) expect(process.stdout + process.stderr).not.toContain(uid);
});

test('kill -9 in the middle of forgetting leaves all or nothing, and the next attempt does it', async () => {
  const companyId = newCompany();
  const uid = uidOf(companyId, EARLY);
  await deployment.onboard(companyId);
  await deployment.runEnd(companyId);
  // Members that the typed views have not learned yet stand in their last column.
  // Each search reads every column of every table.
  const search = { intervalMs: 2_000, what: 'the typed views to have their columns' };
  const before = await waitFor(async () => {
    const places = await numberedPlacesOf(uid);
    const hasColumns = ['warehouse.employees.uid', 'warehouse.employees_history.uid'].every((place) => places.includes(place));
    return hasColumns && !places.some((place) => place.endsWith('._rest')) ? places : undefined;
  }, search);
  const client = new pg.Client({ connectionString: deployment.database.url });
  await client.connect();
  // The feed is erased behind mark and row: there it stands still.
  await client.query('BEGIN');
  await client.query('SELECT 1 FROM muster.change_batches WHERE company_id = $1 ORDER BY id FOR UPDATE', [companyId]);
  const attempt = forget(companyId, uid).catch(() => undefined);
  await waitFor(async () => {
    const { rows: waiting } = await client.query(
      'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pg_backend_pid() = ANY(pg_blocking_pids(pid))',
    );
    return waiting.length > 0;
  });
  api.kill('SIGKILL');
  await Promise.all([api.exit, attempt]);
  await client.query('ROLLBACK');
  await client.end();
  api = await deployment.startApi();
  await waitFor(async () => {
    const { rows: left } = await deployment.database.db.pool.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%change_batches%' AND state <> 'idle' AND pid <> pg_backend_pid()`,
    );
    return left.length === 0;
  });
  // The server may have gone on with the statement that waited; the transaction was never committed.
  expect(await rows(companyId)).toContain(uid);
  expect(await occurrencesOf(deployment.database.db, uid)).toEqual(before);
  expect(await deployment.database.db.prisma.suppression.count({ where: { companyId } })).toBe(0);
  expect(await forget(companyId, uid)).toMatchObject({ status: 200, body: { erased: 1 } });
  await expectForgotten(companyId, uid);
});

test('an export and a full resync know nothing of the record, and marks survive a restore of all', async () => {
  const companyId = newCompany();
  const uid = uidOf(companyId, LATE);
  await deployment.onboard(companyId);
  await deployment.runEnd(companyId);
  const { pool } = deployment.database.db;
  await pool.query('CREATE TABLE public.backup AS SELECT * FROM mirror.employees WHERE company_id = $1', [companyId]);
  await forget(companyId, uid);
  const muster = (...args: string[]) => runMuster(args, deployment.env);
  const folder = mkdtempSync(join(tmpdir(), 'muster-marks-'));
  const { stdout: copy } = await muster('marks', 'export');
  expect(copy).not.toContain(uid);

  // The database as it was before: no marks, no key, and the row.
  await pool.query('DELETE FROM muster.marks WHERE company_id = $1', [companyId]);
  await pool.query('UPDATE muster.lists SET has_marks = false WHERE company_id = $1', [companyId]);
  await pool.query(`INSERT INTO mirror.employees SELECT * FROM public.backup WHERE id = $1`, [uid]);
  await pool.query('DROP TABLE public.backup');
  const file = join(folder, 'marks.json');
  writeFileSync(file, copy);
  expect(await muster('marks', 'restore', file, '--json')).toMatchObject({ code: 0, stderr: '' });
  const applied = await muster('marks', 'apply', '--json');
  expect([applied.code, applied.json()]).toEqual([0, [{ erased: 1 }]]);
  expect((await muster('marks', 'apply', '--json')).json()).toEqual([{ erased: 0 }]);

  await deployment.call('POST', `${path(companyId)}/sync`, { mode: 'full' });
  expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }] });
  await expectForgotten(companyId, uid);
  const output = join(folder, 'employees.ndjson');
  expect((await muster('export', 'employees', '--format', 'ndjson', '--output', output, '--company', companyId)).code).toBe(0);
  const exported = readFileSync(output, 'utf8');
  expect(exported.trim().split('\n')).toHaveLength(EMPLOYEES - 1);
  expect(exported).not.toContain(uid);
});
