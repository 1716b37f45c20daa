import { resolve } from 'node:path';
import type { Environment } from '../core/company.js';
import { Secret } from '../core/secret.js';
import {
  authUrlOf,
  cronOf,
  encryptionKeysOf,
  hostOf,
  httpsUrlOf,
  logLevelOf,
  longSecretTextOf,
  rootUrlOf,
  safeUrlOf,
  secretTextOf,
  timezoneOf,
  urlOf,
  wholeNumber,
} from './setting-values.js';

/** A row of the table of settings, as docs/configuration.md shows it. */
export interface SettingHelp {
  readonly name: string;
  readonly help: string;
  /** What holds while the variable is unset. */
  readonly unset: string;
  readonly example: string;
  /** Its value is shown nowhere. */
  readonly secret: boolean;
}

export interface Setting<T> extends SettingHelp {
  /** Throws Problem. The text is never empty, and has no white space around it. */
  readonly parse: (text: string) => T;
}

/** A setting with a default, which stands in `unset` and is parsed like any value. */
export interface DefaultedSetting<T> extends Setting<T> {
  readonly defaulted: true;
}

const open = { secret: false } as const;
const secret = { secret: true } as const;
const defaulted = { secret: false, defaulted: true } as const;

/** Every setting but those of an environment of the service. */
export const SETTINGS = {
  databaseUrl: setting(secret, 'DATABASE_URL', 'PostgreSQL 15 or newer.', {
    unset: 'an embedded PostgreSQL under `MUSTER_HOME`',
    example: 'postgres://muster:password@db.example.com:5432/muster',
    parse: (text) => (urlOf(text, ['postgres:', 'postgresql:']), text),
  }),
  redisUrl: setting(secret, 'REDIS_URL', 'Redis 6.2 or newer, or Valkey, for the queue.', {
    unset: 'the queue lives in the database',
    example: 'redis://cache.example.com:6379/0',
    parse: (text) => (urlOf(text, ['redis:', 'rediss:']), text),
  }),
  home: setting(defaulted, 'MUSTER_HOME', 'Folder for the embedded database and for generated keys and tokens.', {
    unset: '.muster',
    example: '/var/lib/muster',
    parse: (text) => resolve(text),
  }),
  host: setting(defaulted, 'HOST', 'Address on which the admin API listens.', {
    unset: '127.0.0.1',
    example: '0.0.0.0',
    parse: hostOf,
  }),
  port: setting(defaulted, 'PORT', 'Port on which it listens; 0 takes a free one.', {
    unset: '8080',
    example: '8080',
    parse: wholeNumber(0, 65_535),
  }),
  publicUrl: setting(open, 'PUBLIC_URL', 'Outside address of the admin API, for redirect and connect links.', {
    unset: '`http://HOST:PORT`',
    example: 'https://muster.example.com',
    parse: (text) => rootUrlOf(text),
  }),
  adminToken: setting(
    secret,
    'MUSTER_ADMIN_TOKEN',
    'Bearer token with every right: characters without spaces, better 16 or more.',
    {
      unset: 'generated at first start and kept under `MUSTER_HOME`',
      example: 'a-long-random-text-of-your-own',
      parse: secretTextOf,
    },
  ),
  encryptionKeys: setting(
    secret,
    'MUSTER_ENCRYPTION_KEYS',
    'Keys for the tokens at rest: `keyid:base64-of-32-bytes`, comma separated. The first encrypts, all decrypt.',
    {
      unset: 'generated and kept under `MUSTER_HOME` with the embedded database; required with `DATABASE_URL`',
      example: 'k1:ZXhhbXBsZS1rZXktbmV2ZXItdXNlLXRoaXMtYXQtYWw=',
      parse: encryptionKeysOf,
    },
  ),
  cataloguePath: setting(open, 'MUSTER_CATALOGUE', 'YAML or JSON file that replaces the built-in catalogue.', {
    unset: 'the built-in catalogue: employees and departments',
    example: '/etc/muster/catalogue.yaml',
    parse: (text) => resolve(text),
  }),
  cron: setting(defaulted, 'SYNC_CRON', 'When the nightly sync begins: minute, hour, day of month, month, day of week.', {
    unset: '0 2 * * *',
    example: '30 1 * * *',
    parse: cronOf,
  }),
  timezone: setting(defaulted, 'SYNC_TIMEZONE', 'Time zone of `SYNC_CRON`, by its IANA name.', {
    unset: 'UTC',
    example: 'Europe/Copenhagen',
    parse: timezoneOf,
  }),
  spreadMinutes: setting(defaulted, 'SYNC_SPREAD_MINUTES', 'Window after it over which the companies are spread.', {
    unset: '120',
    example: '120',
    parse: wholeNumber(0, 10_080),
  }),
  refreshMarginSeconds: setting(open, 'REFRESH_MARGIN_SECONDS', 'How long before its expiry an access token is refreshed.', {
    unset: 'a fifth of its lifetime, at least 60 s, never more than half the lifetime',
    example: '300',
    parse: wholeNumber(0, 86_400),
  }),
  workerConcurrency: setting(defaulted, 'WORKER_CONCURRENCY', 'Companies that one worker walks side by side.', {
    unset: '4',
    example: '8',
    parse: wholeNumber(1, 100),
  }),
  requestTimeoutSeconds: setting(
    defaulted,
    'REQUEST_TIMEOUT_SECONDS',
    'Longest silence of the service within one request; the request as a whole has 120 s.',
    {
      unset: '30',
      example: '60',
      parse: wholeNumber(1, 3_600),
    },
  ),
  webhookUrl: setting(
    secret,
    'NOTIFY_WEBHOOK_URL',
    'Address that is told of what a person should know; https unless on loopback.',
    {
      unset: 'nobody is told',
      example: 'https://hooks.example.com/muster',
      parse: httpsUrlOf,
    },
  ),
  webhookSecret: setting(secret, 'NOTIFY_WEBHOOK_SECRET', 'Signs what is sent there: at least 16 characters without spaces.', {
    unset: 'nobody is told',
    example: 'a-long-random-text-for-signing',
    parse: longSecretTextOf,
  }),
  changeRetentionDays: setting(open, 'CHANGE_RETENTION_DAYS', 'How long the change feed keeps a change.', {
    unset: 'for ever',
    example: '90',
    parse: wholeNumber(1, 36_500),
  }),
  logLevel: setting(defaulted, 'LOG_LEVEL', 'Least severe level that is logged.', {
    unset: 'info',
    example: 'debug',
    parse: logLevelOf,
  }),
};

