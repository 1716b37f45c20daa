import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { IssueModel } from '../../src/api/operation/issues.js';
import type { OverviewModel } from '../../src/api/operation/overview.js';
import type { Manifest } from '../../src/warehouse/export/export-resource.js';
import { runMuster } from '../cli/run-muster.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const RESOURCES = ['departments', 'employees'];
/** Far from the hour at which this runs: no other night begins meanwhile. */
const BEGAN = new Date(Date.now() - 12 * 3_600_000);
const NIGHT = BEGAN.toISOString().slice(0, 10);

let deployment: Deployment;
let workers: TestProcess[] = [];
let folder: string;

beforeAll(async () => {
  deployment = await Deployment.open({
    sandbox: {
      companies: [
        { name: 'Kai og Brygge AS', employees: 70, departments: 4 },
        { name: 'Uten Fullmakt AS', employees: 30, departments: 2 },
      ],
    },
    env: { SYNC_CRON: `0 ${BEGAN.getUTCHours()} * * *`, SYNC_SPREAD_MINUTES: '0' },
  });
  folder = join(deployment.home, 'exports');
  Object.assign(deployment.env, { EXPORT_TO: folder, EXPORT_FORMAT: 'csv' });
  await deployment.startApi();
  workers = [await deployment.startWorker()];
  for (const { companyId } of deployment.sandbox.companies) {
    await deployment.onboard(companyId);
    await deployment.runEnd(companyId);
  }
});
afterAll(() => deployment.close());

const query = (text: string, values: unknown[] = []) => deployment.database.db.pool.query(text, values);
const fileOf = (resource: string) => join(folder, 'test', resource, `${NIGHT}.csv`);
const lastExport = async () => ((await deployment.call('GET', '/api/overview')).body as OverviewModel).last_export;
const exportIssues = async (status: string) =>
  ((await deployment.call('GET', `/api/issues?status=${status}`)).body as { data: IssueModel[] }).data.filter(
    ({ cause }) => cause === 'export_failed',
  );

/** The company's night is now, and nothing was exported yet. */
async function nightOf(companyId: string): Promise<void> {
  await query('DELETE FROM muster.night_exports');
  await query('UPDATE muster.connections SET next_sync_at = now() WHERE company_id = $1', [companyId]);
}

const allWritten = () =>
  waitFor(async () => (await lastExport())?.written === RESOURCES.length && lastExport(), {
    what: 'the exports of the night',
  });

