import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PostgresServer } from '../support/postgres-server.js';
import { RunningContainer } from './container.js';
import { find, type Manifest, manifestsOf, podsOf, template } from './helm.js';

// The processes that the chart describes, run with all that their manifests give them and nothing else: arguments, variables, volumes, an id that no user
// has, no capability, a root that cannot be written. They reach PostgreSQL through a socket in a further volume, as their network leads nowhere.

const TOKEN = 'the-admin-token-of-the-replay';
const SOCKETS = '/var/run/postgresql';

let server: PostgresServer;
let sockets: string;
let relay: Server;
let manifests: Manifest[];
let secrets: Record<string, Record<string, string>>;
const running: RunningContainer[] = [];

beforeAll(async () => {
  if (process.getuid?.() !== 0) throw new Error('Containers are replayed by root alone: run this as root.');
  server = await PostgresServer.start();
  const owner = new pg.Client(server.url);
  await owner.connect();
  await owner.query(`CREATE ROLE muster_owner LOGIN PASSWORD 'a'`);
  await owner.query(`CREATE ROLE muster_app LOGIN PASSWORD 'b'`);
  await owner.query(`CREATE ROLE keda LOGIN PASSWORD 'c'`);
  await owner.query('CREATE DATABASE muster OWNER muster_owner');
  await owner.end();
  sockets = mkdtempSync(join(tmpdir(), 'muster-socket-'));
  chmodSync(sockets, 0o755);
  const { hostname: host, port } = new URL(server.url);
  relay = createServer((socket) => {
    const other = connect(Number(port), host);
    socket.pipe(other).pipe(socket);
    for (const end of [socket, other]) end.on('error', () => void [socket, other].map((each) => each.destroy()));
  });
  await new Promise<void>((resolve) => void relay.listen(join(sockets, '.s.PGSQL.5432'), resolve));
  chmodSync(join(sockets, '.s.PGSQL.5432'), 0o777);
  const set = [
    'extraVolumes[0].name=sockets',
    `extraVolumes[0].hostPath.path=${sockets}`,
    'extraVolumeMounts[0].name=sockets',
    `extraVolumeMounts[0].mountPath=${SOCKETS}`,
    // There is no Redis here: PostgreSQL has the queue.
    'secrets.shared.keys.REDIS_URL=null',
  ];
  manifests = manifestsOf(template('everything', { set }));
  const address = (user: string, password: string) => `postgres://${user}:${password}@/muster?host=${SOCKETS}\n`;
  secrets = {
    fleet: {
      database_url: address('muster_app', 'b'),
      encryption_keys: `k1:${randomBytes(32).toString('base64')}`,
      client_secret: 'the-client-secret',
      webhook_url: 'https://hooks.example.com/muster',
      webhook_secret: 'a-long-text-for-signing',
      privacy_key: randomBytes(32).toString('base64'),
    },
    'muster-api': { admin_token: TOKEN, metrics_token: 'a-long-token-for-metrics', oidc_client_secret: 'the-secret-of-oidc' },
    'muster-migrate': { database_url: address('muster_owner', 'a') },
  };
});

afterAll(async () => {
  for (const container of running) container.remove();
  relay?.close();
  await server?.remove();
  if (sockets) rmSync(sockets, { recursive: true, force: true });
});

function start(role: 'migrate' | 'api' | 'worker'): RunningContainer {
  const container = RunningContainer.start(podsOf(manifests)[role]!, { secrets, manifests });
  running.push(container);
  return container;
}

test('the migration ends well as the owner of the database, and a second one, too', async () => {
  for (const said of [
    /Applied:[^]*muster_app may run api and workers/,
    /The database is up to date\.[^]*muster_app may run api and workers/,
  ]) {
    const migration = start('migrate');
    expect(await migration.exit, migration.output).toBe(0);
    expect(migration.output).toMatch(said);
  }
});

test('API and worker become ready by their probes, work as a role without rights on tables, and stop in order', async () => {
  const [api, worker] = [start('api'), start('worker')];
  for (const container of [api, worker])
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) await container.succeeds(probe);
  const home = api.environment();
  expect(home).not.toHaveProperty('HOME');
  for (const secret of Object.values(secrets).flatMap((each) => Object.values(each)))
    expect(Object.values({ ...home, ...worker.environment() }).join('\n')).not.toContain(secret.trim());

  expect(api.get('http://127.0.0.1:8080/api/status')).toBe(401);
  expect(api.get('http://127.0.0.1:8080/api/status', undefined, { authorization: `Bearer ${TOKEN}` })).toBe(200);
  expect(api.get('http://127.0.0.1:8080/metrics')).toBe(401);
  expect(api.get('http://127.0.0.1:8080/metrics', undefined, { authorization: 'Bearer a-long-token-for-metrics' })).toBe(200);

  for (const container of [api, worker]) {
    expect(await container.stop(), container.output).toBe(0);
    expect(container.output).not.toMatch(/"level":(50|60)|"level":"(error|fatal)"/);
  }
});

test('a command in the pod of the API finds it', async () => {
  const api = start('api');
  await api.succeeds('readinessProbe');
  expect(api.command(['/app/bin/muster', 'status', '--json'])).toContain('companies');
  await api.stop();
});

test('KEDA is told how many companies are due, as a role that may see no more than that', async () => {
  const [trigger] = find(manifests, 'ScaledObject').spec['triggers'] as { metadata: { query: string } }[];
  const url = new URL(server.url);
  url.pathname = 'muster';
  const owner = new pg.Client(url.href);
  await owner.connect();
  await owner.query('GRANT USAGE ON SCHEMA muster TO keda');
  await owner.query('GRANT SELECT (status, start_after) ON muster.runs TO keda');
  await owner.query('GRANT SELECT (status, next_sync_at) ON muster.connections TO keda');
  await owner.query(
    `INSERT INTO muster.connections (environment, company_id, status, next_sync_at) SELECT 'test', gen_random_uuid(), 'active', now() + at
     FROM unnest(ARRAY[interval '-1 minute', '-2 minutes', '1 hour']) AS at`,
  );
  await owner.end();
  [url.username, url.password] = ['keda', 'c'];
  const keda = new pg.Client(url.href);
  await keda.connect();
  const { rows } = await keda.query<Record<string, string>>(trigger!.metadata.query);
  await keda.end();
  expect(rows.map((row) => Object.values(row))).toEqual([['2']]);
});
