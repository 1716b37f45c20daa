import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { NotificationModel } from '../../src/api/operation/notifications.js';
import type { OverviewModel } from '../../src/api/operation/overview.js';
import { answer } from '../notifications/receiver.js';
import { waitFor } from './wait-for.js';
import { WatchedDeployment } from './watched-deployment.js';

let watched: WatchedDeployment;
/** Ids of the events that were taken, each as often as it was. */
let taken: string[];

beforeAll(async () => {
  watched = await WatchedDeployment.open();
});
beforeEach(() => {
  taken = [];
});
afterAll(() => watched.close());

/** The webhook works from now on. */
function takeAll(): void {
  watched.receiver.conduct = (response, received) => {
    taken.push(String(received.event.id));
    answer(204)(response, received);
  };
}

async function notifications(): Promise<NotificationModel[]> {
  return ((await watched.deployment.call('GET', '/api/notifications?limit=100')).body as { data: NotificationModel[] }).data;
}

/** Resolves when each of the notifications is of one of these statuses and has this last error. */
function all(statuses: readonly string[], lastError: object | null): Promise<NotificationModel[]> {
  return waitFor(
    async () => {
      const found = await notifications();
      const isDone = ({ status, last_error }: NotificationModel) =>
        statuses.includes(status) && JSON.stringify(last_error) === JSON.stringify(lastError);
      return found.length > 0 && found.every(isDone) ? found : undefined;
    },
    { what: `all notifications to be ${statuses.join(' or ')}` },
  );
}

test('a webhook that answers 500 is an issue, until it takes what is sent again', async () => {
  const { deployment, companyId, receiver } = watched;
  receiver.conduct = answer(500);
  deployment.sandbox.revoke(companyId);
  expect(await watched.sync()).toBe('failed');
  for (let n = 0; n < 2; n += 1) expect((await watched.command('notifications', 'test')).code).toBe(0);
  // The issue opens once the webhook has failed for half a minute.
  await waitFor(async () => {
    const { rowCount } = await deployment.database.db.pool.query(
      `UPDATE muster.webhook SET failing_since = failing_since - interval '1 minute' WHERE failing_since IS NOT NULL`,
    );
    return rowCount === 1;
  });
  expect(await watched.issue('webhook_failing', 'ongoing')).toMatchObject({
    environment: 'test',
    severity: 'action',
    companies: 1,
  });
  const sent = await all(['pending'], { code: 'answered', status: 500 });
  expect(sent.map(({ type }) => type).toSorted()).toEqual(['reauthorization_required', 'test', 'test']);
  expect((await watched.command('status')).stdout).toMatch(
    /^webhook +takes nothing since .* `muster notifications redeliver-all`$/m,
  );
  expect((await watched.command('doctor')).stdout).toMatch(
    /^problem +webhook +the webhook has taken nothing for \S.* \(answered 500\), and 3 notifications wait or failed$/m,
  );

  takeAll();
  expect((await watched.command('notifications', 'redeliver-all')).stdout).toMatch(/^SENT AGAIN\s+[1-3]$/m);
  await all(['delivered'], null);
  expect(taken.toSorted()).toEqual(sent.map(({ id }) => id).toSorted());
  await watched.issue('webhook_failing', 'resolved');
  expect((await watched.command('status')).stdout).not.toMatch(/^webhook/m);
  expect((await watched.command('doctor')).stdout).toMatch(
    /^ok +webhook +no delivery has failed since the last one that was taken$/m,
  );
});

test('what was given up goes out once by POST /api/notifications/redeliver', async () => {
  const { deployment, receiver } = watched;
  receiver.conduct = answer(410);
  for (let n = 0; n < 3; n += 1) expect((await deployment.call('POST', '/api/notifications/test', {})).status).toBe(201);
  const givenUp = await waitFor(async () => {
    const failed = (await notifications()).filter(({ status }) => status === 'failed');
    return failed.length === 3 ? failed : undefined;
  });
  takeAll();
  expect(await deployment.call('POST', '/api/notifications/redeliver', {})).toEqual({ status: 202, body: { queued: 3 } });
  await all(['delivered'], null);
  expect(taken.toSorted()).toEqual(givenUp.map(({ id }) => id).toSorted());
  expect(await deployment.call('POST', '/api/notifications/redeliver', {})).toEqual({ status: 202, body: { queued: 0 } });
});

test('a list that fails is an issue, and the call that it names ends it', async () => {
  const { deployment, companyId } = watched;
  const overview = async () => (await deployment.call('GET', '/api/overview')).body as OverviewModel;
  const refresh_token = deployment.sandbox.issueRefreshToken(companyId).reveal();
  const again = { environment: 'test', company_id: companyId, refresh_token };
  expect((await deployment.call('POST', '/api/companies', again)).status).toBe(200);
  expect(await watched.sync()).toBe('succeeded');
  const looksLike = {
    ready: true,
    lists: { total: 2, verified: 2, late: 0, never: 0, unverified: 0 },
    issues_open: 0,
    workers: 1,
  };
  await waitFor(async () => (await overview()).issues_open === 0 && (await watched.issues('ongoing')).length === 0);
  expect(await overview()).toMatchObject(looksLike);

  deployment.sandbox.faults.add({ kind: 'status', status: 403 }, { path: '/departments', times: Number.POSITIVE_INFINITY });
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  expect((await deployment.runGivenUp(companyId)).status).toBe('failed');
  const issue = await watched.issue('service_refused', 'ongoing');
  expect(issue).toMatchObject({
    environment: 'test',
    resource: 'departments',
    severity: 'action',
    companies: 1,
    sample: [companyId],
  });
  await waitFor(async () => (await overview()).issues_open === 1);
  expect((await fetch(issue.docs_url)).status).toBe(200);

  deployment.sandbox.faults.clear();
  const { method, path, body } = issue.action;
  expect((await deployment.call(method, path, body)).body).toEqual({ queued: 1 });
  expect((await watched.issue('service_refused', 'resolved')).id).toBe(issue.id);
  expect(await watched.issues('ongoing')).toEqual([]);
});

test('a worker counts until it stops', async () => {
  const { deployment, processes } = watched;
  const workers = async () => ((await deployment.call('GET', '/api/overview')).body as OverviewModel).workers;
  expect(await workers()).toBe(1);
  processes[1]!.kill('SIGTERM');
  expect(await processes[1]!.exit).toEqual({ code: 0, signal: null });
  await waitFor(async () => (await workers()) === 0);
});
