import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { BUILT_IN_CATALOGUE } from '../../src/catalogue/built-in.js';
import { runMuster } from '../cli/run-muster.js';
import { Deployment } from '../process/deployment.js';
import type { TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { dbtIn } from './run-dbt.js';

// The package of `muster dbt init` as a data engineer has it: dbt itself, PostgreSQL, and a mirror of two companies.

/** Their descriptions are the comments that the database has. */
const FACTS = ['companies', 'lists', 'runs', 'walks', 'barriers', 'feed', 'as_of_limits', 'columns'];

interface Described {
  readonly name: string;
  readonly description: string;
  readonly columns: readonly { readonly name: string; readonly description: string }[];
}
interface Properties {
  readonly models?: readonly Described[];
  readonly sources?: readonly { readonly tables: readonly Described[] }[];
}

let dbt: Awaited<ReturnType<typeof dbtIn>>;
let deployment: Deployment;
let processes: TestProcess[];
const folder = mkdtempSync(join(tmpdir(), 'muster-dbt-'));
const dir = join(folder, 'package');

beforeAll(async () => {
  deployment = await Deployment.open({
    sandbox: { companies: ['one', 'two'].map((name) => ({ name, employees: 120, departments: 9 })) },
    catalogue: {
      employees: BUILT_IN_CATALOGUE.employees,
      departments: { ...BUILT_IN_CATALOGUE.departments, references: { managerId: 'employees', 'head.id': 'employees' } },
    },
  });
  processes = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  dbt = await dbtIn(dir, deployment.database.url);
  for (const { companyId } of deployment.sandbox.companies) await deployment.onboard(companyId);
  for (const { companyId } of deployment.sandbox.companies) await deployment.runEnd(companyId);
  await waitFor(async () => {
    const [ofEmployees, ofDepartments] = [await columnsOf('employees'), await columnsOf('departments')];
    return (
      ['email', 'salary', 'department_id'].every((name) => ofEmployees.includes(name)) && ofDepartments.includes('manager_id')
    );
  });
});
afterAll(async () => {
  for (const running of processes) running.kill('SIGTERM');
  await Promise.all(processes.map(({ exit }) => exit));
  await deployment.close();
  rmSync(folder, { recursive: true, force: true });
});

const query = async <Row extends object>(text: string) => (await deployment.database.db.pool.query<Row>(text)).rows;

async function columnsOf(view: string, schema = 'warehouse'): Promise<string[]> {
  const rows = await query<{ name: string }>(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = '${schema}' AND table_name = '${view}'`,
  );
  return rows.map(({ name }) => name);
}

test('is built, is fresh, and has docs', async () => {
  const { code, stdout, stderr } = await runMuster(['dbt', 'init', dir], deployment.env);
  expect(stdout).toContain('of 2 lists');
  expect(stderr).toContain('No test of departments.head.id');
  expect(code).toBe(0);
  const build = await dbt('build');
  expect(build.output).toMatch(/PASS=\d+ WARN=0 ERROR=0/);
  expect(build.code).toBe(0);
  const freshness = await dbt('source', 'freshness');
  expect(freshness).toMatchObject({ code: 0 });
  expect(freshness.output.match(/PASS freshness of muster\./g)).toHaveLength(2);
  expect(await dbt('docs', 'generate')).toMatchObject({ code: 0 });
  const [counted] = await query<{ n: string; companies: string }>(
    'SELECT count(*) AS n, count(DISTINCT company_id) AS companies FROM analytics.stg_muster__employees',
  );
  expect(counted).toEqual({ n: '240', companies: '2' });
});

test('knows which records belong together by the catalogue, and by names that the values confirm', async () => {
  const text = (name: string) => readFileSync(join(dir, 'models/staging', name), 'utf8');
  const [found, declared] = [text('stg_muster__employees.yml'), text('stg_muster__departments.yml')];
  expect(found).toMatch(/to: ref\('stg_muster__departments'\)\n.*field: _key\n.*config:\n.*severity: warn/);
  expect(declared).toMatch(/to: ref\('stg_muster__employees'\)\n.*field: _key\n.*config:\n.*severity: error/);
  expect([found, declared].map((each) => each.match(/relationships/g)?.length)).toEqual([1, 1]);
  const [lost] = await query<{ n: string }>(
    `SELECT count(*) AS n FROM analytics.stg_muster__employees e
     LEFT JOIN analytics.stg_muster__departments d ON d._key = e._department_id_key WHERE d._key IS NULL`,
  );
  expect(lost!.n).toBe('0');
});

test('describes every column of every source and model', async () => {
  for (const file of readdirSync(join(dir, 'models'), { recursive: true, encoding: 'utf8' }).filter((each) =>
    each.endsWith('.yml'),
  )) {
    const { models = [], sources = [] } = parse(readFileSync(join(dir, 'models', file), 'utf8')) as Properties;
    for (const { name, description, columns } of [...models, ...sources.flatMap(({ tables }) => tables)]) {
      const isFact = FACTS.includes(name);
      if (!isFact) expect(description, name).toBeTruthy();
      for (const column of columns) if (!isFact) expect(column.description, `${name}.${column.name}`).toBeTruthy();
    }
  }
  const described = readFileSync(join(dir, 'models/staging/stg_muster__employees.yml'), 'utf8');
  expect(described).toContain('address.city');
});

test('is not written over unless that is asked for', async () => {
  const refused = await runMuster(['dbt', 'init', dir], deployment.env);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') as string });
  const files = readdirSync(join(dir, 'models/staging'));
  expect(await runMuster(['dbt', 'init', dir, '--force'], deployment.env)).toMatchObject({ code: 0 });
  expect(readdirSync(join(dir, 'models/staging'))).toEqual(files);
});

test('has the history of each record, whose current version is the staged record', async () => {
  // The view may have been given another column since the package was written, and this model goes on without it.
  const columns = await columnsOf('muster__employees_history', 'analytics');
  expect(['_key', ...(await columnsOf('employees_history'))]).toEqual(expect.arrayContaining(columns));
  expect(columns).toEqual(expect.arrayContaining(['_key', 'department_id', '_valid_from', '_valid_to', '_is_current', '_op']));

  const { companyId } = deployment.sandbox.companies[0]!;
  const employees = deployment.sandbox.list(companyId, 'employees');
  employees.change(0);
  employees.remove(5);
  expect(await deployment.call('POST', `/api/companies/test/${companyId}/sync`)).toMatchObject({ status: 202 });
  const versions = () =>
    query(
      `SELECT _op AS op, _is_current AS "isCurrent", (_valid_to IS NOT NULL) AS "hasEnded", count(*)::int AS n
       FROM analytics.muster__employees_history GROUP BY 1, 2, 3 ORDER BY 1, 2`,
    );
  await waitFor(async () => (await versions()).length === 4);
  expect(await versions()).toEqual([
    { op: 'delete', isCurrent: false, hasEnded: true, n: 1 },
    { op: 'insert', isCurrent: false, hasEnded: true, n: 2 },
    { op: 'insert', isCurrent: true, hasEnded: false, n: 238 },
    { op: 'update', isCurrent: true, hasEnded: false, n: 1 },
  ]);
  const differing = (one: string, other: string) =>
    query(`SELECT _key, email, salary, department_id FROM ${one} EXCEPT SELECT _key, email, salary, department_id FROM ${other}`);
  const staged = 'analytics.stg_muster__employees';
  const current = '(SELECT * FROM analytics.muster__employees_history WHERE _is_current) h';
  expect(await differing(staged, current)).toEqual([]);
  expect(await differing(current, staged)).toEqual([]);
  expect(await dbt('build')).toMatchObject({ code: 0 });
});

test('is late as soon as one list of many is', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  const change = (when: string) =>
    query(`UPDATE muster.lists SET last_verified_at = ${when} WHERE company_id = '${companyId}' AND resource = 'employees'`);
  await change(`now() - interval '3 days'`);
  const freshness = await dbt('source', 'freshness');
  expect(freshness.code).toBe(1);
  expect(freshness.output).toMatch(/ERROR STALE freshness of muster\.employees/);
  expect(freshness.output).toMatch(/PASS freshness of muster\.departments/);
  expect((await dbt('test', '--select', 'muster_lists_in_time')).code).toBe(1);
  const pause = (paused: boolean) => query(`UPDATE muster.connections SET paused = ${paused} WHERE company_id = '${companyId}'`);
  await pause(true);
  expect((await dbt('source', 'freshness')).code).toBe(0);
  expect((await dbt('test', '--select', 'muster_lists_in_time')).code).toBe(0);
  await pause(false);
  expect((await dbt('source', 'freshness')).code).toBe(1);
  const build = await dbt('build');
  expect(build.code).toBe(1);
  expect(build.output).toMatch(/FAIL 1 muster_lists_in_time__employees/);
  expect(build.output).toMatch(/PASS muster_lists_in_time__departments/);
  await change('now()');
  expect((await dbt('source', 'freshness')).code).toBe(0);
});

test('fails where a list was never proved, from the first, and where it has never been read', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  const list = `company_id = '${companyId}' AND resource = 'departments'`;
  const proved = () => dbt('test', '--select', 'muster_lists_proved');
  await query(`CREATE TABLE public.kept AS SELECT * FROM muster.lists WHERE ${list}`);
  await query(`UPDATE muster.lists SET last_verified_at = NULL, begun_at = now() - interval '1 hour' WHERE ${list}`);
  const freshness = await dbt('source', 'freshness');
  expect(freshness.code).toBe(1);
  expect(freshness.output).toMatch(/ERROR STALE freshness of muster\.departments/);
  expect(freshness.output).toMatch(/PASS freshness of muster\.employees/);
  expect((await dbt('test', '--select', 'muster_lists_in_time')).code).toBe(0);
  const build = await dbt('build');
  expect(build.code).toBe(1);
  expect(build.output).toMatch(/FAIL 1 muster_lists_proved__departments/);
  expect(build.output).toMatch(/PASS muster_lists_proved__employees/);

  await query(`UPDATE muster.lists SET unavailable_since = now() WHERE ${list}`);
  expect((await proved()).code).toBe(0);
  expect((await dbt('source', 'freshness')).code).toBe(0);
  await query(`DELETE FROM muster.lists WHERE ${list}`);
  expect((await proved()).output).toMatch(/FAIL 1 muster_lists_proved__departments/);
  await query(`UPDATE muster.connections SET paused = true`);
  expect((await proved()).code).toBe(0);
  expect((await dbt('source', 'freshness')).code).toBe(0);
  await query(`UPDATE muster.connections SET paused = false`);
  await query(`INSERT INTO muster.lists SELECT * FROM public.kept`);
  await query(`DROP TABLE public.kept`);
  expect((await proved()).code).toBe(0);
});

test('fails where a record stands twice', async () => {
  await query(`ALTER TABLE mirror.departments DROP CONSTRAINT departments_pkey`);
  await query(`INSERT INTO mirror.departments SELECT * FROM mirror.departments LIMIT 1`);
  const { code, output } = await dbt('build');
  expect(code).toBe(1);
  expect(output).toMatch(/unique_stg_muster__departments__key/);
});