function checkFiles(companies: readonly string[]): void {
  for (const resource of RESOURCES) {
    const file = fileOf(resource);
    const text = readFileSync(file);
    const manifest = JSON.parse(readFileSync(`${file}.manifest.json`, 'utf8')) as Manifest;
    const [, signed = ''] = readFileSync(`${file}.manifest.jws`, 'utf8').split('.');
    expect(JSON.parse(Buffer.from(signed, 'base64url').toString())).toEqual(manifest);
    expect(manifest).toMatchObject({
      file: `${NIGHT}.csv`,
      resource,
      format: 'csv',
      sha256: createHash('sha256').update(text).digest('hex'),
    });
    expect(manifest.rows).toBe(text.toString().split('\r\n').length - 2);
    expect(manifest.lists.map(({ company_id }) => company_id).toSorted()).toEqual([...companies].toSorted());
    expect(readdirSync(join(folder, 'test', resource)).toSorted()).toEqual([
      `${NIGHT}.csv`,
      `${NIGHT}.csv.manifest.json`,
      `${NIGHT}.csv.manifest.jws`,
    ]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  }
}

test('two workers export a night once it is over, each resource once, whoever must authorize again', async () => {
  const [company, lost] = deployment.sandbox.companies.map(({ companyId }) => companyId) as [string, string];
  expect(await lastExport()).toBeNull();
  await query(
    `UPDATE muster.connections SET reauthorization_reason = 'token_refused', next_sync_at = now() WHERE company_id = $1`,
    [lost],
  );
  workers.push(await deployment.startWorker());
  await nightOf(company);
  expect(await allWritten()).toMatchObject({
    night: NIGHT,
    waiting: 0,
    failed: 0,
    problem: null,
    finished_at: expect.any(String),
  });
  const run = await deployment.lastRun(company);
  expect(run).toMatchObject({ trigger: 'nightly', status: 'succeeded' });
  checkFiles([company, lost]);
  // What is exported is what the night has left.
  expect(statSync(fileOf('employees')).mtimeMs).toBeGreaterThan(Date.parse(run.finished_at!));
  const exported = workers.flatMap(({ stderr }) => [...stderr.matchAll(/"resource":"(\w+)".*night exported/g)]);
  expect(exported.map(([, resource]) => resource).toSorted()).toEqual(RESOURCES);
  const { stdout } = await runMuster(['status', '--url', deployment.url], { MUSTER_ADMIN_TOKEN: deployment.adminToken });
  expect(stdout).toMatch(new RegExp(`^last export +${NIGHT}: 2 files by \\S+`, 'm'));
});

test('a folder that cannot be made is an issue that says why, and ends with the file', async () => {
  rmSync(folder, { recursive: true });
  writeFileSync(folder, 'a file where a folder should be');
  const [company] = deployment.sandbox.companies;
  await nightOf(company!.companyId);
  const issues = await waitFor(async () => {
    const found = await exportIssues('ongoing');
    return found.length === RESOURCES.length ? found : undefined;
  });
  expect(issues.map(({ resource }) => resource).toSorted()).toEqual(RESOURCES);
  for (const issue of issues) expect(issue).toMatchObject({ severity: 'action', environment: 'test', companies: 2 });
  expect((await fetch(`${deployment.url}/docs/issues`).then((page) => page.text())).includes('id="export_failed"')).toBe(true);
  await waitFor(async () => (await lastExport())?.failed === RESOURCES.length);
  expect(await lastExport()).toMatchObject({ written: 0, problem: expect.stringContaining('EXPORT_TO') });
  const told = await query(`SELECT count(*)::int AS n FROM muster.notifications WHERE type = 'export_failed'`);
  expect(told.rows).toEqual([{ n: RESOURCES.length }]);

  rmSync(folder);
  // The next attempt would be in a minute.
  await query('UPDATE muster.night_exports SET next_attempt_at = now()');
  await allWritten();
  checkFiles(deployment.sandbox.companies.map(({ companyId }) => companyId));
  await waitFor(async () => (await exportIssues('ongoing')).length === 0);
  expect((await exportIssues('resolved')).length).toBe(RESOURCES.length);
});

/** An export of the night's departments is under way, and waits for the mirror until it is let go. */
async function holdExport(work: () => Promise<void>): Promise<void> {
  const locker = await deployment.database.db.pool.connect();
  try {
    // Exports read the mirror once their file is open.
    await locker.query(
      'BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE mirror.departments IN ACCESS EXCLUSIVE MODE',
    );
    await query('DELETE FROM muster.night_exports');
    await query(
      `INSERT INTO muster.night_exports (night, environment, resource)
       SELECT night, environment, 'departments' FROM muster.nights WHERE environment = 'test' ORDER BY night DESC LIMIT 1`,
    );
    await work();
  } finally {
    await locker.query('ROLLBACK');
    locker.release();
  }
}

const parts = () => {
  const where = join(folder, 'test/departments');
  return existsSync(where) ? readdirSync(where).filter((name) => name.endsWith('.part')) : [];
};

test('a worker that is killed half way leaves nothing under the final name, and another one exports anew', async () => {
  rmSync(folder, { recursive: true });
  await holdExport(async () => {
    const [part] = await waitFor(() => (parts().length > 0 ? parts() : undefined), { what: 'a temporary file' });
    const victim = workers.find(({ pid }) => part!.includes(`-${pid}-`))!;
    victim.kill('SIGKILL');
    await victim.exit;
    workers = workers.filter((worker) => worker !== victim);
    expect(readdirSync(join(folder, 'test/departments'))).toEqual([part]);
  });
  // This ends the claim of the killed worker.
  await query(`UPDATE muster.night_exports SET next_attempt_at = now()`);
  await allWritten();
  checkFiles(deployment.sandbox.companies.map(({ companyId }) => companyId));
  expect(workers[0]!.stderr).toMatch(/"resource":"departments".*night exported/);
  const { rows } = await query(`SELECT attempts FROM muster.night_exports WHERE resource = 'departments'`);
  expect(rows).toEqual([{ attempts: 2 }]);
});

test('a worker that is stopped while it exports gives the export back, uncounted', async () => {
  await holdExport(async () => {
    await waitFor(() => parts().length > 0, { what: 'a temporary file' });
    const [worker] = workers;
    worker!.kill('SIGTERM');
    expect(await worker!.exit).toMatchObject({ code: 0 });
    workers = [];
    expect(parts()).toEqual([]);
    const { rows } = await query(`SELECT attempts FROM muster.night_exports WHERE resource = 'departments'`);
    expect(rows).toEqual([{ attempts: 0 }]);
  });
  workers = [await deployment.startWorker()];
  await allWritten();
  checkFiles(deployment.sandbox.companies.map(({ companyId }) => companyId));
});
