import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { runMuster } from '../cli/run-muster.js';
import { anyPort } from '../support/port.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

// Refresh tokens are good for one refresh. A copy of a database that refreshed them would cost its original every authorization, and a backup that was restored
// beside it likewise.

let deployment: Deployment;
let companies: readonly string[];
const copies: string[] = [];
const running = new Set<TestProcess>();

beforeAll(async () => {
  deployment = await Deployment.open({
    sandbox: {
      companies: [
        { name: 'One', employees: 12 },
        { name: 'Two', employees: 3 },
      ],
    },
  });
  companies = deployment.sandbox.companies.map(({ companyId }) => companyId);
  await start();
  for (const company of companies) {
    await deployment.onboard(company);
    await deployment.runEnd(company);
  }
  await stop();
});
afterAll(async () => {
  await stop();
  for (const name of copies) await asAdmin(`DROP DATABASE ${name} WITH (FORCE)`);
  await deployment.close();
});

async function start(): Promise<void> {
  for (const started of await Promise.all([deployment.startApi(), deployment.startWorker()])) running.add(started);
}

async function stop(): Promise<void> {
  for (const process of running) process.kill('SIGTERM');
  await Promise.all([...running].map(({ exit }) => exit));
  running.clear();
}

async function asAdmin(statement: string): Promise<void> {
  const admin = new pg.Client(inject('postgres').url);
  await admin.connect();
  await admin.query(statement).finally(() => admin.end());
}

/** What the tests ask of answers. */
interface Answer {
  readonly code?: string;
  readonly data: readonly { readonly cause?: string; readonly status?: string; readonly details?: object }[];
}

interface Copy {
  readonly db: pg.Pool;
  call(method: string, path: string, body?: object): Promise<{ status: number; body: Answer }>;
  muster(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }>;
  stop(): Promise<void>;
}

