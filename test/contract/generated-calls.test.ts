import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import type { TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { type Answered, installSchemathesis, sendGeneratedCalls } from './schemathesis.js';

// Calls that nobody thought of, right and wrong ones, to every operation of the document: no answer is a failure, and each is as the document
// has it, whatever role the token has.

const NAMES = ['synced', 'paused', 'revoked', 'removed', 'approved', 'rejected', 'held', 'unconnected'] as const;

let deployment: Deployment;
let processes: TestProcess[];
let roles: { readonly role: string; readonly token: string }[];

beforeAll(async () => {
  await installSchemathesis();
  deployment = await Deployment.open({
    sandbox: { companies: NAMES.map((name) => ({ name, employees: 120 })) },
    // Nobody listens there: notifications are written down, and wait.
    env: { NOTIFY_WEBHOOK_URL: 'http://127.0.0.1:9/', NOTIFY_WEBHOOK_SECRET: 'a-secret-of-the-contract-test-e7' },
  });
  processes = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  roles = await tokensOfRoles();
  await furnish();
});
afterAll(async () => {
  for (const running of processes) running.kill('SIGTERM');
  await Promise.all(processes.map(({ exit }) => exit));
  await deployment.close();
});

/** A token of every role that the API knows. */
async function tokensOfRoles(): Promise<typeof roles> {
  const admin = { role: 'admin', token: deployment.adminToken };
  const made = ['viewer', 'operator'].map(async (role) => {
    const { body } = await deployment.call('POST', '/api/tokens', { name: `contract ${role}`, role });
    return { role, token: (body as { token: string }).token };
  });
  return [...(await Promise.all(made)), admin];
}

const idOf = (name: (typeof NAMES)[number]) => deployment.sandbox.companies[NAMES.indexOf(name)]!.companyId;

/** Something of everything that the API shows. */
async function furnish(): Promise<void> {
  const { sandbox } = deployment;
  const sync = async (companyId: string) => {
    await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
    return deployment.runEnd(companyId);
  };
  for (const name of NAMES) if (name !== 'unconnected') await deployment.onboard(idOf(name));
  for (const name of NAMES) if (name !== 'unconnected') await deployment.runEnd(idOf(name));
  for (const name of ['approved', 'rejected', 'held'] as const) {
    sandbox.list(idOf(name), 'employees').remove(0, 110);
    expect(await sync(idOf(name))).toMatchObject({ status: 'succeeded' });
  }
  // The next walk of a list replaces its hold: paused, these companies have none.
  for (const name of ['paused', 'approved', 'rejected', 'held'] as const)
    await deployment.call('POST', `/api/companies/test/${idOf(name)}/pause`);
  sandbox.revoke(idOf('revoked'));
  expect(await sync(idOf('revoked'))).toMatchObject({ status: 'failed' });
  // The issue of the revoked company.
  await waitFor(async () => (await idsAt('/api/issues?status=ongoing')).length > 0);
  await deployment.database.db.pool.query(`
    INSERT INTO muster.quarantined_tokens (environment, company_id, refresh_token, link_id)
    SELECT 'test', gen_random_uuid(), 'sealed', gen_random_uuid() FROM generate_series(1, 20)`);
}

/** The id of a named token that nobody uses. */
async function spareToken(): Promise<string> {
  const { body } = await deployment.call('POST', '/api/tokens', { name: `spare ${randomUUID()}`, role: 'viewer' });
  return (body as { id: string }).id;
}

async function listAt(path: string): Promise<{ id: string; company_id?: string }[]> {
  const { body } = await deployment.call('GET', path);
  return (body as { data: { id: string; company_id?: string }[] }).data;
}

const idsAt = async (path: string) => (await listAt(path)).map(({ id }) => id);

/** The ids of what is there, for the calls that take one. */
async function known(): Promise<Record<string, string[]>> {
  const holds = await listAt('/api/holds?status=open');
  const ongoing = await idsAt('/api/issues?status=ongoing');
  const holdOf = (name: 'approved' | 'rejected' | 'held') =>
    holds.filter(({ company_id }) => company_id === idOf(name)).map(({ id }) => id);
  const companies = [idOf('synced'), idOf('paused'), idOf('revoked')];
  return {
    environment: ['test', 'test'],
    resource: ['employees', 'departments'],
    company_id: companies,
    'removeCompany.company_id': [idOf('removed')],
    'onboardCompany.company_id': [idOf('unconnected'), idOf('unconnected'), idOf('synced')],
    refresh_token: [1, 2, 3].map(() => deployment.sandbox.issueRefreshToken(idOf('unconnected')).reveal()),
    id: await idsAt('/api/runs?limit=10'),
    // The stream of any other would not end.
    'followRun.id': await idsAt('/api/runs?status=succeeded&limit=10'),
    'showHold.id': holdOf('held'),
    'listHoldRows.id': holdOf('held'),
    'approveHold.id': holdOf('approved'),
    'rejectHold.id': holdOf('rejected'),
    'redeliverNotification.id': await idsAt('/api/notifications?limit=10'),
    'showIssue.id': await idsAt('/api/issues?limit=10'),
    'listIssueCompanies.id': ongoing,
    'snoozeIssue.id': ongoing,
    'unsnoozeIssue.id': ongoing,
    // An issue is snoozed for a month at most, which no generated time hits.
    'snoozeIssue.until': [new Date(Date.now() + 86_400_000).toISOString()],
    'deleteToken.id': [await spareToken()],
    'deleteQuarantinedToken.id': await idsAt('/api/quarantined-tokens?limit=10'),
  };
}

test('every generated call of every role is answered as the document has it', async () => {
  const answered: Answered[] = [];
  // Once a database is detached, little else can be done with it.
  for (const option of ['--exclude-operation-id', '--include-operation-id'])
    for (const { token } of roles)
      answered.push(
        ...(await sendGeneratedCalls({
          url: deployment.url,
          token,
          known: await known(),
          filter: [option, 'detachInstallation'],
        })),
      );
  // Calls that are all refused would show little.
  expect(await neverDone(answered)).toEqual([]);
  // Whatever was asked for, nothing fell over.
  expect((await deployment.fetch('/readyz')).status).toBe(200);
  for (const running of processes) expect(running.stderr).not.toContain('A request failed');
});

/** The operations of the document of which no call was answered with success. */
async function neverDone(answered: readonly Answered[]): Promise<string[]> {
  const { paths } = (await deployment.call('GET', '/api/openapi.json')).body as { paths: Record<string, object> };
  return Object.entries(paths).flatMap(([template, methods]) => {
    const pattern = new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
    const done = answered.filter(({ path, status }) => status < 300 && pattern.test(path)).map(({ method }) => method);
    return Object.keys(methods).flatMap((method) => (done.includes(method) ? [] : [`${method} ${template}`]));
  });
}
