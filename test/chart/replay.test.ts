import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RunningContainer } from './container.js';
import { find, type Manifest, manifestsOf, podsOf, template } from './helm.js';
import { RoleDatabase, SOCKETS } from './role-database.js';

// The processes that the chart describes, run with all that their manifests give them and nothing else: arguments, variables, volumes, an id that no user
// has, no capability, a root that cannot be written.

const TOKEN = 'the-admin-token-of-the-replay';

let database: RoleDatabase;
let manifests: Manifest[];
let secrets: Record<string, Record<string, string>>;
const running: RunningContainer[] = [];

beforeAll(async () => {
  if (process.getuid?.() !== 0) throw new Error('Containers are replayed by root alone: run this as root.');
  database = await RoleDatabase.start();
  const set = [
    'extraVolumes[0].name=sockets',
    `extraVolumes[0].hostPath.path=${database.sockets}`,
    'extraVolumeMounts[0].name=sockets',
    `extraVolumeMounts[0].mountPath=${SOCKETS}`,
    // There is no Redis here: PostgreSQL has the queue.
    'secrets.shared.keys.REDIS_URL=null',
  ];
  manifests = manifestsOf(template('everything', { set }));
  secrets = {
    fleet: {
      database_url: `${RoleDatabase.address('muster_app')}\n`,
      encryption_keys: `k1:${randomBytes(32).toString('base64')}`,
      client_secret: 'the-client-secret',
      webhook_url: 'https://hooks.example.com/muster',
      webhook_secret: 'a-long-text-for-signing',
      privacy_key: randomBytes(32).toString('base64'),
    },
    'muster-api': { admin_token: TOKEN, metrics_token: 'a-long-token-for-metrics', oidc_client_secret: 'the-secret-of-oidc' },
    'muster-migrate': { database_url: `${RoleDatabase.address('muster_owner')}\n` },
  };
});

afterAll(async () => {
  for (const container of running) container.remove();
  await database?.remove();
});

function start(role: 'migrate' | 'api' | 'worker'): RunningContainer {
  const container = RunningContainer.start(podsOf(manifests)[role]!, { secrets, manifests });
  running.push(container);
  return container;
}

test('the migration ends well as the owner of the database, and a second one, too', async () => {
  for (const said of ['Applied:', 'The database is up to date.']) {
    const migration = start('migrate');
    expect(await migration.exit, migration.output).toBe(0);
    expect(migration.output).toContain(said);
    expect(migration.output).toContain('muster_app may run api and workers.');
  }
});

test('API and worker become ready by their probes, as a role without rights on tables, and stop in order', async () => {
  const [api, worker] = [start('api'), start('worker')];
  for (const container of [api, worker])
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) await container.succeeds(probe);
  const variables = { ...worker.environment(), ...api.environment() };
  expect(variables).not.toHaveProperty('HOME');
  for (const secret of Object.values(secrets).flatMap((each) => Object.values(each)))
    expect(Object.values(variables).join('\n')).not.toContain(secret.trim());

  const companies = 'http://127.0.0.1:8080/api/companies';
  expect(await api.get(companies)).toBe(401);
  expect(await api.get(companies, { authorization: `Bearer ${TOKEN}` })).toBe(200);
  expect(await api.get('http://127.0.0.1:8080/metrics')).toBe(401);
  expect(await api.get('http://127.0.0.1:8080/metrics', { authorization: 'Bearer a-long-token-for-metrics' })).toBe(200);
  expect(await api.command(['/app/bin/muster', 'status', '--json'])).toContain('"ready":true');

  for (const container of [api, worker]) {
    expect(await container.stop(), container.output).toBe(0);
    expect(container.output).not.toMatch(/"level":"?(50|60|error|fatal)/);
  }
});

test('KEDA is told how many companies are due, as a role that may see no more than that', async () => {
  const [trigger] = find(manifests, 'ScaledObject').spec['triggers'] as { metadata: { query: string } }[];
  const superuser = await database.connect();
  const document = readFileSync(new URL('../../docs/kubernetes.md', import.meta.url), 'utf8');
  const grants = [...document.matchAll(/^GRANT .* TO keda;$/gm)].map(([grant]) => grant);
  expect(grants).toHaveLength(3);
  for (const grant of grants) await superuser.query(grant);
  await superuser.query(
    `INSERT INTO muster.connections (environment, company_id, next_sync_at) SELECT 'test', gen_random_uuid(), now() + at
     FROM unnest(ARRAY[interval '-1 minute', '-2 minutes', '1 hour']) AS at`,
  );
  // Queued runs of paused companies wait until they are resumed; those that a worker has go on.
  await superuser.query(
    `WITH company AS (INSERT INTO muster.connections (environment, company_id, paused)
       SELECT 'test', gen_random_uuid(), paused FROM unnest(ARRAY[true, true, false]) AS paused RETURNING *)
     INSERT INTO muster.runs (environment, company_id, trigger, mode) SELECT environment, company_id, 'manual', 'resume' FROM company`,
  );
  await superuser.end();
  const keda = await database.connect('keda');
  const { rows } = await keda.query<Record<string, string>>(trigger!.metadata.query);
  await keda.end();
  expect(rows.map((row) => Object.values(row))).toEqual([['3']]);
});
