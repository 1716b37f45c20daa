import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import { PostgresServer } from '../support/postgres-server.js';
import { startMuster } from '../support/process.js';
import { stockPrograms } from '../support/stock-postgres.js';

// The scripts of docker-compose.yml against the PostgreSQL that this machine's packages installed, as the containers would run them.

const DOCKER = new URL('../../docker/', import.meta.url).pathname;

/** Throws where the script fails, or says anything. */
function run(script: string, args: readonly string[], env: NodeJS.ProcessEnv): void {
  const { status, stderr } = spawnSync('sh', [join(DOCKER, script), ...args], { env, encoding: 'utf8' });
  if (status !== 0 || stderr !== '') throw new Error(`${script} ended with ${status}: ${stderr}`);
}

let folder: string;
let server: PostgresServer;
let deployment: Deployment;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-compose-'));
  run('make-secrets.sh', [folder], process.env);
  server = await PostgresServer.start({ programs: stockPrograms() });
  const { hostname, port, username, password } = new URL(server.url);
  const env = {
    ...process.env,
    PGHOST: hostname,
    PGPORT: port,
    PGPASSWORD: password,
    POSTGRES_USER: username,
    SECRETS: join(folder, 'secrets/postgres'),
  };
  run('create-roles.sh', [], env);
});
afterAll(async () => {
  await deployment?.close();
  await server.remove();
  rmSync(folder, { recursive: true });
});

/** What the container reads, with the server's address of here. */
function urlOf(service: string): string {
  const url = new URL(readFileSync(join(folder, 'secrets', service, 'database_url'), 'utf8').trim());
  url.host = new URL(server.url).host;
  return url.href;
}

test('a company is mirrored by api and worker without rights of the owner, and neither role is a superuser', async () => {
  deployment = await Deployment.open({ sandbox: { companies: [{ name: 'One', employees: 12 }] } });
  deployment.env.DATABASE_URL = urlOf('migrate');
  const migration = startMuster(['migrate', '--grant-runtime', 'muster_app'], deployment.env);
  expect(await migration.exit, migration.stderr).toMatchObject({ code: 0 });
  deployment.env.DATABASE_URL = urlOf('muster');
  const processes = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  const [company] = deployment.sandbox.companies;
  await deployment.onboard(company!.companyId);
  expect(await deployment.runEnd(company!.companyId)).toMatchObject({
    status: 'succeeded',
    walks: [{ verified: true }, { verified: true }],
  });
  for (const running of processes) running.kill('SIGTERM');
  for (const { exit } of processes) expect(await exit).toMatchObject({ code: 0 });

  for (const service of ['migrate', 'muster']) {
    const client = new pg.Client(urlOf(service));
    await client.connect();
    const { rows } = await client.query('SELECT rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = current_user');
    expect(rows).toEqual([{ rolsuper: false, rolcreaterole: false, rolcreatedb: false }]);
    await expect(client.query(`COPY (SELECT 1) TO PROGRAM 'cat'`)).rejects.toMatchObject({ code: '42501' });
    await client.end();
  }
});
