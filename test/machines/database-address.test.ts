import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/db/connection/database.js';
import { migrate } from '../../src/db/schema/migrate.js';
import { Deployment } from '../process/deployment.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { anyPort } from '../support/port.js';
import { PostgresServer } from '../support/postgres-server.js';
import { startMuster } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

const KEYS = `k:${randomBytes(32).toString('base64')}`;

async function run(args: readonly string[], url: string) {
  const muster = startMuster(args, { DATABASE_URL: url, MUSTER_ENCRYPTION_KEYS: KEYS, LOG_LEVEL: 'error' });
  const { code } = await muster.exit;
  return { code, stdout: muster.stdout, stderr: muster.stderr };
}

async function asAdmin(url: string, ...statements: string[]): Promise<void> {
  const admin = new pg.Client(url);
  await admin.connect();
  for (const statement of statements) await admin.query(statement);
  await admin.end();
}

describe('one server', () => {
  let server: PostgresServer;
  let port: string;

  beforeAll(async () => {
    server = await PostgresServer.start();
    ({ port } = new URL(server.url));
    await asAdmin(
      server.url,
      `CREATE ROLE "m@x y" LOGIN PASSWORD 'p/w:%'`,
      'CREATE DATABASE "my db" OWNER "m@x y"',
      'CREATE DATABASE "café" OWNER "m@x y"',
      `CREATE ROLE "it's" LOGIN PASSWORD 'p/w:%'`,
    );
  });
  afterAll(() => server.remove());

  test('is reached by its socket, whose folder is the host or a parameter', async () => {
    const { username, password } = new URL(server.url);
    const folder = encodeURIComponent(server.socketFolder);
    for (const url of [
      `postgres://${username}:${password}@${folder}:${port}/postgres`,
      `postgres://${username}:${password}@/postgres?host=${server.socketFolder}&port=${port}`,
      `postgres://${username}:${password}@:${port}/postgres?host=${folder}&sslmode=verify-full`,
    ]) {
      expect(await run(['migrate'], url)).toMatchObject({ code: 0, stderr: '' });
      expect((await run(['doctor'], url)).stdout).toMatch(/^ok +database +PostgreSQL .* database postgres,/m);
    }
  });

  test.each([
    ['a folder without one', () => tmpdir(), /there is no such socket/],
    ['a file', () => '/etc/passwd', /there is no such socket/],
  ])('%s is named, and the password is not', async (_what, folder, reason) => {
    const { code, stderr } = await run(['migrate'], `postgres://muster:c4n4ry-word@/muster?host=${folder()}&port=6000`);
    expect(code).toBe(1);
    expect(stderr).toMatch(reason);
    expect(stderr).toContain(`PostgreSQL at ${folder()}/.s.PGSQL.6000 cannot be used`);
    expect(stderr).not.toContain('c4n4ry');
  });

  test.each(['my%20db', 'caf%C3%A9'])('user, password and database are decoded in %s', async (database) => {
    const at = (user: string, password = 'p%2Fw%3A%25', name = database) =>
      `postgres://${user}:${password}@127.0.0.1:${port}/${name}`;
    const owner = at('m%40x%20y');
    expect(await run(['migrate'], owner)).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await run(['doctor'], owner);
    expect(stdout).toContain(`database ${decodeURIComponent(database)}, encoding UTF8, role m@x y`);
    expect((await run(['migrate'], at('m%40x%20y', 'c4n4ry-word'))).stderr).toContain(
      `the server at 127.0.0.1:${port} refuses this password of the user m@x y [`,
    );
    expect((await run(['migrate'], at('m%40x%20y', undefined, 'no%20such'))).stderr).toContain(
      'the database no such does not exist',
    );
    // The command for the shell is quoted, and it works.
    const { code, stderr } = await run(['worker'], at('it%27s'));
    expect([code, stderr]).toEqual([2, expect.stringContaining(String.raw`muster migrate --grant-runtime 'it'\''s'`)]);
    expect(await run(['migrate', '--grant-runtime', "it's", '--grant', 'm@x y'], owner)).toMatchObject({ code: 0, stderr: '' });
    expect(await run(['migrate'], at('it%27s'))).toMatchObject({ code: 0, stderr: '' });
  });

  test('of which an address is wrong: one message with the variable, the fault and an example', async () => {
    for (const command of ['migrate', 'worker', 'up', 'publish']) {
      const { code, stderr } = await run([command], 'postgres://u:c4n/4ry@127.0.0.1/muster');
      expect(code).toBe(2);
      expect(stderr).toMatch(
        /^muster: Muster cannot start: 1 setting is wrong or missing\. \[invalid_configuration\]\n {2}DATABASE_URL: must be a URL; .* \(for example: postgres:\/\/muster:password@db\.example\.com:5432\/muster\)\n$/,
      );
    }
  });
});

