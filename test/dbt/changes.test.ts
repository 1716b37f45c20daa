import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { removeOldChanges } from '../../src/db/tables/change-batches.js';
import { runMuster } from '../cli/run-muster.js';
import { Deployment } from '../process/deployment.js';
import type { TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { columnsOf } from '../warehouse/warehouse-fixture.js';
import { dbtIn } from './run-dbt.js';

// The incremental models of the package: changes that are loaded night by night, and the lists that are folded from them.

let deployment: Deployment;
let processes: TestProcess[];
let dbt: Awaited<ReturnType<typeof dbtIn>>;
const folder = mkdtempSync(join(tmpdir(), 'muster-dbt-changes-'));
const dir = join(folder, 'package');
const MODELS = ['--select', 'path:models/changes', 'path:models/proved', 'muster_records_as_proved'];

beforeAll(async () => {
  deployment = await Deployment.open({
    sandbox: { companies: ['one', 'two'].map((name) => ({ name, employees: 120, departments: 9 })) },
  });
  processes = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  for (const { companyId } of deployment.sandbox.companies) await deployment.onboard(companyId);
  for (const { companyId } of deployment.sandbox.companies) await deployment.runEnd(companyId);
  await waitFor(async () => (await columnsOf(deployment.database.db, 'employees')).includes('salary'));
  await barriersAt(4);
  await runMuster(['dbt', 'init', dir], deployment.env);
  dbt = await dbtIn(dir, deployment.database.url);
});
afterAll(async () => {
  for (const running of processes) running.kill('SIGTERM');
  await Promise.all(processes.map(({ exit }) => exit));
  await deployment.close();
  rmSync(folder, { recursive: true, force: true });
});

const query = async <Row extends object>(text: string) => (await deployment.database.db.pool.query<Row>(text)).rows;

async function count(of: string): Promise<number> {
  const [row] = await query<{ n: string }>(`SELECT count(*) AS n FROM ${of}`);
  return Number(row!.n);
}

const barriersAt = (n: number) => waitFor(async () => (await count('warehouse.barriers')) === n);

async function sync(companyId: string): Promise<void> {
  const before = await count('warehouse.barriers');
  expect(await deployment.call('POST', `/api/companies/test/${companyId}/sync`)).toMatchObject({ status: 202 });
  await barriersAt(before + 2);
}

/** The rows that one of the two relations has and the other has not. */
async function differing(one: string, other: string): Promise<object[]> {
  const of = (relation: string) => `SELECT company_id, id, email, salary, department_id FROM ${relation}`;
  return query(`(${of(one)} EXCEPT ${of(other)}) UNION ALL (${of(other)} EXCEPT ${of(one)})`);
}

const CHANGES = 'analytics.muster__employees_changes';
const PROVED = 'analytics.muster__employees_proved';

test('are the changes and the lists as they were proved', async () => {
  const build = await dbt('build', ...MODELS);
  expect(build.output).toMatch(/PASS=\d+ WARN=0 ERROR=0/);
  expect(build.code).toBe(0);
  expect(await count(CHANGES)).toBe(240);
  expect(await differing(PROVED, 'warehouse.employees')).toEqual([]);
});

test('load what is new alone, and no change twice', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  const employees = deployment.sandbox.list(companyId, 'employees');
  await query(`UPDATE ${CHANGES} SET _rest = '{"loaded": "before"}'`);
  employees.change(0);
  employees.remove(5);
  await sync(companyId);
  expect(await dbt('build', ...MODELS)).toMatchObject({ code: 0 });
  expect(await count(CHANGES)).toBe(242);
  expect(await count(`${CHANGES} WHERE _rest IS NULL`)).toBe(2);
  expect(await dbt('build', ...MODELS)).toMatchObject({ code: 0 });
  expect(await count(CHANGES)).toBe(242);
  expect(await count(PROVED)).toBe(239);
  expect(await differing(PROVED, 'warehouse.employees')).toEqual([]);
});

test('show the list before a walk that is not proved', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  await query(`CREATE TABLE public.before AS SELECT * FROM warehouse.employees`);
  deployment.sandbox.list(companyId, 'employees').change(1);
  await sync(companyId);
  const newest = `number = (SELECT max(number) FROM muster.barriers WHERE resource = 'employees')`;
  await query(`CREATE TABLE public.barrier AS SELECT * FROM muster.barriers WHERE ${newest}`);
  await query(`DELETE FROM muster.barriers WHERE ${newest}`);
  expect(await dbt('build', ...MODELS)).toMatchObject({ code: 0 });
  expect(await count(CHANGES)).toBe(243);
  expect(await differing(PROVED, 'public.before')).toEqual([]);
  await query(`INSERT INTO muster.barriers OVERRIDING SYSTEM VALUE SELECT * FROM public.barrier`);
  expect(await dbt('build', ...MODELS)).toMatchObject({ code: 0 });
  expect(await differing(PROVED, 'warehouse.employees')).toEqual([]);
});

test('fail by name where they are not as many as were proved', async () => {
  // The other company's employees were never changed: no later change replaces the one that is lost.
  const { companyId } = deployment.sandbox.companies[1]!;
  await query(`DELETE FROM ${CHANGES} WHERE _seq = (SELECT min(_seq) FROM ${CHANGES} WHERE company_id = '${companyId}')`);
  const { code, output } = await dbt('build', ...MODELS);
  expect(code).toBe(1);
  expect(output).toMatch(/FAIL 1 muster_records_as_proved__employees/);
  expect(output).toMatch(/PASS muster_records_as_proved__departments/);
  expect(await dbt('build', '--full-refresh', ...MODELS)).toMatchObject({ code: 0 });
});

test('ask for a full refresh when the feed is another one, and mix no two', async () => {
  const before = await count(CHANGES);
  await query(`UPDATE muster.change_sequence SET feed_id = gen_random_uuid()`);
  const { code, output } = await dbt('build', ...MODELS);
  expect(code).toBe(1);
  expect(output).toMatch(
    /muster__employees_changes is loaded from feed [^\n]*dbt build --full-refresh --select muster__employees_changes\+/s,
  );
  expect(await count(CHANGES)).toBe(before);
  expect((await dbt('run', '--select', 'muster__employees_proved')).code).toBe(1);
  expect(await dbt('build', '--full-refresh', ...MODELS)).toMatchObject({ code: 0 });
  expect(await dbt('build', ...MODELS)).toMatchObject({ code: 0 });
});

test('ask for a full refresh when changes are gone unseen, and go on from what the mirror has', async () => {
  const { companyId } = deployment.sandbox.companies[1]!;
  const employees = deployment.sandbox.list(companyId, 'employees');
  employees.change(2);
  await sync(companyId);
  await query(`UPDATE muster.change_batches SET changed_at = now() - interval '40 days'`);
  await removeOldChanges(deployment.database.db, 30);
  employees.change(3);
  employees.remove(7);
  await sync(companyId);
  const { code, output } = await dbt('build', ...MODELS);
  expect(code).toBe(1);
  expect(output).toMatch(/muster__employees_changes is loaded up to change \d+, and the feed begins with \d+ now/);
  expect(await dbt('build', '--full-refresh', ...MODELS)).toMatchObject({ code: 0 });
  expect(await count(`${CHANGES} WHERE _seq > 0`)).toBe(2);
  expect(await differing(PROVED, 'warehouse.employees')).toEqual([]);
  employees.change(4);
  await sync(companyId);
  expect(await dbt('build', ...MODELS)).toMatchObject({ code: 0 });
  expect(await differing(PROVED, 'warehouse.employees')).toEqual([]);
});