/** A copy of the database as it is now, with an API and a worker of its own that have the same settings. Nothing else uses the database meanwhile. */
async function startCopy(env: Record<string, string> = {}): Promise<Copy> {
  const name = `muster_copy_${randomBytes(4).toString('hex')}`;
  const original = new URL(deployment.database.url).pathname.slice(1);
  await asAdmin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${original}'`);
  await asAdmin(`CREATE DATABASE ${name} TEMPLATE ${original}`);
  copies.push(name);
  const url = new URL(deployment.database.url);
  url.pathname = name;
  const port = String(anyPort());
  const settings = { ...deployment.env, ...env, DATABASE_URL: url.href, PORT: port, MUSTER_ADMIN_TOKEN: deployment.adminToken };
  const processes = ['api', 'worker'].map((role) => startMuster([role], settings));
  await processes[0]!.waitForOutput(/ready: api/);
  await processes[1]!.waitForOutput(/ready: worker/);
  const address = `http://127.0.0.1:${port}`;
  const db = new pg.Pool({ connectionString: url.href, max: 1 });
  return {
    db,
    async call(method, path, body) {
      const headers = { authorization: `Bearer ${deployment.adminToken}`, ...(body && { 'content-type': 'application/json' }) };
      const response = await fetch(address + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
      return { status: response.status, body: (await response.json()) as Answer };
    },
    muster: (...args) => runMuster([...args, '--url', address], { MUSTER_ADMIN_TOKEN: deployment.adminToken }),
    async stop() {
      for (const process of processes) process.kill('SIGTERM');
      for (const { exit } of processes) await exit;
      await db.end();
    },
  };
}

const MAKE_DUE = 'UPDATE muster.tokens SET refresh_at = now(), expires_at = now()';

test('a copy beside its original sends no token, and says what it is, until somebody says that it is a copy', async () => {
  const copy = await startCopy();
  await start();
  const asked = deployment.sandbox.requests.all().length;
  await copy.db.query(`${MAKE_DUE}; UPDATE muster.connections SET next_sync_at = now()`);
  const issue = await waitFor(async () => {
    const { body } = await copy.call('GET', '/api/issues?status=ongoing');
    return body.data.find(({ cause }) => cause === 'database_copied');
  });
  expect(issue).toMatchObject({ severity: 'action', companies: 2, environment: 'test' });
  const [company] = companies;
  const refresh_token = deployment.sandbox.issueRefreshToken(company!).reveal();
  for (const [path, body] of [
    [`/api/companies/test/${company}/sync`, undefined],
    [`/api/companies/test/${company}/verify`, undefined],
    [`/api/companies/test/${company}/connect-link`, undefined],
    ['/api/connect-links', { environment: 'test' }],
    ['/api/companies', { environment: 'test', company_id: company, refresh_token }],
    ['/api/syncs', {}],
  ] as const)
    expect([path, await copy.call('POST', path, body)]).toMatchObject([path, { status: 409, body: { code: 'database_copied' } }]);
  expect((await copy.call('GET', '/readyz')).status).toBe(200);
  expect(deployment.sandbox.requests.all().length).toBe(asked);

  expect(await copy.muster('detach')).toMatchObject({ code: 0 });
  expect((await copy.db.query('SELECT 1 FROM muster.tokens')).rows).toEqual([]);
  expect(await copy.call('POST', `/api/companies/test/${company}/sync`)).toMatchObject({
    status: 409,
    body: { code: 'installation_detached' },
  });
  await waitFor(async () =>
    (await copy.call('GET', '/api/issues?status=ongoing')).body.data.every(({ cause }) => cause !== 'database_copied'),
  );
  expect(deployment.sandbox.requests.all().length).toBe(asked);
  await copy.stop();

  await deployment.database.db.pool.query(MAKE_DUE);
  for (const id of companies) {
    await deployment.call('POST', `/api/companies/test/${id}/sync`, { mode: 'full' });
    expect(await deployment.runEnd(id)).toMatchObject({ status: 'succeeded' });
  }
  expect(deployment.sandbox.reusedRefreshTokens).toBe(0);
  await stop();
});

test('a database that was moved goes on once it is adopted, under its own feed or another one', async () => {
  const moved = await startCopy();
  const feed = async () => (await moved.db.query<{ feed: string }>('SELECT feed FROM warehouse.feed')).rows[0]!.feed;
  const before = await feed();
  await moved.db.query(MAKE_DUE);
  expect(await moved.muster('adopt', '--feed', 'same', '--json')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(before),
  });
  expect(await feed()).toBe(before);
  for (const id of companies) {
    expect((await moved.call('POST', `/api/companies/test/${id}/sync`)).status).toBe(202);
    await waitFor(
      async () => (await moved.call('GET', `/api/runs?company_id=${id}&limit=1`)).body.data[0]?.status === 'succeeded',
    );
  }
  expect(deployment.sandbox.reusedRefreshTokens).toBe(0);
  expect(await moved.muster('adopt')).toMatchObject({ code: 0 });
  expect(await feed()).not.toBe(before);
  expect((await moved.call('GET', `/api/changes?feed=${before}`)).body.code).toBe('feed_restarted');
  const { body } = await moved.call('GET', '/api/audit?action=installation.adopt');
  expect(body.data.map(({ details }) => details)).toMatchObject([{ feed: 'new' }, { feed: 'same' }]);
  await moved.stop();
});

test('a clone that differs by nothing is told by another name', async () => {
  const { pool } = deployment.database.db;
  const standing = async () => (await pool.query('SELECT name, other_name FROM muster.installation')).rows[0];
  deployment.env['INSTALLATION'] = 'production';
  running.add(await deployment.startApi());
  expect(await standing()).toEqual({ name: 'production', other_name: null });
  await stop();
  deployment.env['INSTALLATION'] = 'staging';
  running.add(await deployment.startApi());
  expect(await standing()).toEqual({ name: 'production', other_name: 'staging' });
  const [company] = companies;
  expect(await deployment.call('POST', `/api/companies/test/${company}/sync`)).toMatchObject({
    status: 409,
    body: { code: 'database_copied' },
  });
  expect((await deployment.call('POST', '/api/installation/adopt', { feed: 'same' })).status).toBe(200);
  expect(await standing()).toEqual({ name: 'staging', other_name: null });
  expect((await deployment.call('POST', `/api/companies/test/${company}/sync`)).status).toBe(202);
  await stop();
});
