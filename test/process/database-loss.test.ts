import pg from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { waitFor } from '../support/wait-for.js';
import { Deployment } from './deployment.js';

let deployment: Deployment;

beforeAll(async () => {
  deployment = await Deployment.open({ sandbox: { companies: [{ name: 'Lossy', employees: 6_000 }], latencyMs: 150 } });
  await deployment.startApi();
  await deployment.startWorker();
});

afterAll(() => deployment.close());

test('a database that ends every connection, again and again, costs a worker neither its run nor its life', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  // The first loss comes in the middle of the walk: these pages are held until then.
  deployment.sandbox.faults.add({ kind: 'hold' }, { path: '/employees', skip: 4, times: Infinity });
  await deployment.onboard(companyId);
  let pages = 0;
  for (let loss = 0; loss < 4; loss += 1) {
    // The others come once the walk has gone on, or has ended.
    pages = await waitFor(async () => {
      const { status, walks } = await deployment.lastRun(companyId);
      return status === 'succeeded' || walks[0]!.pages > pages ? walks[0]!.pages : undefined;
    });
    await endConnections();
    deployment.sandbox.faults.clear();
  }
  const run = await waitFor(async () => {
    const { rows } = await deployment.database.db.pool.query<{ status: string }>('SELECT status FROM muster.runs');
    return rows[0]?.status === 'running' ? undefined : deployment.lastRun(companyId);
  });
  expect(run, JSON.stringify(run)).toMatchObject({
    status: 'succeeded',
    attempts: 0,
    walks: [{ verified: true, inserted: 6_000 }, { verified: true }],
  });
  expect(await mirrored(deployment.database.db, 'employees', companyId)).toEqual(
    upstream(deployment.sandbox, 'employees', companyId),
  );
  // Whoever works on the queue still does: another run goes through.
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  expect(await deployment.runEnd(companyId)).toMatchObject({
    status: 'succeeded',
    walks: [{ verified: true, unchanged: 6_000 }, {}],
  });
});

/** As a restart of the server does. Our own connections end, too. */
async function endConnections(): Promise<void> {
  const admin = new pg.Client(inject('postgres').url);
  await admin.connect();
  await admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`,
    [new URL(deployment.database.url).pathname.slice(1)],
  );
  await admin.end();
}
