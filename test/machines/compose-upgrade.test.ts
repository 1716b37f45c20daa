import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { BackupServer } from '../support/backup-server.js';
import { PostgresServer } from '../support/postgres-server.js';
import { stockPrograms } from '../support/stock-postgres.js';
import { kept, makeFirstVersion } from '../upgrade/first-version.js';

// The move of docs/upgrading.md from the volume of 0.1.0 to one with the roles of docker/create-roles.sh. Its commands are run as they are written there, but for the
// container: dump and restore, then what the service `migrate` runs.

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const inContainer = [
  ...readFileSync(join(PROJECT, 'docs/upgrading.md'), 'utf8').matchAll(/^ *docker compose exec -T postgres (.*)$/gm),
].map(([, command = '']) => command);

test('the database of 0.1.0 moves to roles that are no superusers, with all of its rows', async () => {
  const server = await PostgresServer.start({ programs: stockPrograms() });
  const folder = mkdtempSync(join(tmpdir(), 'muster-move-'));
  onTestFinished(async () => {
    await server.remove();
    rmSync(folder, { recursive: true });
  });
  const { hostname, port, username, password } = new URL(server.url);
  const pgpass = join(folder, 'pgpass');
  writeFileSync(pgpass, `*:*:*:${username}:${password}\n*:*:*:*:secret\n`, { mode: 0o600 });
  const env = {
    PATH: [BackupServer.programs, process.env.PATH].join(delimiter),
    PGHOST: hostname,
    PGPORT: port,
    PGPASSFILE: pgpass,
    POSTGRES_USER: username,
    SECRETS: folder,
  };
  const run = (command: string, more: NodeJS.ProcessEnv = {}) =>
    execFileSync('sh', ['-c', command], { cwd: folder, env: { ...env, ...more }, encoding: 'utf8' });
  const urlOf = (role: string) => `postgres://${role}:secret@${hostname}:${port}/muster`;

  // The superuser has the name that the role of 0.1.0 had.
  run(`createdb --username=${username} muster`);
  await makeFirstVersion(Object.assign(new URL(server.url), { pathname: 'muster' }).href);
  const [dump = '', restore = ''] = inContainer;
  expect(dump).toMatch(/^pg_dump .* > muster.dump$/);
  run(dump);

  run(`dropdb --username=${username} muster`);
  for (const name of ['owner_password', 'app_password']) writeFileSync(join(folder, name), 'secret\n');
  run(`sh ${join(PROJECT, 'docker/create-roles.sh')}`);
  expect(restore).toMatch(/^pg_restore .* < muster.dump$/);
  run(restore);
  mkdirSync(join(folder, 'home'));
  const migrated = run(`${process.execPath} ${join(PROJECT, 'bin/muster')} migrate --grant-runtime muster_app`, {
    DATABASE_URL: urlOf('muster_owner'),
    MUSTER_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    MUSTER_HOME: join(folder, 'home'),
  });
  expect(migrated).toContain('muster_app may run api and workers.');

  const client = new pg.Client(urlOf('muster_app'));
  await client.connect();
  const { rows } = await client.query('SELECT seq::text FROM mirror.changes ORDER BY seq');
  await client.end();
  expect(rows.map(({ seq }: { seq: string }) => seq)).toEqual(kept.feed.map(({ seq }) => seq));
});
