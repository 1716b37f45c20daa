import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import type { TestProcess } from '../support/process.js';
import { windowAt } from '../support/quiet.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const RECORDS = 1_000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 50 },
  },
};

let deployment: Deployment;
let worker: TestProcess;
let companyId: string;

beforeAll(async () => {
  deployment = await Deployment.open({
    catalogue: CATALOGUE,
    sandbox: { companies: [{ name: 'Quiet', employees: RECORDS }], latencyMs: 120 },
  });
  companyId = deployment.sandbox.companies[0]!.companyId;
  [, worker] = await Promise.all([deployment.startApi(), deployment.startWorker()]);
});

afterAll(() => deployment.close());

async function setQuietHours(quiet_hours: string | null): Promise<void> {
  const { status } = await deployment.call('POST', `/api/companies/test/${companyId}/quiet-hours`, { quiet_hours });
  expect(status).toBe(200);
}

const lastRun = () => deployment.lastRun(companyId);
const waiting = () => waitFor(async () => ((await lastRun()).waits_for === 'quiet_hours' ? lastRun() : undefined));

/** Requests that reached the service at this time or later. */
const askedSince = (time: number) =>
  deployment.sandbox.requests.all().filter(({ at, path }) => at >= time && !path.startsWith('/sandbox/')).length;

/** Pages from this place on are not answered until the faults are cleared, so that the walk cannot be over before. */
function holdUpFrom(first: number): void {
  for (let skip = first * 49; skip < RECORDS; skip += 49)
    deployment.sandbox.faults.add({ kind: 'hold' }, { path: '/employees', input: { skip: String(skip) }, times: Infinity });
}

const pagesPast = (pages: number) => waitFor(async () => (await lastRun()).walks[0]!.pages > pages);

test('nothing is asked in a window that begins in the middle of a walk, whether or not its worker lives', async () => {
  // The next minute that is not so near that it may begin before the walk.
  const opens = Math.ceil((systemClock.now() + 10_000) / MINUTE) * MINUTE;
  const first = windowAt(opens, HOUR);
  holdUpFrom(10);
  await deployment.onboard(companyId);
  await setQuietHours(first.text);
  await pagesPast(3);
  await waitFor(() => systemClock.now() > opens);
  deployment.sandbox.faults.clear();
  const stopped = await waiting();
  expect(stopped).toMatchObject({ status: 'queued', attempts: 0, waits_until: new Date(first.ends).toISOString() });
  expect(stopped.error).toBeUndefined();
  const { pages } = stopped.walks[0]!;
  expect(pages).toBeGreaterThan(3);
  // A person who asks for it now is told to wait, too.
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`);
  expect(await lastRun()).toMatchObject({ id: stopped.id, waits_until: stopped.waits_until });
  expect(askedSince(opens)).toBe(0);

  // The window ends. The worker dies in the middle of the walk, and its successor comes in the next window.
  holdUpFrom(15);
  await setQuietHours('none');
  await pagesPast(pages);
  worker.kill('SIGKILL');
  await worker.exit;
  await setQuietHours(windowAt(systemClock.now(), HOUR).text);
  deployment.sandbox.faults.clear();
  const died = systemClock.now();
  worker = await deployment.startWorker();
  expect(await waiting()).toMatchObject({ id: stopped.id, status: 'queued', attempts: 0 });
  expect(askedSince(died)).toBe(0);

  await setQuietHours(null);
  const end = await deployment.runEnd(companyId);
  expect(end).toMatchObject({ id: stopped.id, status: 'succeeded', attempts: 0, walks: [{ verified: true, received: RECORDS }] });
  expect(await mirrored(deployment.database.db, 'employees', companyId)).toEqual(
    upstream(deployment.sandbox, 'employees', companyId),
  );
  const { body } = await deployment.call('GET', '/api/notifications');
  expect((body as { data: unknown[] }).data).toEqual([]);
});
