import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';
import { anyPort } from '../../support/port.js';
import { HOME, runMuster } from '../run-muster.js';

const CANARIES = {
  database: 'doctor-canary-database',
  redis: 'doctor-canary-redis',
  admin: 'doctor-canary-admin-token',
  client: 'doctor-canary-client-secret',
  key: randomBytes(32).toString('base64'),
};

let database: TestDatabase;
let sandbox: Sandbox;
let right: Record<string, string>;
beforeAll(async () => {
  [database, sandbox] = await Promise.all([testDatabase(), startSandbox()]);
  right = {
    DATABASE_URL: database.url,
    MUSTER_ADMIN_TOKEN: CANARIES.admin,
    MUSTER_ENCRYPTION_KEYS: `k1:${CANARIES.key}`,
    TEST_BASE_URL: sandbox.url.href,
    TEST_AUTH_URL: sandbox.url.href,
    TEST_CLIENT_ID: 'muster',
    TEST_CLIENT_SECRET: CANARIES.client,
  };
});
afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

async function doctor(env: Record<string, string>, ...args: string[]) {
  const outcome = await runMuster(['doctor', ...args], env);
  for (const canary of Object.values(CANARIES)) expect(outcome.stdout + outcome.stderr).not.toContain(canary);
  return outcome;
}

test('where nothing is a problem the exit code is 0, and every check has its line', async () => {
  const outcome = await doctor(right);
  expect(outcome.stderr).toBe('');
  expect(outcome.code).toBe(0);
  const checks = [
    'configuration',
    'catalogue',
    'database',
    'transactions',
    'queue',
    'workers',
    'webhook',
    'clock',
    'keys',
    'service test',
    'age',
    'disk',
  ];
  for (const check of checks) expect(outcome.stdout).toMatch(new RegExp(`^(ok|warning) +${check} {2}`, 'm'));
  // The tests' own server does without safety against power cuts, and no worker lives. A busy machine answers slowly.
  const slow = outcome.stdout.split(', which is slow').length - 1;
  expect(outcome.stdout).toMatch(new RegExp(`\\n\\d+ ok, ${4 + slow} to look at, 0 wrong\\.\\n$`));
  expect(outcome.stdout).toMatch(/^warning +database +fsync is off.*\n +→ As superuser: ALTER SYSTEM SET fsync = on/m);
});

test('speaks JSON to programs', async () => {
  const lines = (await doctor(right, '--json')).json() as { check: string; level: string; found: string; next: string | null }[];
  for (const line of lines) expect(Object.keys(line)).toEqual(['check', 'level', 'found', 'next']);
  expect(lines.filter(({ level }) => level === 'ok').every(({ next }) => next === null)).toBe(true);
  expect(lines.filter(({ level }) => level !== 'ok').every(({ next }) => next)).toBe(true);
});

test('with database, queue and service away it says so in words, looks at the rest, and exits with 1', async () => {
  const port = anyPort();
  const outcome = await doctor({
    ...right,
    DATABASE_URL: `postgres://muster:${CANARIES.database}@127.0.0.1:${port}/muster`,
    REDIS_URL: `redis://:${CANARIES.redis}@127.0.0.1:${port + 1}`,
    TEST_BASE_URL: `http://127.0.0.1:${port + 2}`,
  });
  expect(outcome.code).toBe(1);
  expect(outcome.stdout).toMatch(/^problem +database +PostgreSQL at .* nothing listens there/m);
  expect(outcome.stdout).toMatch(/^problem +queue +Redis at .* nothing listens there/m);
  expect(outcome.stdout).toMatch(/^problem +service test +GET .* nothing listens there/m);
  expect(outcome.stdout).toMatch(/^ok +service test +http.*\/auth\/authorize answers 400/m);
  expect(outcome.stdout).toMatch(/^warning +keys +not looked at/m);
  expect(outcome.stderr).toMatch(/^muster: Something is wrong/);
});

test('a wrong password is said to be one', async () => {
  const url = new URL(database.url);
  url.password = CANARIES.database;
  const outcome = await doctor({ ...right, DATABASE_URL: url.href });
  expect(outcome.code).toBe(1);
  expect(outcome.stdout).toMatch(/^problem +database +DATABASE_URL: the server at .* refuses this password of the user/m);
});

test('settings that are wrong are each a problem, and what is right is looked at all the same', async () => {
  const outcome = await doctor({ ...right, PORT: 'x', REDIS_URL: CANARIES.redis, MUSTER_ENCRYPTION_KEYS: CANARIES.key });
  expect(outcome.code).toBe(1);
  expect(outcome.stdout).toMatch(/^problem +configuration +PORT: must be a whole number/m);
  expect(outcome.stdout).toMatch(/^problem +configuration +REDIS_URL: must be a URL/m);
  expect(outcome.stdout).toMatch(/^problem +configuration +MUSTER_ENCRYPTION_KEYS: entry 1/m);
  expect(outcome.stdout).toMatch(/^ok +database +PostgreSQL/m);
  expect(outcome.stdout).toMatch(/^warning +queue +not looked at: REDIS_URL is wrong/m);
});

test('without any setting it makes nothing, starts nothing, and says what to do', async () => {
  const home = join(HOME, 'not-made');
  const outcome = await doctor({ MUSTER_HOME: home });
  expect(outcome.code).toBe(0);
  expect(outcome.stdout).toMatch(/^warning +database +the embedded PostgreSQL of .* does not run\n +→ Start Muster/m);
  expect(existsSync(home)).toBe(false);
});
