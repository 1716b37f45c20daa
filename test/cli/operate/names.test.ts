import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN, writeChanges } from '../../api/admin-fixture.js';
import { MUSTER, onTerminal, runMuster } from '../run-muster.js';

// Companies and lists as people name them.

let admin: AdminFixture;
let nordic: CompanyKey;
let nordicTwin: CompanyKey;
let south: CompanyKey;

beforeAll(async () => {
  admin = await startAdmin();
  nordic = await addNamed('Nordic Fish', { companyId: 'aaaa1111-0000-4000-8000-000000000001' });
  nordicTwin = await addNamed('Nordic Fish and Ships', { companyId: 'aaaa1111-0000-4000-8000-000000000002' });
  south = await addNamed('Süd & Söhne', { environment: 'production' });
  const inBoth = randomUUID();
  await addNamed('Both Ways', { companyId: inBoth });
  await addNamed('Both Ways', { companyId: inBoth, environment: 'production' });
  await writeChanges(admin.db, nordic, [{ id: 'a' }]);
});
afterAll(() => admin.stop());

async function addNamed(name: string, key: Partial<CompanyKey>): Promise<CompanyKey> {
  const company = await admin.addCompany(key);
  await admin.db.prisma.company.updateMany({ where: { ...company }, data: { name } });
  return company;
}

const operate = (...args: string[]) => runMuster([...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN });

describe('a company', () => {
  test.each([
    ['its whole name, where others contain it', 'nordic fish'],
    ['its id without an environment', 'AAAA1111-0000-4000-8000-000000000001'],
  ])('is found by %s', async (_what, company) => {
    const { code, stdout } = await operate('companies', '--company', company);
    expect(code).toBe(0);
    expect(stdout).toContain(nordic.companyId);
    expect(stdout).not.toContain(nordicTwin.companyId);
  });

  test.each(['ordic Fish', 'aaaa1111', 'aaaa1111-0000-4000-8000-00000000000'])('is not guessed: %s', async (company) => {
    const { code, stdout, stderr } = await operate('companies', '--company', company);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('may mean 2 companies: give more of the name, or the company_id.');
    for (const { companyId } of [nordic, nordicTwin]) expect(stderr).toContain(`  test  ${companyId}  Nordic Fish`);
  });

  test('is found in its environment, for commands that act and for lists', async () => {
    expect((await operate('pause', '--company', 'Süd', '--json')).json()).toMatchObject([
      { environment: 'production', company_id: south.companyId, status: 'paused' },
    ]);
    const audited = (await operate('audit', '--company', 'söhne', '--json')).json();
    expect(audited).toMatchObject([{ action: 'company.pause', company_id: south.companyId }]);
    expect((await operate('resume', '--company', south.companyId, '--json')).json()).toMatchObject([{ status: 'active' }]);
  });

  test('that is in both environments needs one, but not in a list', async () => {
    const { code, stderr } = await operate('pause', '--company', 'Both Ways');
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('"Both Ways" is in both environments: name one with --environment.'),
    ]);
    for (const list of ['runs', 'holds']) expect((await operate(list, '--company', 'Both Ways')).code).toBe(0);
    expect((await operate('pause', '--company', 'both', '--environment', 'test', '--json')).json()).toMatchObject([
      { environment: 'test', status: 'paused' },
    ]);
  });

  test('that nothing matches is said to be missing', async () => {
    const { code, stdout, stderr } = await operate('sync', '--company', 'Western', '--environment', 'test');
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^muster: No company in test has "Western" in its name, or at the beginning of its company_id/);
  });

  test('may be removed already, and is found in lists by its id', async () => {
    const gone = await addNamed('Gone', {});
    await admin.call('DELETE', `/api/companies/test/${gone.companyId}`);
    expect((await operate('audit', '--company', gone.companyId, '--json')).json()).toMatchObject([
      { company_id: gone.companyId },
    ]);
  });
});

