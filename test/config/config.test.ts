import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadConfig, loadServerConfig } from '../../src/config/config.js';
import { helpOf, SETTING_NAMES } from '../../src/config/settings.js';
import { FaultsError } from '../../src/core/errors.js';
import { Secret } from '../../src/core/secret.js';
import { nightExportAddress } from '../../src/warehouse/export/export-settings.js';

const ROWS = SETTING_NAMES.map((name) => ({ name, ...helpOf(name) }));
const KEY = Buffer.alloc(32, 7).toString('base64');
const PROVIDER = {
  PRODUCTION_BASE_URL: 'https://api.example.com/root',
  PRODUCTION_AUTH_URL: 'https://login.example.com',
  PRODUCTION_CLIENT_ID: 'muster',
  PRODUCTION_CLIENT_SECRET: 'hush-hush',
};

describe('loadServerConfig', () => {
  const missing = '/nowhere/catalogue.yaml';

  test('says at once what is wrong with the settings and with the catalogue', () => {
    const wrong = () => loadServerConfig({ PORT: 'canary', MUSTER_CATALOGUE: missing });
    expect(wrong).toThrow(expect.objectContaining({ code: 'invalid_configuration' }));
    for (const where of ['PORT: ', 'MUSTER_CATALOGUE: ']) expect(wrong).toThrow(where);
  });

  test('says what is wrong with either', () => {
    expect(() => loadServerConfig({ PORT: 'canary' })).toThrow(
      /^Muster cannot start: 1 setting is wrong or missing\.\n {2}PORT: /,
    );
    expect(() => loadServerConfig({ MUSTER_CATALOGUE: missing })).toThrow(expect.objectContaining({ code: 'invalid_catalogue' }));
    expect(loadServerConfig({ MUSTER_CATALOGUE: ' ' })).toEqual(loadConfig({}));
    expect(() => loadServerConfig({ EXPORT_TO: '/exports', EXPORT_RESOURCES: 'employees,canaries', PORT: 'canary' })).toThrow(
      /2 settings are wrong[^]*PORT: [^]*EXPORT_RESOURCES: entry 2 is not in the catalogue, which has employees, departments/,
    );
  });
});

/** With the texts of the secrets, which nothing shows by itself. */
function revealed(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal();
  if (value instanceof URL) return value.href;
  if (Array.isArray(value)) return value.map(revealed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, revealed(member)]));
}

function faultsOf(env: NodeJS.ProcessEnv): Record<string, string> {
  try {
    loadConfig(env);
  } catch (error) {
    if (!(error instanceof FaultsError)) throw error;
    expect(error.code).toBe('invalid_configuration');
    for (const fault of error.faults) {
      expect(fault.example, fault.where).toBeTruthy();
      for (const part of [fault.where, fault.problem, fault.example]) expect(error.message).toContain(part);
    }
    return Object.fromEntries(error.faults.map(({ where, problem }) => [where, problem]));
  }
  return {};
}

