import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { startPgBouncer } from './pgbouncer.js';

/** In full; more than 8, which the workers walk at once, show the same. */
const COMPANIES = Number(process.env['POOLED_COMPANIES'] ?? 24);
const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function deploy(mode: 'session' | 'transaction', queue: 'Redis' | 'PostgreSQL'): Promise<Deployment> {
  const deployment = await Deployment.open({
    redisUrl: queue === 'Redis' ? redisUrl() : undefined,
    sandbox: { companies: Array.from({ length: COMPANIES }, (_, n) => ({ name: `Pooled ${n}`, employees: 300 + n })) },
    env: { WORKER_CONCURRENCY: '4', SYNC_CRON: '0 3 * * *', SYNC_SPREAD_MINUTES: '0' },
  });
  cleanups.push(() => deployment.close());
  const pooler = await startPgBouncer(deployment.database.url, mode);
  cleanups.push(() => pooler.close());
  // Where nothing is done about it, times are read five hours off, and dates not at all.
  const name = new URL(deployment.database.url).pathname.slice(1);
  await deployment.database.db.pool.query(
    `ALTER DATABASE ${name} SET TimeZone = 'Asia/Yekaterinburg'; ALTER DATABASE ${name} SET DateStyle = 'German'`,
  );
  deployment.env.DATABASE_URL = pooler.through(deployment.database.url);
  return deployment;
}

async function start(deployment: Deployment): Promise<void> {
  const processes: TestProcess[] = await Promise.all([deployment.startApi(), deployment.startWorker(), deployment.startWorker()]);
  cleanups.push(async () => {
    for (const process of processes) process.kill('SIGTERM');
    expect(await Promise.all(processes.map(({ exit }) => exit))).toEqual(processes.map(() => ({ code: 0, signal: null })));
  });
}

describe.each([
  ['session', 'PostgreSQL'],
  ['session', 'Redis'],
  ['transaction', 'Redis'],
] as const)('a pool of %ss, and the queue in %s', (mode, queue) => {
  test('companies are onboarded side by side, mirrored, synced again and removed', async () => {
    const deployment = await deploy(mode, queue);
    await start(deployment);
    const companies = deployment.sandbox.companies.map(({ companyId }) => companyId);
    await Promise.all(companies.map((companyId) => deployment.onboard(companyId)));
    const runs = await Promise.all(companies.map((companyId) => deployment.runEnd(companyId)));
    expect(runs.map(({ status, walks }) => [status, walks.every(({ verified }) => verified)])).toEqual(
      runs.map(() => ['succeeded', true]),
    );
    for (const companyId of companies)
      expect(await mirrored(deployment.database.db, 'employees', companyId)).toEqual(
        upstream(deployment.sandbox, 'employees', companyId),
      );
    const [first] = companies;
    const { body } = await deployment.call('GET', `/api/companies/test/${first}`);
    expect((body as { next_sync_at: string }).next_sync_at).toMatch(/T03:00:00/);

    // Both tell a company that is not there from one that is being onboarded: no lock was left behind.
    const onboard = (company_id: string) =>
      deployment.call('POST', '/api/companies', { environment: 'test', company_id, refresh_token: randomUUID() });
    expect((await onboard(first!)).body).toMatchObject({ code: 'already_onboarded' });
    const strangers = await Promise.all(companies.map(() => onboard(randomUUID())));
    expect(strangers.map(({ body: answer }) => (answer as { code: string }).code)).toEqual(companies.map(() => 'token_refused'));

    await deployment.call('POST', `/api/companies/test/${first}/sync`, { mode: 'full' });
    expect(await deployment.runEnd(first!)).toMatchObject({ status: 'succeeded', walks: [{ unchanged: 300 }, {}] });
    expect((await deployment.call('DELETE', `/api/companies/test/${first}`)).status).toBe(204);
    expect((await deployment.fetch('/readyz')).status).toBe(200);
  });
});

test('a pool of transactions with the queue in PostgreSQL is refused, with what to do', async () => {
  const deployment = await deploy('transaction', 'PostgreSQL');
  for (const muster of ['worker', 'api', 'migrate'].map((command) => startMuster([command], deployment.env))) {
    expect(await muster.exit).toEqual({ code: 2, signal: null });
    expect(muster.stderr).toMatch(/^muster: DATABASE_URL leads through a pooler .*Set REDIS_URL.*\[invalid_configuration\]\n$/);
  }
});

test('what a pooler does not follow is refused with the statement that mends it', async () => {
  const deployment = await deploy('transaction', 'Redis');
  const name = new URL(deployment.database.url).pathname.slice(1);
  const { pool } = deployment.database.db;
  await pool.query(
    `ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'; ALTER DATABASE ${name} SET default_transaction_read_only = on`,
  );
  const refused = startMuster(['worker'], deployment.env);
  expect(await refused.exit).toEqual({ code: 2, signal: null });
  const statements = /`((?:ALTER ROLE \w+ SET \w+ = '[\w ]+'; ?)+)`/.exec(refused.stderr)?.[1];
  expect(statements).toMatch(/isolation = 'read committed'.*read_only = 'off'/);
  // The role is everybody's, so the database is told the same.
  await pool.query('SET default_transaction_read_only = off');
  await pool.query(statements!.replaceAll(/ROLE \w+/g, `DATABASE ${name}`));
});