describe('a list', () => {
  test.each([
    ['changes', '--resource', 'employes'],
    ['barriers', '--resource', 'Employees'],
    ['certificates', '--resource', 'employes'],
    ['rejected', '--resource', 'employes'],
    ['companies', '--resource', 'employes'],
    ['sync', '--company', 'nordic fish', '--resources', 'departments,employes'],
    ['verify', 'test', 'nordic fish', '--resource', 'employes'],
    ['rekey', '--company', 'nordic fish', '--resource', 'employes'],
    ['forget', '--company', 'nordic fish', '--resource', 'employes'],
    ['records', '--company', 'nordic fish', '--resource', 'employes'],
    ['schema', 'employes'],
  ])('that is unknown is refused by %s %s %s %s', async (...args) => {
    const { code, stdout, stderr } = await operate(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      /^muster: There is no list "[Ee]mploye{1,2}s"\. Did you mean employees\? There are: employees, departments\.\n$/,
    );
  });

  test('that nothing is like has no suggestion', async () => {
    const { stderr } = await operate('changes', '--resource', 'payslips_of_march');
    expect(stderr).toBe('muster: There is no list "payslips_of_march". There are: employees, departments.\n');
  });

  test('that the catalogue has no more is still read', async () => {
    await admin.db.prisma.schemaResource.create({ data: { resource: 'shifts' } });
    expect((await operate('changes', '--resource', 'shifts')).code).toBe(0);
    expect((await admin.call('GET', '/api/resources')).json).toEqual({
      data: [
        { resource: 'employees', in_catalogue: true },
        { resource: 'departments', in_catalogue: true },
        { resource: 'shifts', in_catalogue: false },
      ],
    });
  });
});

describe('an empty list', () => {
  test.each([
    [['runs', '--status', 'failed'], 'No runs match.\n'],
    [['runs', '--company', 'aaaa1111-0000-4000-8000-000000000001'], 'No runs match.\n'],
    [['holds'], 'There are no holds.\n'],
    [['holds', '--cause', 'grant'], 'No holds match.\n'],
    [['companies', '--search', 'nobody of this name'], 'No companies match.\n'],
    [['changes', '--after', '1'], 'No changes match.\n'],
    [['changes', '--resource', 'departments'], 'No changes match.\n'],
  ])('says so to people, and nothing to programs: %j', async (args, said) => {
    expect(await operate(...args)).toMatchObject({ code: 0, stdout: '', stderr: said });
    expect(await operate(...args, '--json')).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });
});

describe('tables', () => {
  const withColumns = (columns: string, ...args: string[]) =>
    runMuster([...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN, COLUMNS: columns });

  test('are as wide as COLUMNS says, with names in place of ids, and whole with --wide or into a pipe', async () => {
    const fitted = await withColumns('80', 'companies');
    for (const line of fitted.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect(fitted.stdout).toContain('Nordic Fish and Ships');
    expect(fitted.stdout).not.toContain(nordic.companyId);
    for (const whole of [await operate('companies'), await withColumns('80', 'companies', '--wide')]) {
      expect(whole.stdout).toMatch(new RegExp(`^test +${nordic.companyId} +Nordic Fish +active`, 'm'));
      expect(whole.stdout).toContain('NEXT SYNC');
    }
  });

  test('have the width and the colours of a terminal, unless NO_COLOR is set', async () => {
    const command = (env: string) =>
      `stty cols 80; ${env} MUSTER_ADMIN_TOKEN=${TOKEN} ${process.execPath} ${MUSTER} companies --url ${admin.url}`;
    const inColour = await onTerminal(command(''));
    expect(inColour).toContain('\u001b[1mCOMPANY\u001b[22m');
    expect(inColour).toContain('\u001b[32mactive\u001b[39m');
    const plain = await onTerminal(command('NO_COLOR=1'));
    expect(plain).not.toContain('\u001b');
    for (const line of plain.split('\r\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  test('have colours in a pipe where FORCE_COLOR is set, and lines for programs never', async () => {
    const forced = { MUSTER_ADMIN_TOKEN: TOKEN, FORCE_COLOR: '1' };
    expect((await runMuster(['companies', '--url', admin.url], forced)).stdout).toContain('\u001b[1mCOMPANY');
    expect((await runMuster(['companies', '--url', admin.url, '--json'], forced)).stdout).not.toContain('\u001b');
  });
});
