import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { pairs, parseDockerfile } from '../../scripts/docker/dockerfile.js';
import { loadServerConfig } from '../../src/config/config.js';
import { helpOf, SETTING_NAMES, type SettingName } from '../../src/config/settings.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(path.join(PROJECT, file), 'utf8');

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly deploy?: { readonly replicas?: number };
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const services = Object.entries(compose.services);
const ours = services.filter(([, { build }]) => build !== undefined);
const settings = SETTING_NAMES;

/** The settings that a service is given, by a value or by a file. */
const settingsOf = ([, { environment = {} }]: readonly [string, Service]) =>
  Object.keys(environment).map((name) => name.replace(/_FILE$/, '') as SettingName);

describe('docker-compose.yml', () => {
  test('runs commands that exist', () => {
    const help = spawnSync(path.join(PROJECT, 'bin/muster'), ['--help'], { encoding: 'utf8' });
    expect(help.stderr).toBe('');
    const commands = [...help.stdout.matchAll(/^ {2}([a-z-]+)\b/gm)].map(([, command]) => command);
    expect(ours.map(([, { command }]) => command?.[0])).toEqual(['migrate', 'api', 'worker']);
    for (const [, { command }] of ours) expect(commands).toContain(command?.[0]);
  });

  test('names settings that exist', () => {
    for (const service of ours) expect(settings).toEqual(expect.arrayContaining(settingsOf(service)));
  });

  test('hands on every variable of a provider, and those of an issuer and of connect pages to the API alone', () => {
    const provider = settings.filter((name) => /^(PRODUCTION|TEST)_/.test(name));
    const issuer = settings.filter((name) => /^(OIDC|OPERATOR|CONNECT)_/.test(name));
    expect([...provider, ...issuer]).toHaveLength(30);
    for (const service of ours) {
      expect(settingsOf(service)).toEqual(expect.arrayContaining(provider));
      expect(settingsOf(service).filter((name) => issuer.includes(name))).toHaveLength(service[0] === 'api' ? issuer.length : 0);
    }
  });

  test('hands on secrets as files, each to those who need it', () => {
    const secrets = settings.filter((name) => helpOf(name).secret);
    for (const [, { environment = {} }] of services) {
      expect(
        Object.keys(environment).filter((name) => secrets.includes(name as SettingName) || name.endsWith('PASSWORD')),
      ).toEqual([]);
      for (const [name, value] of Object.entries(environment))
        if (name.endsWith('_FILE')) expect(value).toMatch(/^(\/run\/secrets\/|\$\{)/);
    }
    const shown = services.map(([name, { volumes = [] }]) => [
      name,
      volumes.flatMap((volume) => /^\.\/secrets\/(\w+):.*:ro$/.exec(volume)?.[1] ?? []),
    ]);
    expect(Object.fromEntries(shown)).toEqual({
      postgres: ['postgres'],
      redis: ['redis'],
      migrate: ['muster', 'migrate'],
      api: ['muster', 'api'],
      worker: ['muster'],
    });
  });

  test('migrates as the owner, and runs as a role with rights on data alone', () => {
    expect(compose.services.migrate?.command).toEqual(['migrate', '--grant-runtime', 'muster_app']);
    expect(compose.services.migrate?.environment?.['DATABASE_URL_FILE']).toBe('/run/secrets/migrate/database_url');
    for (const name of ['api', 'worker'])
      expect(compose.services[name]?.environment?.['DATABASE_URL_FILE']).toBe('/run/secrets/muster/database_url');
  });

  test('leaves no container a way up', () => {
    for (const [, service] of services) {
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
      expect(service.cap_add).toBeUndefined();
      // The image of ours says itself that it is not root's.
      if (service.build === undefined) expect(service.user).toMatch(/^(postgres|redis)$/);
    }
  });

  test('hands on every setting but those that the image or the file itself decides', () => {
    const given = new Set(ours.flatMap(settingsOf));
    expect(settings.filter((name) => !given.has(name)).toSorted()).toEqual(['HOST', 'MUSTER_HOME', 'PORT']);
  });

  test('waits for services that can say when they are ready', () => {
    const edges = services.flatMap(([, { depends_on = {} }]) => Object.entries(depends_on));
    expect(edges.length).toBeGreaterThan(0);
    for (const [name, { condition }] of edges) {
      const service = compose.services[name];
      if (condition === 'service_healthy') expect(service?.healthcheck?.test).toBeDefined();
      else expect({ name, condition }).toEqual({ name: 'migrate', condition: 'service_completed_successfully' });
    }
    for (const name of ['api', 'worker']) expect(compose.services[name]?.depends_on).toHaveProperty('migrate');
  });

  test('pins every image to a version', () => {
    for (const [, { image }] of services) expect(image).toMatch(/^[a-z]+:(?!latest)[\w.-]+$/);
  });

  test('keeps data in named volumes', () => {
    const mounted = services.flatMap(([, { volumes = [] }]) => volumes.map((volume) => volume.split(':')[0]!));
    const used = mounted.filter((name) => !name.startsWith('./'));
    expect(used.toSorted()).toEqual(Object.keys(compose.volumes).toSorted());
  });

  test('lets Redis lose nothing, and only the API listen', () => {
    expect(compose.services.redis?.command?.join(' ')).toContain('--maxmemory-policy noeviction');
    expect(compose.services.redis?.command?.join(' ')).toContain('requirepass $$(cat ');
    expect(services.filter(([, { ports }]) => ports).map(([name]) => name)).toEqual(['api']);
    // The image's own check finds a worker by this.
    expect(compose.services.worker?.environment?.['PROBE_PORT']).toMatch(/^\d+$/);
    expect(compose.services.worker?.healthcheck).toBeUndefined();
    expect(compose.services.worker?.deploy?.replicas).toBeGreaterThan(1);
  });

  test('has its variables in .env.example, those it requires first', () => {
    const used = [...read('docker-compose.yml').matchAll(/\$\{(\w+)(:[?-])/g)];
    const variables = [...read('.env.example').matchAll(/^(\w+)=/gm)].map(([, name]) => name ?? '');
    expect(new Set(variables)).toEqual(new Set(used.map(([, name]) => name)));
    const required = new Set(used.filter(([, , sign]) => sign === ':?').map(([, name]) => name));
    expect(new Set(variables.slice(0, required.size))).toEqual(required);
  });
});

test('its secrets are made once, are nobody else\u2019s on this machine, and are settings that Muster takes', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'muster-secrets-'));
  const make = () => spawnSync('sh', [path.join(PROJECT, 'docker/make-secrets.sh'), folder], { encoding: 'utf8' });
  const secret = (name: string) => readFileSync(path.join(folder, 'secrets', name), 'utf8');
  try {
    expect(make()).toMatchObject({ status: 0, stderr: '' });
    const url = secret('muster/database_url');
    expect(make()).toMatchObject({ status: 0, stderr: '' });
    expect(secret('muster/database_url')).toBe(url);
    expect(statSync(path.join(folder, 'secrets')).mode & 0o777).toBe(0o700);
    const files = Object.fromEntries(
      ['api', 'worker'].flatMap((name) =>
        Object.entries(compose.services[name]?.environment ?? {})
          .filter(([, value]) => value.startsWith('/run/secrets/'))
          .map(([variable, value]) => [variable, value.replace('/run', folder)]),
      ),
    );
    expect(Object.keys(files)).toHaveLength(4);
    const provider = {
      TEST_BASE_URL: 'https://a.example',
      TEST_AUTH_URL: 'https://b.example',
      TEST_CLIENT_ID: 'c',
      TEST_CLIENT_SECRET: 'd',
    };
    const config = loadServerConfig({ ...provider, ...files, PUBLIC_URL: 'https://muster.example' });
    expect(new URL(config.databaseUrl!)).toMatchObject({ username: 'muster_app', hostname: 'postgres', pathname: '/muster' });
    expect(config.redisUrl!).toBe(`redis://:${secret('redis/password').trim()}@redis:6379`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('no secrets are made while .env has one as a value, which no container would get', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'muster-secrets-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const make = () => spawnSync('sh', [path.join(PROJECT, 'docker/make-secrets.sh'), folder], { encoding: 'utf8' });
  const old = ['MUSTER_ENCRYPTION_KEYS', 'MUSTER_ADMIN_TOKEN', 'PRODUCTION_CLIENT_SECRET', 'NOTIFY_WEBHOOK_URL'];
  writeFileSync(path.join(folder, '.env'), old.map((name) => `${name}=a\n`).join(''));
  const { status, stderr } = make();
  expect(status).toBe(1);
  for (const name of old) expect(stderr).toContain(`${name} in .env is not read`);
  expect(readdirSync(folder)).toEqual(['.env']);
  writeFileSync(
    path.join(folder, '.env'),
    `${read('.env.example')}\nNOTIFY_WEBHOOK_URL=\nPRODUCTION_CLIENT_SECRET_FILE=/run/secrets/muster/client_secret\n`,
  );
  expect(make()).toMatchObject({ status: 0, stderr: '' });
});

test('the example of a catalogue mounts it into each service that is told of it', () => {
  const [, lines = ''] = /as in\n((?:# {3}.*\n)+)/.exec(read('.env.example')) ?? [];
  const override = parse(lines.replaceAll(/^# {3}/gm, '')) as { readonly services: Readonly<Record<string, Service>> };
  const told = services.filter(([, { environment = {} }]) => 'MUSTER_CATALOGUE' in environment).map(([name]) => name);
  expect(Object.keys(override.services)).toEqual(told);
  for (const { volumes } of Object.values(override.services))
    expect(volumes).toEqual(['./catalogue.yaml:/etc/muster/catalogue.yaml:ro']);
});

test('the image sets settings that exist', () => {
  const env = parseDockerfile(read('Dockerfile')).filter(({ name }) => name === 'ENV');
  const names = env.flatMap(({ text }) => Object.keys(pairs(text))).filter((name) => name !== 'NODE_ENV');
  expect(names).toContain('HOST');
  expect(settings).toEqual(expect.arrayContaining(names));
});
