import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.js';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { waitFor } from '../../support/wait-for.js';
import { ENTRIES, endpointsOf } from '../../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../../walks/sync-harness.js';
import { runMuster } from '../run-muster.js';

// The commands that look into a company's records: forget, diff and verify. The runs that they ask for are worked on by the test.

const { employees } = ENTRIES;
let admin: AdminFixture;
let sandbox: Sandbox;
let harness: SyncHarness;
let company: CompanyKey;

beforeAll(async () => {
  admin = await startAdmin();
  sandbox = await startSandbox({ companies: [{ name: 'Records', employees: 30 }] });
  harness = syncHarness(admin.db, sandbox, endpointsOf({ employees }));
  company = await harness.onboard(sandbox.companies[0]!.companyId);
});
afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await admin.stop();
});

const operate = (args: readonly string[], input?: string) =>
  runMuster([...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN }, input);
const list = () => sandbox.list(company.companyId, 'employees');
const uidOf = (at: number) => (JSON.parse(list().texts()[at]!) as { uid: string }).uid;
const forget = (args: readonly string[], input?: string) =>
  operate(
    ['forget', '--environment', company.environment, '--company', company.companyId, '--resource', 'employees', '--yes', ...args],
    input,
  );

/** `muster verify --wait`, and a worker for the run that it asks for. */
async function verify(...args: string[]) {
  const asked = operate(['verify', company.environment, company.companyId, '--resource', 'employees', '--wait', ...args]);
  const id = await waitFor(async () => {
    const [run] = await admin.db.prisma.run.findMany({ where: { ...company, status: 'queued', trigger: 'verify' } });
    return run?.id;
  });
  await harness.work(id);
  return asked;
}

test('diff says what a night has changed: a line for each record, and one for each member', async () => {
  const first = await harness.sync(company, { mode: 'full' });
  const [one, gone] = [uidOf(0), uidOf(29)];
  list().change(0, list().texts()[0]!.replace('{', '{"shoe":38.50,'));
  list().remove(29);
  const second = await harness.sync(company, { mode: 'full' });

  const { code, stdout } = await operate(['diff', second.id]);
  expect(code).toBe(0);
  expect(stdout.split('\n')).toEqual(expect.arrayContaining([`update ${one}`, '  shoe: none -> 38.50', `delete ${gone}`]));
  const json = (await operate(['diff', second.id, first.id, '--resource', 'employees', '--json'])).json();
  expect(json.map(({ id, op }) => `${op} ${id}`).toSorted()).toEqual([`delete ${gone}`, `update ${one}`]);
  expect((await operate(['diff', second.id, '--limit', '1', '--json'])).json()).toHaveLength(1);
  const backwards = await operate(['diff', first.id, second.id]);
  expect([backwards.code, backwards.stderr]).toEqual([2, expect.stringContaining('is not an earlier run of the same company')]);
});

test('verify --wait is 0 for a mirror without faults, and 1 with each fault that it found', async () => {
  const whole = await verify();
  expect([whole.code, whole.stderr]).toEqual([
    0,
    expect.stringMatching(/^Waiting for run [\w-]+; \^C ends only the waiting\.\n$/),
  ]);
  await admin.db.pool.query(`UPDATE mirror.employees SET data = data || '{"shoe": 1}' WHERE company_id = $1 AND id = $2`, [
    company.companyId,
    uidOf(3),
  ]);
  const faulty = await verify('--json');
  expect([faulty.code, faulty.stderr]).toEqual([
    1,
    expect.stringContaining('The mirror has 1 fault: a full resync repairs them.') as string,
  ]);
  expect(faulty.json()).toMatchObject([{ kind: 'verify', walks: [{ verify: { different: 1, sample: [{ id: uidOf(3) }] } }] }]);
  await harness.sync(company, { mode: 'full' });
  expect((await verify()).code).toBe(0);
});

test('verify without --wait only asks, and names what it lacks', async () => {
  const { code, json } = await operate(['verify', company.environment, company.companyId, '--resource', 'employees', '--json']);
  expect(code).toBe(0);
  expect(json()).toMatchObject([{ kind: 'verify', status: 'queued' }]);
  await harness.work(json()[0].id);
  for (const [args, said] of [
    [['verify'], 'Name the company, with its environment'],
    [['verify', 'test', 'Nobody Ltd'], 'No company in test has "Nobody Ltd" in its name'],
  ] as const) {
    const refused = await operate(args);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(said)]);
  }
});

test('forget takes the id from standard input, and lets the record in again with --lift', async () => {
  const uid = uidOf(7);
  const rows = () => admin.db.prisma.employee.count({ where: { ...company, id: uid } });
  const forgotten = await forget(['--json'], `${uid}\n`);
  expect([forgotten.code, forgotten.json()]).toEqual([0, [{ erased: 1 }]]);
  await harness.sync(company, { mode: 'full' });
  expect(await rows()).toBe(0);
  expect((await forget(['--lift', '--json'], uid)).json()).toEqual([{ lifted: 'true' }]);
  await harness.sync(company, { mode: 'full' });
  expect(await rows()).toBe(1);
  for (const input of ['', 'one\ntwo\n']) {
    const refused = await forget([], input);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('Give one id on standard input')]);
  }
  expect(admin.log()).not.toContain(uid);
});

test('forget says of an unknown id that nothing was found, names one that is like it, and exits 1', async () => {
  const uid = uidOf(8);
  const unknown = await forget([], ` ${uid.toUpperCase()}`);
  expect([unknown.code, unknown.stdout]).toEqual([1, '']);
  expect(unknown.stderr).toContain(
    `Nothing was found in employees with this id; the id is kept out from now on. Did you mean "${uid}"?`,
  );
  const json = await forget(['--json'], 'nobody-at-all');
  expect([json.code, json.json()]).toEqual([1, [{ erased: 0, found: false }]]);
});

test('records finds a person by name or number, and shows one with its history', async () => {
  const uid = uidOf(9);
  const of = ['records', '--environment', company.environment, '--company', company.companyId];
  const { code, stdout } = await operate([...of, '--resource', 'employees', uid]);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(new RegExp(`^LABEL +RESOURCE +ID\\n.* employees +${uid}\\n$`)) as string,
  ]);
  expect((await operate([...of, '-', '--json'], `${uid}\n`)).json()).toMatchObject([{ resource: 'employees', id: uid }]);
  const shown = await operate([...of, '--resource', 'employees', '--id', uid]);
  expect(shown.stdout).toContain(`(employees ${uid}): living`);
  expect(shown.stdout).toMatch(/insert, number \d+ of the feed, run /);
  expect((await operate([...of, '--resource', 'employees', '--id', uid, '--json'])).json()).toMatchObject([
    { id: uid, state: 'living' },
  ]);
  const none = await operate([...of, 'nobody like this']);
  expect([none.code, none.stdout, none.stderr]).toEqual([0, '', 'No living record matches.\n']);
  const unknown = await operate([...of, '--resource', 'employees', '--id', uid.toUpperCase()]);
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining(`Did you mean "${uid}"?`)]);
  const unnamed = await operate([...of, '--id', uid]);
  expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining('--resource')]);
});

test('verify says of a list that was never proved that there is nothing to hold it against, and counts no faults', async () => {
  await admin.db.prisma.list.updateMany({ where: company, data: { lastVerifiedAt: null, verifiedWalkId: null } });
  const { code, stdout } = await verify();
  expect(code).toBe(0);
  expect(stdout).toContain('employees: never proved, so there is no proof to compare with.');
  expect(stdout).toMatch(/^employees +succeeded +\d+ +- +- +- +-$/m);
});
