import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NotificationModel } from '../../src/api/operation/notifications.js';
import { Secret } from '../../src/core/secret.js';
import { expectedSignature, Receiver } from '../notifications/receiver.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const SIGNING_SECRET = 'canary-signing-secret-5b09';
const CLIENT_SECRET = 'canary-client-secret-1e77';

let receiver: Receiver;
let deployment: Deployment;
let processes: TestProcess[];
let companyId: string;

beforeAll(async () => {
  receiver = await Receiver.start();
  deployment = await Deployment.open({
    sandbox: { clientSecret: new Secret(CLIENT_SECRET), companies: [{ name: 'Brattskjær AS', employees: 40 }] },
    env: { NOTIFY_WEBHOOK_URL: receiver.url.href, NOTIFY_WEBHOOK_SECRET: SIGNING_SECRET, LOG_LEVEL: 'trace' },
  });
  deployment.env['PUBLIC_URL'] = deployment.url;
  processes = [await deployment.startApi(), await deployment.startWorker()];
  companyId = deployment.sandbox.companies[0]!.companyId;
  await deployment.onboard(companyId);
  await deployment.runEnd(companyId);
});
afterAll(async () => {
  await deployment.close();
  await receiver.goDown();
});

const arrival = (type: string) => waitFor(() => receiver.received.find(({ event }) => event.type === type), { what: type });
async function sync(): Promise<string> {
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  return (await deployment.runEnd(companyId)).status;
}

test('a company that is revoked is told of, with a link that starts it; and that it is well again', async () => {
  deployment.sandbox.revoke(companyId);
  expect(await sync()).toBe('failed');
  const { event } = await arrival('reauthorization_required');
  expect(event).toMatchObject({ environment: 'test', company_id: companyId, company_name: 'Brattskjær AS' });
  const link = await fetch(event.authorize_url, { redirect: 'manual' });
  expect([link.status, link.headers.get('location')]).toEqual([302, expect.stringContaining('/auth/authorize?')]);
  deployment.sandbox.requests.clear();
  const refused = await deployment.call('POST', `/api/companies/test/${companyId}/sync`);
  expect([refused.status, deployment.sandbox.requests.all()]).toEqual([409, []]);
  const shown = (await deployment.call('GET', `/api/companies/test/${companyId}`)).body;
  expect(shown).toMatchObject({ status: 'reauthorization_required', authorize_url: event.authorize_url });

  const refresh_token = deployment.sandbox.issueRefreshToken(companyId).reveal();
  const { status } = await deployment.call('POST', '/api/companies', {
    environment: 'test',
    company_id: companyId,
    refresh_token,
  });
  expect(status).toBe(200);
  await arrival('authorization_restored');
  expect((await deployment.runEnd(companyId)).status).toBe('succeeded');
});

test('runs that are given up, and the first that succeeds', async () => {
  deployment.sandbox.faults.add({ kind: 'status', status: 403 }, { path: '/departments', times: Number.POSITIVE_INFINITY });
  for (let n = 0; n < 2; n += 1) {
    await deployment.call('POST', `/api/companies/test/${companyId}/sync`);
    expect((await deployment.runGivenUp(companyId)).status).toBe('failed');
  }
  const failed = await arrival('run_failed');
  expect(failed.event).toMatchObject({ company_id: companyId, reason: 'walks_failed' });
  expect((await deployment.fetch(new URL(failed.event.admin_url).pathname)).status).toBe(401);
  expect((await deployment.call('GET', new URL(failed.event.admin_url).pathname)).body).toMatchObject({ status: 'failed' });
  deployment.sandbox.faults.clear();
  expect([await sync(), await sync()]).toEqual(['succeeded', 'succeeded']);
  await arrival('run_recovered');
});

test('deletions that are held, once, also when no worker was left to tell it at first', async () => {
  const list = deployment.sandbox.list(companyId, 'employees');
  while (list.size > 20) list.remove(0);
  await receiver.goDown();
  expect([await sync(), await sync()]).toEqual(['succeeded', 'succeeded']);
  const waiting = async () => {
    const { data } = (await deployment.call('GET', '/api/notifications?type=deletions_held')).body as {
      data: NotificationModel[];
    };
    return data.length === 1 && data[0]!.last_error?.code === 'unreachable' ? data[0] : undefined;
  };
  const notification = await waitFor(waiting, { what: 'the failed attempt' });
  expect(notification).toMatchObject({ status: 'pending', resource: 'employees', count: 20 });
  processes[1]!.kill('SIGKILL');
  await receiver.comeBack();
  processes.push(await deployment.startWorker());
  const { event } = await arrival('deletions_held');
  expect(event).toMatchObject({ id: notification.id, resource: 'employees', count: 20 });
});

test('each was told once, signed, with nothing secret in it, and all is measured', async () => {
  await waitFor(async () => !(await deployment.raw('/api/notifications')).includes('"pending"'));
  expect(receiver.received.map(({ event }) => event.type)).toEqual([
    'reauthorization_required',
    'authorization_restored',
    'run_failed',
    'run_recovered',
    'deletions_held',
  ]);
  const secrets = [SIGNING_SECRET, CLIENT_SECRET, deployment.adminToken, 'access_token', 'refresh_token'];
  for (const { body, headers } of receiver.received) {
    const [, seconds, hex] = /^t=(\d+),v1=(\w+)$/.exec(String(headers['muster-signature']))!;
    expect(hex).toBe(expectedSignature(body, SIGNING_SECRET, seconds!));
    for (const secret of secrets) expect(body + JSON.stringify(headers)).not.toContain(secret);
  }
  await processes[2]!.waitForOutput(/notification delivered/);
  const logs = processes.map(({ stdout, stderr }) => stdout + stderr).join('');
  for (const secret of [SIGNING_SECRET, 'canary-of-the-address', receiver.received[0]!.event.authorize_url.split('/').at(-1)])
    expect(logs.includes(secret) ? secret : undefined).toBeUndefined();
  const metrics = await deployment.raw('/metrics');
  for (const line of [
    'muster_companies{status="active"} 1',
    'muster_companies_last_run{status="succeeded"} 1',
    'muster_runs{status="running"} 0',
    'muster_tokens_overdue 0',
    'muster_holds_open 1',
    'muster_notifications{status="pending"} 0',
    'muster_notifications{status="failed"} 0',
    'muster_queue_waiting{queue="runs"} 0',
  ])
    expect(metrics).toContain(line);
  expect(metrics).toMatch(/^muster_oldest_verified_seconds \d/m);
});
