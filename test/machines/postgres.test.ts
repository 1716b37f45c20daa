import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { generate } from 'selfsigned';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { prepareCluster } from '../../src/embedded/embedded-cluster.js';
import { startEmbeddedServer } from '../../src/embedded/embedded-server.js';
import { Deployment } from '../process/deployment.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { anyPort } from '../support/port.js';
import { startMuster } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

const KEYS = `k:${randomBytes(32).toString('base64')}`;
const logger = pino({ level: 'silent' });

async function asAdmin(url: string, ...statements: string[]): Promise<void> {
  const admin = new pg.Client(url);
  await admin.connect();
  for (const statement of statements) await admin.query(statement);
  await admin.end();
}

/** How a start ends that is refused: one line, and the code of a wrong configuration. */
async function refusal(url: string, command = 'worker'): Promise<string> {
  const muster = startMuster([command], { DATABASE_URL: url, MUSTER_ENCRYPTION_KEYS: KEYS, LOG_LEVEL: 'error' });
  expect(await muster.exit, muster.stderr).toEqual({ code: 2, signal: null });
  expect(muster.stderr).toMatch(/^muster: .* \[invalid_configuration\]\n$/);
  return muster.stderr;
}

test.each(['LATIN1', 'SQL_ASCII'])('a database in %s is refused, with the statement that makes one in UTF8', async (encoding) => {
  const url = new URL(inject('postgres').url);
  const name = `muster_test_${randomBytes(6).toString('hex')}`;
  await asAdmin(
    url.href,
    `CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
  );
  const there = new URL(url);
  there.pathname = name;
  for (const command of ['migrate', 'api'])
    expect(await refusal(there.href, command)).toContain(
      `has the encoding ${encoding}, in which not every record can be kept; make another one`,
    );
  await asAdmin(url.href, `DROP DATABASE ${name}`);
});

test('whatever the database has for a default, companies are mirrored', async () => {
  const deployment = await Deployment.open({
    sandbox: { companies: [{ name: 'Odd', employees: 1_234 }] },
    env: { SYNC_CRON: '0 3 * * *', SYNC_SPREAD_MINUTES: '0' },
  });
  const name = new URL(deployment.database.url).pathname.slice(1);
  const odd = {
    TimeZone: `'Asia/Yekaterinburg'`,
    DateStyle: 'German',
    IntervalStyle: 'iso_8601',
    bytea_output: 'escape',
    standard_conforming_strings: 'off',
    search_path: `''`,
    default_transaction_isolation: 'serializable',
    default_transaction_read_only: 'on',
    extra_float_digits: '0',
  };
  const statements = Object.entries(odd).map(([setting, value]) => `ALTER DATABASE ${name} SET ${setting} = ${value}`);
  await asAdmin(inject('postgres').url, ...statements);
  const processes = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  const { companyId } = deployment.sandbox.companies[0]!;
  await deployment.onboard(companyId);
  for (const unchanged of [0, 1_234]) {
    if (unchanged) await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
    expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, unchanged }, {}] });
  }
  expect(await mirrored(deployment.database.db, 'employees', companyId)).toEqual(
    upstream(deployment.sandbox, 'employees', companyId),
  );
  const { body } = await deployment.call('GET', `/api/companies/test/${companyId}`);
  expect((body as { next_sync_at: string }).next_sync_at).toMatch(/T03:00:00/);
  expect((await deployment.fetch('/readyz')).status).toBe(200);
  for (const process of processes) process.kill('SIGTERM');
  await Promise.all(processes.map(({ exit }) => exit));
  await deployment.close();
});

describe('a server of its own', () => {
  let home: string;
  let server: Awaited<ReturnType<typeof startEmbeddedServer>>;
  let authority: string;
  const data = () => join(home, 'postgres', 'data');

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'muster-machine-'));
    chmodSync(home, 0o755);
    server = await startEmbeddedServer({ home, logger });
    const names = { extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }] };
    const { cert, private: key } = generate([{ name: 'commonName', value: 'localhost' }], {
      keySize: 2048,
      algorithm: 'sha256',
      ...names,
    });
    authority = join(home, 'authority.crt');
    writeFileSync(authority, cert);
    for (const [file, text] of Object.entries({ 'server.crt': cert, 'server.key': key })) {
      writeFileSync(join(data(), file), text, { mode: 0o600 });
      chownSync(join(data(), file), statSync(data()).uid, statSync(data()).gid);
    }
  });

  afterAll(async () => {
    await server.stop();
    rmSync(home, { recursive: true });
  });

  function address(host: string, parameters: Record<string, string>): string {
    const url = new URL(server.url);
    url.hostname = host;
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  /** Whether its connections were encrypted, told by the server. */
  async function migrates(url: string, expected: 'TLS' | 'plain'): Promise<void> {
    const holder = new pg.Client(server.url);
    await holder.connect();
    await holder.query('SELECT pg_advisory_lock(72707369); DROP TABLE IF EXISTS public._prisma_migrations');
    for (const schema of ['muster', 'mirror', 'warehouse']) await holder.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    const migrate = startMuster(['migrate'], { DATABASE_URL: url, MUSTER_ENCRYPTION_KEYS: KEYS });
    await migrate.waitForOutput(/waiting for the migration lock/);
    const { rows } = await holder.query<{ ssl: boolean }>(
      `SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE application_name = 'muster migrate'`,
    );
    await holder.end();
    expect(await migrate.exit, migrate.stderr).toMatchObject({ code: 0 });
    expect(migrate.stderr).not.toContain('SECURITY WARNING');
    expect(rows).toEqual([{ ssl: expected === 'TLS' }]);
  }

  test('that offers no TLS: taken where none is asked for, refused in words where it is', async () => {
    await migrates(address('127.0.0.1', { sslmode: 'disable' }), 'plain');
    for (const sslmode of ['prefer', 'require', 'verify-full', 'no-verify'])
      expect(await refusal(address('127.0.0.1', { sslmode }))).toContain(
        'offers no TLS; switch it on there, or take sslmode out',
      );
  });

  test('with a certificate of its own: each sslmode does what is written', async () => {
    await asAdmin(server.url, 'ALTER SYSTEM SET ssl = on', 'SELECT pg_reload_conf()');
    await waitFor(() => asAdmin(address('127.0.0.1', { sslmode: 'no-verify' })).then(() => true));
    for (const sslmode of ['prefer', 'require', 'verify-ca', 'verify-full'])
      expect(await refusal(address('localhost', { sslmode }))).toMatch(
        /has no trusted issuer; name a file.*sslrootcert=.*no-verify/,
      );
    for (const sslmode of ['require', 'verify-full'])
      await migrates(address('localhost', { sslmode, sslrootcert: authority }), 'TLS');
    expect(await refusal(address('127.0.0.1', { sslmode: 'require', sslrootcert: authority }))).toMatch(
      /not one for 127.0.0.1:\d+; use the name/,
    );
    await migrates(address('127.0.0.1', { sslmode: 'verify-ca', sslrootcert: authority, uselibpqcompat: 'true' }), 'TLS');
    await migrates(address('127.0.0.1', { sslmode: 'require', uselibpqcompat: 'true' }), 'TLS');
    await migrates(address('127.0.0.1', { sslmode: 'no-verify' }), 'TLS');
    await migrates(address('127.0.0.1', {}), 'plain');
  });

  test('the files of certificates are looked at before anything is asked', async () => {
    expect(await refusal(address('localhost', { sslmode: 'require', sslrootcert: '/no/such.crt' }))).toContain(
      'the file of sslrootcert cannot be read (ENOENT): /no/such.crt',
    );
    expect(await refusal(address('localhost', { sslmode: 'verify-ca', uselibpqcompat: 'true' }))).toContain('needs sslrootcert');
  });

  test('that takes connections over TLS alone says so', async () => {
    const hba = join(data(), 'pg_hba.conf');
    writeFileSync(hba, 'hostssl all all all scram-sha-256\n');
    await asAdmin(address('127.0.0.1', { sslmode: 'no-verify' }), 'SELECT pg_reload_conf()');
    const url = address('127.0.0.1', {});
    await waitFor(() =>
      asAdmin(url).then(
        () => false,
        () => true,
      ),
    );
    expect(await refusal(url)).toMatch(
      /refuses the user muster; where its pg_hba.conf takes connections over TLS alone, add \?sslmode=require/,
    );
    writeFileSync(hba, 'host all all all scram-sha-256\n');
    await asAdmin(address('127.0.0.1', { sslmode: 'no-verify' }), 'SELECT pg_reload_conf()');
    await waitFor(() => asAdmin(url).then(() => true));
  });

  test('that is a standby is refused, whether it has the tables or not', async () => {
    await server.stop();
    writeFileSync(join(data(), 'standby.signal'), '');
    const { program, account, data: folder } = await prepareCluster(home);
    const url = new URL(address('127.0.0.1', {}));
    url.port = String(anyPort());
    // A standby has to take as many connections as its primary did, or it ends.
    const settings = ['-p', url.port, '-N', '200', '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='];
    const [file, ...args] = [...account.prefix, program, '-D', folder, ...settings];
    const standby = spawn(file!, args, { ...account.ids, cwd: '/', stdio: 'ignore' });
    const ended = once(standby, 'exit');
    try {
      await waitFor(() => asAdmin(url.href).then(() => true));
      for (const command of ['migrate', 'api', 'worker'])
        expect(await refusal(url.href, command)).toContain('the server is a standby, which only reads; name the primary');
    } finally {
      standby.kill('SIGINT');
      await ended;
    }
  });
});