describe('loadConfig', () => {
  test('needs nothing', () => {
    const config = loadConfig({});
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      schedule: { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 },
      providers: {},
      logLevel: 'info',
    });
    expect(config.publicUrl.href).toBe('http://127.0.0.1:8080/');
    for (const name of ['databaseUrl', 'redisUrl', 'adminToken', 'encryptionKeys', 'cataloguePath', 'refreshMarginSeconds']) {
      expect(config).not.toHaveProperty(name);
    }
  });

  test('takes an empty variable for an unset one', () => {
    const empty = Object.fromEntries(ROWS.map(({ name }) => [name, ' ']));
    expect(loadConfig(empty)).toEqual(loadConfig({}));
  });

  test('reads what is set', () => {
    const config = loadConfig({
      ...PROVIDER,
      DATABASE_URL: 'postgres://a:b@db/muster',
      MUSTER_ENCRYPTION_KEYS: ` new:${KEY}, old:${Buffer.alloc(32, 8).toString('base64')}`,
      PUBLIC_URL: 'https://muster.example.com/',
      REFRESH_MARGIN_SECONDS: '0',
      PORT: '0',
    });
    expect(config.encryptionKeys?.map(({ id }) => id)).toEqual(['new', 'old']);
    expect(config.encryptionKeys?.[0]?.key.reveal()).toBe(KEY);
    expect(config.providers.production?.clientSecret.reveal()).toBe('hush-hush');
    expect(config.providers.production?.redirectUri.href).toBe('https://muster.example.com/oauth/callback');
    expect(config.providers).not.toHaveProperty('test');
    expect(config).toMatchObject({ port: 0, refreshMarginSeconds: 0, databaseUrl: 'postgres://a:b@db/muster' });
  });

  test('takes a folder or one of S3 for exports, and says where they go', () => {
    expect(loadConfig({}).exports).toBeUndefined();
    expect(loadConfig({ EXPORT_TO: '/exports/', EXPORT_RESOURCES: 'employees, departments' }).exports).toEqual({
      to: '/exports',
      format: 'parquet',
      resources: ['employees', 'departments'],
    });
    const { exports } = loadConfig({ EXPORT_TO: 's3://bucket/a/b//', EXPORT_FORMAT: 'csv' });
    const night = { night: '2026-11-24', environment: 'production', resource: 'employees' } as const;
    expect(nightExportAddress(exports!, night)).toBe('s3://bucket/a/b/production/employees/2026-11-24.csv');
    expect(nightExportAddress({ to: '/exports', format: 'parquet' }, night)).toBe(
      '/exports/production/employees/2026-11-24.parquet',
    );
    expect(loadConfig({ EXPORT_TO: '/exports', EXPORT_REQUIRE_VERIFIED: 'yes' }).exports).toMatchObject({ requiresProofs: true });
    const dated = loadConfig({ EXPORT_TO: '/exports', EXPORT_LAYOUT: 'date', EXPORT_CHANGES: 'yes' }).exports!;
    expect(dated).toMatchObject({ layout: 'date', makesChanges: true });
    const folder = '/exports/production/employees/date=2026-11-24';
    expect(nightExportAddress(dated, night)).toBe(`${folder}/employees.parquet`);
    expect(nightExportAddress(dated, night, 'changes')).toBe(`${folder}/employees.changes.parquet`);
    expect(nightExportAddress({ to: '/exports', format: 'csv' }, night, 'changes')).toBe(
      '/exports/production/employees/2026-11-24.changes.csv',
    );
    for (const name of ['EXPORT_LAYOUT', 'EXPORT_CHANGES'])
      expect(faultsOf({ EXPORT_TO: '/exports', [name]: 'x' })).toHaveProperty(name);
    expect(faultsOf({ EXPORT_CHANGES: 'yes' })).toHaveProperty('EXPORT_TO');
    expect(faultsOf({ EXPORT_REQUIRE_VERIFIED: 'no' })).toHaveProperty('EXPORT_TO');
    expect(faultsOf({ EXPORT_FORMAT: 'csv', EXPORT_RESOURCES: 'employees' })).toEqual({
      EXPORT_TO: expect.stringContaining('missing'),
    });
    expect(faultsOf({ EXPORT_TO: '/exports', EXPORT_FORMAT: 'xlsx' })).toHaveProperty('EXPORT_FORMAT');
  });

  test('gives a wildcard host an address that a browser can reach', () => {
    expect(loadConfig({ HOST: '0.0.0.0', PORT: '81' }).publicUrl.href).toBe('http://127.0.0.1:81/');
    expect(loadConfig({ HOST: '::' }).publicUrl.href).toBe('http://[::1]:8080/');
  });

  test.each([
    ['DATABASE_URL', 'mysql://db/x'],
    ['DATABASE_URL', 'not a url'],
    ['REDIS_URL', 'http://cache'],
    ['HOST', 'a b'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80a'],
    ['PORT', '1e3'],
    ['PUBLIC_URL', 'ftp://x'],
    ['PUBLIC_URL', 'https://x/?a=b'],
    ['MUSTER_ADMIN_TOKEN', 'sixteen letters and more'],
    ['MUSTER_ENCRYPTION_KEYS', KEY],
    ['MUSTER_ENCRYPTION_KEYS', `k1:${Buffer.alloc(31).toString('base64')}`],
    ['MUSTER_ENCRYPTION_KEYS', `k1:${Buffer.alloc(33).toString('base64')}`],
    ['MUSTER_ENCRYPTION_KEYS', `k1:${KEY},k1:${KEY}`],
    ['MUSTER_ENCRYPTION_KEYS', `k1:${KEY},`],
    ['SYNC_CRON', '* *'],
    ['SYNC_CRON', 'H H * * *'],
    ['SYNC_CRON', '61 2 * * *'],
    ['SYNC_CRON', '0 0 30 2 *'],
    ['SYNC_TIMEZONE', 'Mars/Olympus'],
    ['QUIET_HOURS', '07:00-07:00'],
    ['QUIET_HOURS', '7-9'],
    ['QUIET_HOURS', '00:00-12:00,12:00-24:00'],
    ['SYNC_TIMEZONE', '+01:00'],
    ['SYNC_SPREAD_MINUTES', '-1'],
    ['SYNC_SPREAD_MINUTES', '1.5'],
    ['REFRESH_MARGIN_SECONDS', '-1'],
    ['WORKER_CONCURRENCY', '0'],
    ['REQUEST_TIMEOUT_SECONDS', '0'],
    ['LOG_LEVEL', 'loud'],
    ['EXPORT_TO', 'gs://bucket/exports'],
    ['EXPORT_TO', 's3://'],
    ['EXPORT_TO', 's3://bucket//exports'],
  ])('refuses %s=%s', (name, value) => {
    expect(Object.keys(faultsOf({ MUSTER_ENCRYPTION_KEYS: `k1:${KEY}`, [name]: value }))).toEqual([name]);
  });

  test.each([
    ['PRODUCTION_BASE_URL', 'http://api.example.com'],
    ['PRODUCTION_BASE_URL', 'http://127.evil.example.com'],
    ['PRODUCTION_BASE_URL', 'http://localhost.evil.example.com'],
    ['PRODUCTION_BASE_URL', 'https://user:password@api.example.com'],
    ['PRODUCTION_AUTH_URL', 'http://login.example.com'],
    ['PRODUCTION_AUTH_URL', 'https://login.example.com/auth/authentication'],
    ['PRODUCTION_AUTH_URL', 'https://login.example.com/auth/authentication/token'],
    ['PRODUCTION_AUTH_URL', 'https://login.example.com/auth/token'],
    ['PRODUCTION_REDIRECT_URI', 'http://muster.example.com/oauth/callback'],
    ['PRODUCTION_REDIRECT_URI', 'https://muster.example.com/oauth/callback#here'],
  ])('refuses %s=%s', (name, value) => {
    expect(Object.keys(faultsOf({ ...PROVIDER, [name]: value }))).toEqual([name]);
  });

  test.each(['http://localhost:1', 'http://127.0.0.1:1', 'http://127.9.9.9', 'http://[::1]:1', 'http://app.localhost'])(
    'takes %s',
    (url) => {
      const env = { ...PROVIDER, PRODUCTION_BASE_URL: url, PRODUCTION_AUTH_URL: url, PRODUCTION_REDIRECT_URI: `${url}/cb` };
      expect(faultsOf(env)).toEqual({});
    },
  );

  test('says why an auth URL under /auth/authentication is refused', () => {
    const faults = faultsOf({ ...PROVIDER, PRODUCTION_AUTH_URL: 'https://login.example.com/auth/authentication' });
    expect(faults['PRODUCTION_AUTH_URL']).toContain('refuses token requests');
  });

  test('names what a half-configured environment lacks', () => {
    expect(Object.keys(faultsOf({ TEST_CLIENT_ID: 'x', TEST_AUTH_URL: 'https://login.example.com' }))).toEqual([
      'TEST_BASE_URL',
      'TEST_CLIENT_SECRET',
    ]);
    expect(Object.keys(faultsOf({ TEST_REDIRECT_URI: 'https://muster.example.com/cb' }))).toHaveLength(4);
  });

  test('holds the redirect URL that replaces an unset one to the same rule', () => {
    expect(Object.keys(faultsOf({ ...PROVIDER, PUBLIC_URL: 'http://muster.example.com' }))).toEqual(['PRODUCTION_REDIRECT_URI']);
    expect(faultsOf({ PUBLIC_URL: 'http://muster.example.com' })).toEqual({});
  });

  test('takes a webhook with its secret, or neither', () => {
    const [NOTIFY_WEBHOOK_URL, NOTIFY_WEBHOOK_SECRET] = ['https://hooks.example.com/a?b=c', 'sixteen-letters-'];
    expect(loadConfig({})).not.toHaveProperty('webhook');
    const { webhook } = loadConfig({ NOTIFY_WEBHOOK_URL, NOTIFY_WEBHOOK_SECRET });
    expect([webhook?.url.href, webhook?.secret.reveal()]).toEqual([NOTIFY_WEBHOOK_URL, NOTIFY_WEBHOOK_SECRET]);
    expect(Object.keys(faultsOf({ NOTIFY_WEBHOOK_URL }))).toEqual(['NOTIFY_WEBHOOK_SECRET']);
    expect(Object.keys(faultsOf({ NOTIFY_WEBHOOK_SECRET }))).toEqual(['NOTIFY_WEBHOOK_URL']);
    for (const url of ['http://hooks.example.com', 'https://a:b@hooks.example.com', 'ftp://x'])
      expect(Object.keys(faultsOf({ NOTIFY_WEBHOOK_URL: url, NOTIFY_WEBHOOK_SECRET }))).toEqual(['NOTIFY_WEBHOOK_URL']);
    expect(faultsOf({ NOTIFY_WEBHOOK_URL: 'http://127.0.0.1:9000/', NOTIFY_WEBHOOK_SECRET })).toEqual({});
    expect(Object.keys(faultsOf({ NOTIFY_WEBHOOK_URL, NOTIFY_WEBHOOK_SECRET: 'too short' }))).toEqual(['NOTIFY_WEBHOOK_SECRET']);
  });

  describe('a secret from a file', () => {
    let folder: string;
    beforeEach(() => {
      folder = mkdtempSync(path.join(tmpdir(), 'config-'));
    });
    afterEach(() => rmSync(folder, { recursive: true }));
    const file = (text: string) => {
      const name = path.join(folder, 'secret');
      writeFileSync(name, text);
      return name;
    };

    test('is read without the white space around it, for every secret setting', () => {
      for (const { name, example } of ROWS.filter(({ secret }) => secret)) {
        const others = Object.fromEntries(ROWS.filter((row) => row.name !== name).map((row) => [row.name, row.example]));
        const fromFile = loadConfig({ ...others, [`${name}_FILE`]: file(` ${example}\n`) });
        const fromVariable = loadConfig({ ...others, [name]: example });
        // People are shown where it came from.
        expect(fromFile.shown.find((setting) => setting.name === name)).toMatchObject({ from: 'file', isSecret: true });
        expect(revealed({ ...fromFile, shown: [] }), name).toEqual(revealed({ ...fromVariable, shown: [] }));
      }
    });

    test('is not read for what is no secret', () => {
      expect(loadConfig({ PORT_FILE: file('81') }).port).toBe(8080);
    });

    test.each([
      ['a file that is not there', () => path.join(folder, 'nowhere'), 'ENOENT'],
      ['a folder', () => folder, 'EISDIR'],
      ['an empty file', () => file(' \n'), 'empty'],
    ])('stops the start with %s', (_what, place, problem) => {
      const faults = faultsOf({ DATABASE_URL: 'postgres://db/muster', MUSTER_ENCRYPTION_KEYS_FILE: place() });
      expect(faults).toEqual({ MUSTER_ENCRYPTION_KEYS_FILE: expect.stringContaining(problem) });
    });

    test('is held to the same rules, and shown as little', () => {
      const faults = faultsOf({ DATABASE_URL_FILE: file('mysql://c4n4ry'), MUSTER_ENCRYPTION_KEYS: `k1:${KEY}` });
      expect(Object.keys(faults)).toEqual(['DATABASE_URL']);
      expect(JSON.stringify(faults)).not.toContain('c4n4ry');
      expect(Object.keys(faultsOf({ DATABASE_URL_FILE: file('postgres://db/muster') }))).toEqual(['MUSTER_ENCRYPTION_KEYS']);
    });

    test('is refused together with the variable itself', () => {
      const env = { MUSTER_ADMIN_TOKEN: 'one-token-of-tests', MUSTER_ADMIN_TOKEN_FILE: file('another-token-of-tests') };
      expect(faultsOf(env)).toEqual({ MUSTER_ADMIN_TOKEN_FILE: expect.stringContaining('together with MUSTER_ADMIN_TOKEN') });
    });
  });

  describe('further hosts of the API', () => {
    test('are read by name, and shown', () => {
      const config = loadConfig({
        ...PROVIDER,
        PRODUCTION_BASE_URL_NUMBERS: ' https://numbers.example.com/v2 ',
        PRODUCTION_BASE_URL_EMPTY: ' ',
      });
      expect(revealed(config.providers.production!.bases)).toEqual({ numbers: 'https://numbers.example.com/v2' });
      expect(config.shown.at(-1)).toMatchObject({ name: 'PRODUCTION_BASE_URL_NUMBERS', value: 'https://numbers.example.com/v2' });
    });

    test.each([
      ['http://numbers.example.com', /must be https/],
      ['numbers.example.com', /must be a URL/],
      ['https://me:c4n4ry@numbers.example.com', /must not hold a user/],
      ['https://numbers.example.com?x=1', /must not hold a query/],
    ])('%s is refused as another base URL is', (url, problem) => {
      expect(faultsOf({ ...PROVIDER, PRODUCTION_BASE_URL_NUMBERS: url })).toEqual({
        PRODUCTION_BASE_URL_NUMBERS: expect.stringMatching(problem) as string,
      });
    });

    test('belong to an environment that is whole, and have names in capitals', () => {
      expect(Object.keys(faultsOf({ ...PROVIDER, TEST_BASE_URL_NUMBERS: 'https://numbers.example.com' }))).toEqual([
        'TEST_BASE_URL',
        'TEST_AUTH_URL',
        'TEST_CLIENT_ID',
        'TEST_CLIENT_SECRET',
      ]);
      expect(Object.keys(faultsOf({ ...PROVIDER, PRODUCTION_BASE_URL_numbers: 'https://numbers.example.com' }))).toEqual([
        'PRODUCTION_BASE_URL_numbers',
      ]);
    });

    test('are needed in every configured environment where the catalogue names them', () => {
      const folder = mkdtempSync(path.join(tmpdir(), 'muster-bases-'));
      const file = path.join(folder, 'catalogue.json');
      const entry = { method: 'GET', path: '/api/companies/{company_id}/x', pager: { style: 'odata', size: 5 }, base: 'numbers' };
      writeFileSync(file, JSON.stringify({ salaries: entry, rates: { ...entry, base: 'other' } }));
      const testProvider = Object.fromEntries(
        Object.entries(PROVIDER).map(([name, text]) => [name.replace('PRODUCTION', 'TEST'), text]),
      );
      const env = { ...PROVIDER, ...testProvider, MUSTER_CATALOGUE: file };
      const set = {
        PRODUCTION_BASE_URL_NUMBERS: 'https://a.example',
        PRODUCTION_BASE_URL_OTHER: 'https://b.example',
        TEST_BASE_URL_OTHER: 'ftp://c',
      };
      expect(() => loadServerConfig({ ...env, ...set })).toThrow(
        /2 settings are wrong or missing[^]*TEST_BASE_URL_OTHER: must begin with https[^]*TEST_BASE_URL_NUMBERS: is missing; the list salaries names "base: numbers" in the catalogue/,
      );
      const right = { ...set, TEST_BASE_URL_NUMBERS: 'https://c.example', TEST_BASE_URL_OTHER: 'https://d.example' };
      expect(loadServerConfig({ ...env, ...right }).providers.test).toBeDefined();
      expect(loadServerConfig({ MUSTER_CATALOGUE: file }).providers).toEqual({});
      rmSync(folder, { recursive: true });
    });
  });

  describe('the way out', () => {
    const wayTo = (env: NodeJS.ProcessEnv, url: string) => loadConfig(env).proxies.proxyFor(new URL(url))?.hostname;

    test('is direct, or a proxy by the scheme of the target', () => {
      expect(wayTo({}, 'https://api.example.com')).toBeUndefined();
      expect(wayTo({ HTTPS_PROXY: ' http://one:1 ' }, 'https://api.example.com')).toBe('one');
      expect(wayTo({ HTTPS_PROXY: 'http://one:1' }, 'http://api.example.com')).toBeUndefined();
      expect(wayTo({ HTTP_PROXY: 'two:1', ALL_PROXY: 'three:1' }, 'https://api.example.com')).toBeUndefined();
      expect(wayTo({ HTTP_PROXY: 'two:1', NO_PROXY: 'localhost, example.com' }, 'http://api.example.com')).toBeUndefined();
      expect(wayTo({ HTTP_PROXY: 'two:1', NO_PROXY: 'localhost example.com' }, 'http://example.org')).toBe('two');
    });

    test('is read in lower case first, and an empty variable is none', () => {
      const env = { HTTPS_PROXY: 'http://upper:1', https_proxy: 'http://lower:1', no_proxy: 'direct.example.com' };
      expect(wayTo(env, 'https://api.example.com')).toBe('lower');
      expect(wayTo(env, 'https://direct.example.com')).toBeUndefined();
      expect(wayTo({ ...env, https_proxy: ' ' }, 'https://api.example.com')).toBe('upper');
      expect(loadConfig(env).shown.find(({ name }) => name === 'NO_PROXY')).toMatchObject({ value: 'direct.example.com' });
    });

    test('stops the start where it is wrong, and shows no password', () => {
      const env = { HTTPS_PROXY: 'socks5://me:c4n4ry@proxy:1080', http_proxy: 'http://me:c4n4ry%@proxy', NO_PROXY: 'a,http://b' };
      expect(faultsOf(env)).toEqual({
        HTTPS_PROXY: expect.stringContaining('SOCKS') as string,
        HTTP_PROXY: expect.stringContaining('%25 for %') as string,
        NO_PROXY: expect.stringContaining('entry 2') as string,
      });
      expect(() => loadConfig(env)).toThrow(expect.not.objectContaining({ message: expect.stringContaining('c4n4ry') }));
      const right = loadConfig({ HTTPS_PROXY: 'http://me:c4n4ry@proxy:3128' });
      expect(JSON.stringify([right, right.shown]) + inspect(right, { depth: 9 })).not.toContain('c4n4ry');
    });
  });

  describe('who asks customers for access', () => {
    test.each<[string, NodeJS.ProcessEnv, string[]]>([
      ['a mail address', { OPERATOR_CONTACT: 'hjelp@example.com' }, []],
      ['a page', { OPERATOR_CONTACT: 'https://example.com/help?a=b' }, []],
      ['a page by http', { OPERATOR_CONTACT: 'http://example.com/help' }, ['OPERATOR_CONTACT']],
      ['a script', { OPERATOR_CONTACT: 'javascript:alert(1)' }, ['OPERATOR_CONTACT']],
      ['a mail address with a body', { OPERATOR_CONTACT: 'a@example.com?body=x' }, ['OPERATOR_CONTACT']],
      ['no address', { OPERATOR_CONTACT: 'call us' }, ['OPERATOR_CONTACT']],
      ['a name of two lines', { OPERATOR_NAME: 'Nordlys\nAS' }, ['OPERATOR_NAME']],
      ['a long name', { OPERATOR_NAME: 'N'.repeat(101) }, ['OPERATOR_NAME']],
      ['a way back', { CONNECT_RETURN_URL: 'https://example.com/welcome?from=muster' }, []],
      ['a way back by http', { CONNECT_RETURN_URL: 'http://example.com' }, ['CONNECT_RETURN_URL']],
      ['a way back that is a script', { CONNECT_RETURN_URL: 'javascript:alert(1)' }, ['CONNECT_RETURN_URL']],
    ])('%s', (_, env, faults) => {
      expect(Object.keys(faultsOf(env))).toEqual(faults);
    });

    test('files that cannot be read stop a server, with all other faults', () => {
      const wrong = () =>
        loadServerConfig({ OPERATOR_LOGO: '/nowhere/logo.svg', CONNECT_TEXTS: '/nowhere/texts', PORT: 'canary' });
      expect(wrong).toThrow(expect.objectContaining({ code: 'invalid_configuration' }));
      expect(wrong).toThrow(/3 settings are wrong[^]*PORT: [^]*OPERATOR_LOGO: must name a file that can be read \(ENOENT\)/);
      expect(wrong).toThrow('CONNECT_TEXTS: must name a folder that can be read (ENOENT)');
    });
  });

  test('requires encryption keys with a database of its own', () => {
    expect(Object.keys(faultsOf({ DATABASE_URL: 'postgres://db/muster' }))).toEqual(['MUSTER_ENCRYPTION_KEYS']);
  });

  describe('signing in by OpenID Connect', () => {
    const OIDC = {
      OIDC_ISSUER: 'https://login.example.com/realms/staff',
      OIDC_CLIENT_ID: 'muster',
      OIDC_CLIENT_SECRET: 'hush-hush',
      OIDC_ADMINS: ' ops , on-call',
      PUBLIC_URL: 'https://muster.example.com/',
    };
    const without = (name: keyof typeof OIDC) => ({ ...OIDC, [name]: undefined });

    test('is off unless set, and takes its values apart', () => {
      expect(loadConfig({})).not.toHaveProperty('oidc');
      expect(revealed(loadConfig(OIDC).oidc)).toEqual({
        issuer: 'https://login.example.com/realms/staff',
        clientId: 'muster',
        clientSecret: 'hush-hush',
        scope: 'openid profile email',
        roleClaim: 'groups',
        roles: { admin: ['ops', 'on-call'], operator: [], viewer: [] },
      });
    });

    test.each<[string, NodeJS.ProcessEnv, string[]]>([
      ['no issuer', without('OIDC_ISSUER'), ['OIDC_ISSUER']],
      ['no secret', without('OIDC_CLIENT_SECRET'), ['OIDC_CLIENT_SECRET']],
      ['no person who could', without('OIDC_ADMINS'), ['OIDC_ADMINS']],
      ['only a claim', { OIDC_ROLE_CLAIM: 'x' }, ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_ADMINS']],
      ['an empty value', { ...OIDC, OIDC_VIEWERS: 'a,,b' }, ['OIDC_VIEWERS']],
      ['http to another host', { ...OIDC, OIDC_ISSUER: 'http://login.example.com' }, ['OIDC_ISSUER']],
      [
        'the address of its metadata',
        { ...OIDC, OIDC_ISSUER: 'https://a.example/.well-known/openid-configuration' },
        ['OIDC_ISSUER'],
      ],
      ['scopes without openid', { ...OIDC, OIDC_SCOPE: 'profile' }, ['OIDC_SCOPE']],
      ['people who would come back by http', { ...OIDC, PUBLIC_URL: 'http://muster.example.com' }, ['PUBLIC_URL']],
      ['http on loopback', { ...OIDC, OIDC_ISSUER: 'http://127.0.0.1:9000', PUBLIC_URL: 'http://localhost:8080' }, []],
    ])('%s', (_, env, faults) => {
      expect(Object.keys(faultsOf(env))).toEqual(faults);
    });
  });

  test('reports every fault at once, and no value', () => {
    const canary = 'c4n4ry value';
    const env = Object.fromEntries(ROWS.map(({ name }) => [name, canary]));
    const free = [
      'MUSTER_HOME',
      'MUSTER_CATALOGUE',
      'TOKEN_JOURNAL',
      'OPERATOR_NAME',
      'OPERATOR_LOGO',
      'CONNECT_TEXTS',
      'EXPORT_TO',
      'EXPORT_RESOURCES',
      'NO_PROXY',
      'PRODUCTION_CLIENT_ID',
      'PRODUCTION_CLIENT_SECRET',
      'TEST_CLIENT_ID',
      'TEST_CLIENT_SECRET',
      'PRODUCTION_SCOPE',
      'TEST_SCOPE',
      'OIDC_CLIENT_ID',
      'OIDC_CLIENT_SECRET',
      'OIDC_ROLE_CLAIM',
      'OIDC_ADMINS',
      'OIDC_OPERATORS',
      'OIDC_VIEWERS',
      'OIDC_NAME_CLAIM',
    ];
    const wrong = ROWS.flatMap(({ name }) => (free.includes(name) ? [] : [name]));
    expect(Object.keys(faultsOf(env)).toSorted()).toEqual(wrong.toSorted());
    expect(() => loadConfig(env)).toThrow(expect.not.objectContaining({ message: expect.stringContaining('c4n4ry') }));
  });
});

test.each(['a  b', 'a"b', 'a\\b', 'é', 'a\tb'])('a scope of %j is refused', (scope) => {
  expect(faultsOf({ TEST_SCOPE: scope })).toHaveProperty('TEST_SCOPE');
});

describe('the table of settings', () => {
  test('has examples that are right', () => {
    expect(faultsOf(Object.fromEntries(ROWS.map(({ name, example }) => [name, example])))).toEqual({});
  });

  test('is in docs/configuration.md, row by row', () => {
    const rows = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
      .split('\n')
      .filter((line) => /^\| `[A-Z_]+`/.test(line))
      .map((line) =>
        line
          .split('|')
          .map((cell) => cell.trim())
          .slice(1, 5),
      );
    const bare = (cell: string | undefined) => cell?.replaceAll('`', '');
    expect(rows.map((row) => row.map(bare))).toEqual(
      ROWS.map((row) => [row.secret ? `${row.name} (secret)` : row.name, bare(row.help), bare(row.unset), bare(row.example)]),
    );
  });
});