/** The settings of each environment of the service; their variables begin with its name. */
export const PROVIDERS = {
  production: providerTable('PRODUCTION'),
  test: providerTable('TEST'),
} satisfies Record<Environment, unknown>;

function providerTable(prefix: string) {
  const environment = prefix.toLowerCase();
  const unset = `the ${environment} environment is not configured`;
  return {
    baseUrl: setting(open, `${prefix}_BASE_URL`, `Root of the API, ${environment} environment.`, {
      unset,
      example: 'https://api.example.com',
      parse: (text) => safeUrlOf(rootUrlOf(text)),
    }),
    authUrl: setting(
      open,
      `${prefix}_AUTH_URL`,
      'Root of its authorization server; `/auth/authorize` and `/auth/token` are added.',
      {
        unset,
        example: 'https://login.example.com',
        parse: authUrlOf,
      },
    ),
    clientId: setting(open, `${prefix}_CLIENT_ID`, 'Application identifier, as registered there.', {
      unset,
      example: 'muster',
      parse: String,
    }),
    clientSecret: setting(secret, `${prefix}_CLIENT_SECRET`, 'Secret of the application.', {
      unset,
      example: 'the-secret-issued-at-registration',
      parse: (text) => new Secret(text),
    }),
    redirectUri: setting(
      open,
      `${prefix}_REDIRECT_URI`,
      'Redirect URL of the application, as registered there; https unless on loopback.',
      {
        unset: '`PUBLIC_URL/oauth/callback`',
        example: 'https://muster.example.com/oauth/callback',
        parse: httpsUrlOf,
      },
    ),
  };
}

/** The table of settings, in the order of the documentation. */
export function settingsHelp(): SettingHelp[] {
  const all: SettingHelp[] = [SETTINGS, PROVIDERS.production, PROVIDERS.test].flatMap((table) =>
    Object.values<SettingHelp>(table),
  );
  return all.map(({ name, help, unset, example, secret: isSecret }) => ({ name, help, unset, example, secret: isSecret }));
}

function setting<T, Kind extends { readonly secret: boolean }>(
  kind: Kind,
  name: string,
  help: string,
  rest: { readonly unset: string; readonly example: string; readonly parse: (text: string) => T },
): Setting<T> & Kind {
  return { ...kind, name, help, ...rest };
}
