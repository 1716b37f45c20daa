import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RunningContainer } from './container.js';
import type { Container, Pod } from './helm.js';
import { RoleDatabase, SOCKETS } from './role-database.js';

// systemd's own judgement of the units, which only reads them: no systemd is started here. Then the processes that they describe, with the variables, the
// credentials and the sight of /proc that they give.

const UNITS = fileURLToPath(new URL('../../deploy/systemd', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../bin/muster', import.meta.url));
const names = readdirSync(UNITS).filter((file) => file.endsWith('.service'));
const textOf = (name: string) => readFileSync(join(UNITS, name), 'utf8');

describe('systemd', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'muster-units-'));
    mkdirSync(join(folder, 'etc/systemd/system'), { recursive: true });
    for (const name of names)
      writeFileSync(join(folder, 'etc/systemd/system', name), textOf(name).replace('/opt/muster/bin/muster', PROGRAM));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const analyze = (...args: string[]) =>
    spawnSync('systemd-analyze', args, { cwd: join(folder, 'etc/systemd/system'), encoding: 'utf8' });
  const started = ['./muster-migrate.service', './muster-api.service', './muster-worker@9101.service'];

  test('understands every line', () => {
    const { status, stderr, error } = analyze('verify', '--man=no', ...started);
    expect([error, status, stderr]).toEqual([undefined, 0, '']);
    writeFileSync(
      join(folder, 'etc/systemd/system/wrong.service'),
      textOf('muster-api.service').replace('Restart=', 'Restarts='),
    );
    expect(analyze('verify', '--man=no', './wrong.service').stderr).toMatch(/Unknown key .*'Restarts'/);
  });

  test.each(['muster-migrate.service', 'muster-api.service', 'muster-worker@9101.service'])(
    'has %s exposed to little, 1.3 of 10',
    (name) => {
      const { status, stdout } = analyze('security', '--offline=true', '--threshold=13', `--root=${folder}`, name);
      expect(status, stdout).toBe(0);
    },
  );
});

describe('the processes', () => {
  let database: RoleDatabase;
  const running: RunningContainer[] = [];
  beforeAll(async () => {
    database = await RoleDatabase.start();
  });
  afterAll(async () => {
    for (const container of running) container.remove();
    await database?.remove();
  });

  const secrets = {
    owner_database_url: RoleDatabase.address('muster_owner'),
    database_url: RoleDatabase.address('muster_app'),
    encryption_keys: `k1:${randomBytes(32).toString('base64')}`,
    admin_token: randomBytes(24).toString('hex'),
    client_secret: 'the-client-secret',
  };

  /** Starts what a unit describes, with the client's secret as the drop-in of docs/systemd.md adds it. */
  function start(name: string, instance = ''): RunningContainer {
    const text = `${textOf(name)}LoadCredential=client_secret:/etc/muster/secrets/client_secret\nEnvironment=PRODUCTION_CLIENT_SECRET_FILE=%d/client_secret\n`;
    const valuesOf = (directive: string) =>
      [...text.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value = '']) => value);
    const specified = (value: string) =>
      value.replaceAll('%d', '/run/credentials').replaceAll('%S', '/var/lib').replaceAll('%i', instance);
    const pairs = [
      ...valuesOf('Environment').flatMap((value) => value.split(' ')),
      ...readFileSync(join(UNITS, 'muster.env'), 'utf8')
        .split('\n')
        .filter((line) => /^\w/.test(line)),
    ];
    const env = pairs.map((pair) => ({ name: pair.split('=')[0]!, value: specified(pair.slice(pair.indexOf('=') + 1)) }));
    const credentials = valuesOf('LoadCredential').map((value) => {
      const [path = '', file = ''] = value.split(':');
      return { key: file.replace('/etc/muster/secrets/', ''), path };
    });
    const probe = (path: string) => ({ httpGet: { path, port: 'probes' }, timeoutSeconds: 6 });
    const container: Container = {
      name,
      image: '',
      // Of the migration, one try of its loop.
      args: /\/bin\/muster ([^;]*)/.exec(valuesOf('ExecStart')[0]!)![1]!.split(' '),
      env,
      envFrom: [],
      securityContext: {},
      resources: {},
      volumeMounts: [
        { name: 'credentials', mountPath: '/run/credentials', readOnly: true },
        { name: 'state', mountPath: '/var/lib/muster' },
        { name: 'sockets', mountPath: SOCKETS },
      ],
      ports: [{ name: 'probes', containerPort: Number(env.find((each) => each.name === 'PROBE_PORT')?.value) }],
      readinessProbe: probe('/readyz'),
    };
    const volumes: Pod['volumes'] = [
      { name: 'credentials', secret: { secretName: 'secrets', defaultMode: 0o444, items: credentials } },
      { name: 'state', emptyDir: {} },
      { name: 'sockets', hostPath: { path: database.sockets } },
    ];
    expect(text).toContain('ProcSubset=pid\n');
    const started = RunningContainer.start(
      { containers: [container], volumes },
      { secrets: { secrets }, manifests: [] },
      'subset=pid,hidepid=invisible',
    );
    running.push(started);
    return started;
  }

  test('migrate, become ready, and stop in order', async () => {
    const migration = start('muster-migrate.service');
    expect(await migration.exit, migration.output).toBe(0);
    const served = [start('muster-api.service'), start('muster-worker@.service', '9101')];
    for (const each of served) await each.succeeds('readinessProbe');
    for (const each of served) expect(await each.stop(), each.output).toBe(0);
  });
});