describe('several servers, of which one is the primary', () => {
  let servers: PostgresServer[];

  beforeAll(async () => {
    const primary = await PostgresServer.start();
    servers = [await primary.startStandby(), primary];
  });
  afterAll(async () => {
    for (const server of servers) await server.remove();
  });

  /** A port where nothing listens, then the standby, then the primary. */
  function address(): string {
    const [{ username, password, host: first }, { host: second }] = servers.map(({ url }) => new URL(url)) as [URL, URL];
    return `postgres://${username}:${password}@127.0.0.1:${anyPort()},${first},${second}/postgres?target_session_attrs=read-write`;
  }

  test('every command finds it', async () => {
    const url = address();
    for (const command of ['migrate', 'publish']) expect(await run([command], url), command).toMatchObject({ code: 0 });
    const { stdout } = await run(['doctor'], url);
    expect(stdout).toMatch(/^ok +database +PostgreSQL/m);
    expect(stdout).not.toContain('standby');
  });

  test('where none is one, each is named with its reason', async () => {
    const [standby] = servers as [PostgresServer];
    const { username, password, host } = new URL(standby.url);
    const nobody = `127.0.0.1:${anyPort()}`;
    const { code, stderr } = await run(['migrate'], `postgres://${username}:${password}@${host},${nobody}/postgres`);
    expect(code).toBe(1);
    expect(stderr).toContain(`${host}: it is a standby; ${nobody}: the connection was refused`);
    expect(stderr).not.toContain(password);
  });

  test('a wrong password is said to be one', async () => {
    const { code, stderr } = await run(['migrate'], address().replace(/:[^:@]+@/, ':c4n4ry-word@'));
    expect([code, stderr]).toEqual([2, expect.stringMatching(/refuses this password of the user muster \[/)]);
    expect(stderr).not.toContain('c4n4ry');
  });

  test('after a failover the processes go on with the new one, and what is started finds it', async () => {
    const [standby, primary] = servers as [PostgresServer, PostgresServer];
    await migrate(address(), pino({ level: 'silent' }));
    const url = address();
    const db = openDatabase({ url });
    const deployment = await Deployment.open({
      database: { url, db, close: () => db.close() },
      sandbox: { companies: [{ name: 'Lasting', employees: 1_234 }] },
    });
    onTestFinished(() => deployment.close());
    const processes = [await deployment.startApi(), await deployment.startWorker()];
    const { companyId } = deployment.sandbox.companies[0]!;
    await deployment.onboard(companyId);
    const first = await deployment.runEnd(companyId);
    expect(first).toMatchObject({ status: 'succeeded' });
    await waitFor(() => hasAll(primary, standby), { what: 'the standby to have all that the primary has' });

    await primary.stop('immediate');
    await asAdmin(standby.url, 'SELECT pg_promote()');
    const sync = () => deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
    await waitFor(async () => (await sync().catch(() => undefined))?.status === 202, { what: 'the API to take a run' });
    const second = await deployment.runEnd(companyId);
    expect([second.status, second.id === first.id]).toEqual(['succeeded', false]);
    expect(await mirrored(db, 'employees', companyId)).toEqual(upstream(deployment.sandbox, 'employees', companyId));
    expect((await deployment.fetch('/readyz')).status).toBe(200);
    expect(await run(['migrate'], url)).toMatchObject({ code: 0, stderr: '' });
    const exported = await run(['export', 'employees', '--format', 'ndjson', '--output', '-'], url);
    expect([exported.code, exported.stdout.trim().split('\n').length]).toEqual([0, 1_234]);
    for (const process of processes) process.kill('SIGTERM');
    for (const { exit } of processes) expect(await exit).toMatchObject({ code: 0 });
  });
});

/** Whether the standby has replayed all that the primary has written. */
async function hasAll(primary: PostgresServer, standby: PostgresServer): Promise<boolean> {
  const [written, replayed] = await Promise.all(
    [
      [primary, 'pg_current_wal_lsn()'],
      [standby, 'pg_last_wal_replay_lsn()'],
    ].map(async ([server, place]) => {
      const client = new pg.Client((server as PostgresServer).url);
      await client.connect();
      const { rows } = await client.query<{ at: string }>(`SELECT ${String(place)} - '0/0' AS at`).finally(() => client.end());
      return Number(rows[0]!.at);
    }),
  );
  return replayed! >= written!;
}
