import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

let deployment: Deployment;
let api: TestProcess;

beforeAll(async () => {
  deployment = await Deployment.open({ sandbox: { companies: [] } });
  api = await deployment.startApi();
});
afterAll(() => deployment.close());

async function post(): Promise<{ status: number; text: string }> {
  const response = await fetch(`${deployment.url}/api/connect-links`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${deployment.adminToken}`,
      'content-type': 'application/json',
      'idempotency-key': 'the-one-key',
    },
    body: '{"environment":"test"}',
  });
  return { status: response.status, text: await response.text() };
}

test('a process that is killed between work and answer leaves its key to the next attempt, within seconds', async () => {
  const { prisma, pool } = deployment.database.db;
  const locked = await pool.connect();
  // The link is made, and the audit of it waits.
  await locked.query('BEGIN; LOCK TABLE muster.audit IN ACCESS EXCLUSIVE MODE');
  const cut = post().catch(() => 'cut off');
  await waitFor(() => prisma.connectLink.count());
  api.kill('SIGKILL');
  await api.exit;
  expect(await cut).toBe('cut off');
  await locked.query('ROLLBACK');
  locked.release();

  api = await deployment.startApi();
  const lease = await pool.query<{ seconds: number }>(
    'SELECT extract(epoch FROM lease_until - now())::float8 AS seconds FROM muster.idempotency_keys',
  );
  expect(lease.rows[0]!.seconds).toBeLessThanOrEqual(15);
  // As if these seconds were over.
  await pool.query('UPDATE muster.idempotency_keys SET lease_until = now()');
  const answer = await waitFor(async () => {
    const { status, text } = await post();
    if (status === 409) expect(JSON.parse(text).code).toBe('idempotency_key_in_use');
    return status === 409 ? undefined : { status, text };
  });
  expect([answer.status, await prisma.connectLink.count()]).toEqual([201, 2]);
  expect(await post()).toEqual(answer);
  expect(await prisma.connectLink.count()).toBe(2);
});
