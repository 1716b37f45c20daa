import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, startApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';

// What a small company costs the database in a night: its own record, 18 employees, 2 departments. Every statement that a worker sends is
// counted, BEGIN and COMMIT included, but for those of BullMQ, which has connections of its own, and for those that come by the clock, and so
// the more often the slower the machine is: sweeps, and tokens that are read again. A company sends a statement as often as all of them send it at least.

const COMPANIES = 40;
/** Statements a company, at most. */
const MOST = 11;

let database: TestDatabase;
let sandbox: Sandbox;
let app: App;
let watcher: pg.Client;
const home = mkdtempSync(join(tmpdir(), 'muster-'));
const sent: string[] = [];
const { query } = pg.Client.prototype;

beforeAll(async () => {
  countStatements();
  database = await testDatabase();
  watcher = new pg.Client({ connectionString: database.url, application_name: 'watcher' });
  await watcher.connect();
  const companies = Array.from({ length: COMPANIES }, (_, n) => ({ name: `Small ${n}`, employees: 18, departments: 2 }));
  sandbox = await startSandbox({ companies });
  const address = sandbox.url.href.replace(/\/$/, '');
  const config = loadConfig({
    DATABASE_URL: database.url,
    REDIS_URL: redisUrl(),
    MUSTER_HOME: home,
    MUSTER_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
    SYNC_CRON: '0 0 29 2 *',
    TEST_BASE_URL: address,
    TEST_AUTH_URL: address,
    TEST_CLIENT_ID: sandbox.clientId,
    TEST_CLIENT_SECRET: sandbox.clientSecret.reveal(),
  });
  app = await startApp(config, new Set(['worker']), pino({ level: 'silent' }));
  for (const { companyId } of sandbox.companies) {
    const company = { environment: 'test', companyId } as const;
    await app.onboarding.onboard({ ...company, refreshToken: sandbox.issueRefreshToken(companyId) });
    await app.runs.request({ company, trigger: 'onboarding' });
  }
  await succeeded('onboarding', COMPANIES);
  // What the first mirror has shown is learned once, beside the nights.
  await waitFor(
    async () => {
      const { rows } = await watcher.query<{ views: number }>(
        `SELECT count(*)::int AS views FROM information_schema.columns WHERE table_schema = 'warehouse' AND column_name = 'modified_at'`,
      );
      return rows[0]!.views === 6;
    },
    { what: 'the typed views of both lists, of their histories and of their changes' },
  );
});

afterAll(async () => {
  await app.stop();
  await watcher.end();
  pg.Client.prototype.query = query;
  await sandbox.stop();
  await database.close();
  rmSync(home, { recursive: true });
});

/** Where all statements pass, whoever sends them. */
function countStatements(): void {
  type Sender = pg.Client & { readonly connectionParameters: { readonly application_name?: string } };
  pg.Client.prototype.query = function (this: Sender, ...args: [string | { readonly text?: string }]) {
    const text = typeof args[0] === 'string' ? args[0] : (args[0].text ?? 'COPY');
    if (this.connectionParameters.application_name === 'muster') sent.push(text.replaceAll(/\s+/g, ' ').trim());
    return Reflect.apply(query as (...all: unknown[]) => unknown, this, args);
  } as typeof query;
}

async function succeeded(trigger: string, runs: number): Promise<void> {
  await waitFor(
    async () => {
      const { rows } = await watcher.query<{ ended: number }>(
        `SELECT count(*)::int AS ended FROM muster.runs WHERE trigger = $1 AND status = 'succeeded'`,
        [trigger],
      );
      return rows[0]!.ended === runs;
    },
    { intervalMs: 100 },
  );
}

test.each([
  ['nothing has changed', 1, () => {}],
  ['a record of each has changed', 2, change],
])('a night in which %s takes few statements a company', async (_what, night, happens) => {
  for (const { companyId } of sandbox.companies) happens(companyId);
  sent.length = 0;
  await watcher.query(`UPDATE muster.connections SET next_sync_at = now() - interval '1 s'`);
  await succeeded('nightly', night * COMPANIES);
  const { rows } = await watcher.query<{ runs: number }>(
    `SELECT count(*)::int AS runs FROM muster.runs r WHERE trigger = 'nightly'
       AND 2 = (SELECT count(*) FROM muster.walks w WHERE w.run_id = r.id AND w.verified AND w.baseline_walk_id IS NOT NULL)`,
  );
  expect(rows[0]!.runs).toBe(night * COMPANIES);
  const ofEach = [...timesOf(sent).values()].map((times) => Math.floor(times / COMPANIES));
  expect(ofEach).toContain(1);
  expect(
    ofEach.reduce((sum, times) => sum + times, 0),
    countsOf(sent),
  ).toBeLessThanOrEqual(MOST);
});

function change(companyId: string): void {
  sandbox.list(companyId, 'employees').change(5);
}

function timesOf(statements: readonly string[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const statement of statements) times.set(statement, (times.get(statement) ?? 0) + 1);
  return times;
}

/** Each statement with how often it was sent: what a failure shows. */
function countsOf(statements: readonly string[]): string {
  const lines = [...timesOf(statements)].toSorted((a, b) => b[1] - a[1]).map(([text, count]) => `${count} ${text.slice(0, 120)}`);
  return `\n${lines.join('\n')}\n`;
}
