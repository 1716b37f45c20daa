import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { Secret } from '../../src/core/secret.js';
import { Deployment } from '../process/deployment.js';
import { anyPort } from '../support/port.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { RedisServer } from '../support/redis-server.js';
import { waitFor } from '../support/wait-for.js';

// Characters that a URL encodes, so that the plain and the encoded form differ.
const CANARIES = {
  database: 'canary pg/p@ss+7d31',
  redis: 'canary redis/p@ss+52c0',
  client: 'canary-client-secret-8e44',
  refusedToken: 'canary-refresh-token-that-is-refused-03fb',
};
const ROLE = 'muster_canary';

/** Long enough for several attempts to connect of every connection. */
const OUTAGE_MS = 1_500;

let redis: RedisServer;
let deployment: Deployment;
const processes: TestProcess[] = [];

beforeAll(async () => {
  if (!redisUrl()) return;
  redis = await RedisServer.start('--requirepass', CANARIES.redis);
  deployment = await Deployment.open({
    sandbox: {
      clientSecret: new Secret(CANARIES.client),
      accessTokenSeconds: 4,
      companies: [{ name: 'First', employees: 40 }],
    },
    env: {
      LOG_LEVEL: 'trace',
      REFRESH_MARGIN_SECONDS: '2',
      REDIS_URL: withPassword(redis.url, '', CANARIES.redis),
    },
  });
  await asAdmin(`CREATE ROLE ${ROLE} SUPERUSER LOGIN PASSWORD '${CANARIES.database}'`);
  deployment.env['DATABASE_URL'] = withPassword(deployment.database.url, ROLE, CANARIES.database);
});

afterAll(async () => {
  if (!redisUrl()) return;
  await deployment.close();
  await asAdmin(`DROP ROLE ${ROLE}`);
  await redis.remove();
});

test.runIf(redisUrl())('no outage and no change of a password brings a secret into what a process writes', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  const upEnv = { ...deployment.env, PORT: String(anyPort()), MUSTER_ADMIN_TOKEN: deployment.adminToken };
  processes.push(await deployment.startApi(), await deployment.startWorker(), startMuster(['up', '--json'], upEnv));
  await processes[2]!.waitForOutput(/"url":/);
  const onboard = (refresh_token: string) =>
    deployment.call('POST', '/api/companies', { environment: 'test', company_id: companyId, refresh_token });
  expect((await onboard(CANARIES.refusedToken)).status).toBe(422);
  await deployment.onboard(companyId);
  expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded' });

  const tokens = new Set<string>();
  const noteTokens = async () => (await deployment.storedTokens()).forEach((token) => tokens.add(token));
  await noteTokens();

  const asRedisUser = (password: string, ...command: [string, ...string[]]) =>
    redis.as({ password }, (connection) => connection.call(...command));
  await asRedisUser(CANARIES.redis, 'CONFIG', 'SET', 'requirepass', 'another');
  await asRedisUser('another', 'CLIENT', 'KILL', 'TYPE', 'normal');
  await refusedStart('redis');
  await sleep(OUTAGE_MS);
  await asRedisUser('another', 'CONFIG', 'SET', 'requirepass', CANARIES.redis);
  await redis.stop();
  await sleep(OUTAGE_MS);
  await redis.start();
  await noteTokens();

  await asAdmin(`ALTER ROLE ${ROLE} PASSWORD 'another'`, endConnections());
  await refusedStart('database');
  await sleep(OUTAGE_MS);
  await asAdmin(`ALTER ROLE ${ROLE} NOLOGIN PASSWORD '${CANARIES.database}'`, endConnections());
  await sleep(OUTAGE_MS);
  await asAdmin(`ALTER ROLE ${ROLE} LOGIN`);

  await waitFor(async () => (await deployment.call('POST', `/api/companies/test/${companyId}/sync`)).status === 202);
  expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded' });

  await noteTokens();
  const secrets = [
    ...Object.values(CANARIES),
    deployment.adminToken,
    deployment.env['MUSTER_ENCRYPTION_KEYS']!.split(':')[1]!,
    ...tokens,
  ];
  expect(secrets.length).toBeGreaterThan(9);
  for (const running of processes) {
    running.kill('SIGTERM');
    await running.exit;
    const written = running.stdout + running.stderr;
    expect(written).toMatch(/refuses|is lost/);
    // Not `expect(written).not.toContain`: its message would print megabytes.
    for (const secret of secrets) expect(placeOf(secret, written)).toBeUndefined();
  }
});

/** A process that cannot start writes why. */
async function refusedStart(what: keyof typeof CANARIES): Promise<void> {
  const refused = startMuster(['worker'], deployment.env);
  processes.push(refused);
  expect((await refused.exit).code, `${what}: ${refused.stderr}`).toBeGreaterThan(0);
}

/** Where the secret stands, with what is around it. Whatever looks like base64 is looked into as well. */
function placeOf(secret: string, written: string): string | undefined {
  const decoded = (written.match(/[\w+/-]{12,}/g) ?? []).map((text) => Buffer.from(text, 'base64').toString('latin1'));
  for (const text of [written, decoded.join('\n')]) {
    for (const form of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]) {
      const at = text.indexOf(form);
      if (at >= 0) return text.slice(Math.max(0, at - 200), at + form.length + 50);
    }
  }
  return undefined;
}

function withPassword(address: string, username: string, password: string): string {
  const url = new URL(address);
  url.username = username;
  url.password = encodeURIComponent(password);
  return url.href;
}

const endConnections = () => `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${ROLE}'`;

async function asAdmin(...statements: string[]): Promise<void> {
  const admin = new pg.Client(inject('postgres').url);
  await admin.connect();
  for (const statement of statements) await admin.query(statement);
  await admin.end();
}
