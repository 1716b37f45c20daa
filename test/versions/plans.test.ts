import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { startApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import type { Database } from '../../src/db/connection/database.js';
import { startSandbox } from '../../src/sandbox/sandbox.js';
import { waitFor } from '../support/wait-for.js';
import { type ExecutedPlan, ExplainedServer } from './explained-server.js';
import { programsOf, VERSIONS } from './server-programs.js';

// Up to PostgreSQL 17, what a session forbids the planner costs it 1e10, which is far above `jit_above_cost`: a server with LLVM then compiles the
// statement each time. These servers are built without LLVM, so nothing is slow here: the plans alone tell.

/** The server's default of `jit_above_cost`. */
const JIT_ABOVE_COST = 100_000;
const COMPANIES = 6;
/** The first statement of each session, which switches JIT off. */
const SETS_UP = 'SELECT pg_backend_pid() = $1::int AS own, set_config(';

describe.concurrent.each(VERSIONS)('on PostgreSQL %i', (version) => {
  test('every statement of a first mirror, a night and a verify is planned without JIT, in sessions of its own', async () => {
    const plans = await plansOfNights(version);
    const ours = plans.filter(({ application }) => application.startsWith('muster'));
    expect(ours.filter(({ cost }) => cost > JIT_ABOVE_COST).length, 'plans that this test is about').toBeGreaterThan(0);
    const compiled = ours.filter(({ settings, statement }) => settings.jit !== 'off' && !statement.includes(SETS_UP));
    expect([...new Set(compiled.map(described))]).toEqual([]);
  });

  test('ending a walk scans no table as a whole', async () => {
    const plans = await plansOfNights(version);
    const ends = plans.filter(({ statement }) => statement.includes('INSERT INTO muster.barriers'));
    expect(ends.length).toBeGreaterThan(0);
    expect([...new Set(ends.filter(({ cost }) => cost > JIT_ABOVE_COST).map(described))]).toEqual([]);
  });
});

const described = ({ application, cost, statement }: ExecutedPlan) => `${application}, cost ${cost}: ${statement.slice(0, 300)}`;

const nights = new Map<number, Promise<ExecutedPlan[]>>();

/** Everything that a server executed while companies were mirrored, synced at night and verified. Once a version. */
function plansOfNights(version: (typeof VERSIONS)[number]): Promise<ExecutedPlan[]> {
  const known = nights.get(version) ?? runNights(version);
  nights.set(version, known);
  return known;
}

async function runNights(version: (typeof VERSIONS)[number]): Promise<ExecutedPlan[]> {
  const explained = await ExplainedServer.start(programsOf(version));
  const home = mkdtempSync(join(tmpdir(), 'muster-'));
  const companies = Array.from({ length: COMPANIES }, (_, n) => ({ name: `Planned ${n}`, employees: n === 0 ? 3_000 : 30 }));
  const sandbox = await startSandbox({ companies });
  try {
    const address = sandbox.url.href.replace(/\/$/, '');
    const database = await explained.server.database();
    const config = loadConfig({
      DATABASE_URL: database.url,
      MUSTER_HOME: home,
      MUSTER_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
      SYNC_CRON: '0 0 29 2 *',
      TEST_BASE_URL: address,
      TEST_AUTH_URL: address,
      TEST_CLIENT_ID: sandbox.clientId,
      TEST_CLIENT_SECRET: sandbox.clientSecret.reveal(),
    });
    const app = await startApp(config, new Set(['worker']), pino({ level: 'silent' }));
    const keys = sandbox.companies.map(({ companyId }) => ({ environment: 'test', companyId }) as const);
    for (const company of keys) {
      await app.onboarding.onboard({ ...company, refreshToken: sandbox.issueRefreshToken(company.companyId) });
      await app.runs.request({ company, trigger: 'onboarding' });
    }
    await succeeded(database.db, COMPANIES);
    // The planner knows the tables by now, as after a night with autovacuum.
    await database.db.pool.query('ANALYZE');
    for (const { companyId } of keys) sandbox.list(companyId, 'employees').change(5);
    await database.db.pool.query(`UPDATE muster.connections SET next_sync_at = now() - interval '1 s'`);
    await succeeded(database.db, 2 * COMPANIES);
    await app.runs.requestVerification({ company: keys[0]!, trigger: 'verify' });
    await succeeded(database.db, 2 * COMPANIES + 1);
    await waitFor(
      async () =>
        (await database.db.pool.query('SELECT FROM muster.change_batches WHERE first_seq IS NULL LIMIT 1')).rowCount === 0,
      { what: 'every change to have its number' },
    );
    await app.stop();
    await database.close();
    await explained.server.stop('fast');
    return explained.plans();
  } finally {
    await sandbox.stop();
    await explained.remove();
    rmSync(home, { recursive: true });
  }
}

async function succeeded(db: Database, runs: number): Promise<void> {
  await waitFor(async () => (await db.prisma.run.count({ where: { status: 'succeeded' } })) === runs, {
    what: `${runs} runs to succeed`,
  });
}
