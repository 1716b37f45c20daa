import { resolve } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../core/company.js';
import * as value from './setting-values.js';

/** A row of the table of settings, as docs/configuration.md shows it. */
export interface SettingHelp {
  readonly help: string;
  /** What holds while the variable is unset; for a setting with a default, the text of the default. */
  readonly unset: string;
  readonly example: string;
  /** Its value is shown nowhere, and may come from a file, which the variable with `_FILE` behind its name gives. */
  readonly secret: boolean;
}

const HELP = z.registry<SettingHelp>();

type Help = Omit<SettingHelp, 'secret'> & { readonly secret?: true };

const optional = <T>(schema: z.ZodType<T, string>, help: Help) => schema.optional().register(HELP, { secret: false, ...help });

const defaulted = <T>(schema: z.ZodType<T, string>, unset: string, help: Pick<Help, 'help' | 'example'>) =>
  schema.prefault(unset).register(HELP, { secret: false, unset, ...help });

const path = z.string().transform((text) => resolve(text));

/** Reads the variables, whose texts are trimmed and never empty. */
export const SETTINGS = z.object({
  DATABASE_URL: optional(value.urlText('postgres:', 'postgresql:'), {
    help: 'PostgreSQL 15 or newer.',
    unset: 'an embedded PostgreSQL under `MUSTER_HOME`',
    example: 'postgres://muster:password@db.example.com:5432/muster',
    secret: true,
  }),
  REDIS_URL: optional(value.urlText('redis:', 'rediss:'), {
    help: 'Redis 6.2 or newer, or Valkey, for the queue.',
    unset: 'the queue lives in the database',
    example: 'redis://cache.example.com:6379/0',
    secret: true,
  }),
  MUSTER_HOME: defaulted(path, '.muster', {
    help: 'Folder for the embedded database and for generated keys and tokens.',
    example: '/var/lib/muster',
  }),
  HOST: defaulted(value.host, '127.0.0.1', { help: 'Address on which the admin API listens.', example: '0.0.0.0' }),
  PORT: defaulted(value.wholeNumber(0, 65_535), '8080', {
    help: 'Port on which it listens; 0 takes a free one.',
    example: '8080',
  }),
  PUBLIC_URL: optional(value.rootUrl, {
    help: 'Outside address of the admin API, for redirect and connect links.',
    unset: '`http://HOST:PORT`',
    example: 'https://muster.example.com',
  }),
  MUSTER_ADMIN_TOKEN: optional(value.asciiSecret, {
    help: 'Bearer token with every right: characters without spaces, better 16 or more.',
    unset: 'generated at first start and kept under `MUSTER_HOME`',
    example: 'a-long-random-text-of-your-own',
    secret: true,
  }),
  MUSTER_ENCRYPTION_KEYS: optional(value.encryptionKeys, {
    help: 'Keys for the tokens at rest: `keyid:base64-of-32-bytes`, comma separated. The first encrypts, all decrypt.',
    unset: 'generated and kept under `MUSTER_HOME` with the embedded database; required with `DATABASE_URL`',
    example: 'k1:ZXhhbXBsZS1rZXktbmV2ZXItdXNlLXRoaXMtYXQtYWw=',
    secret: true,
  }),
  MUSTER_CATALOGUE: optional(path, {
    help: 'YAML or JSON file that replaces the built-in catalogue.',
    unset: 'the built-in catalogue: employees and departments',
    example: '/etc/muster/catalogue.yaml',
  }),
  SYNC_CRON: defaulted(value.cron, '0 2 * * *', {
    help: 'When the nightly sync begins: minute, hour, day of month, month, day of week.',
    example: '30 1 * * *',
  }),
  SYNC_TIMEZONE: defaulted(value.timezone, 'UTC', {
    help: 'Time zone of `SYNC_CRON`, by its IANA name.',
    example: 'Europe/Copenhagen',
  }),
  SYNC_SPREAD_MINUTES: defaulted(value.wholeNumber(0, 10_080), '120', {
    help: 'Window after it over which the companies are spread.',
    example: '120',
  }),
  REFRESH_MARGIN_SECONDS: optional(value.wholeNumber(0, 86_400), {
    help: 'How long before its expiry an access token is refreshed.',
    unset: 'a fifth of its lifetime, at least 60 s, never more than half the lifetime',
    example: '300',
  }),
  WORKER_CONCURRENCY: defaulted(value.wholeNumber(1, 100), '4', {
    help: 'Companies that one worker walks side by side.',
    example: '8',
  }),
  REQUEST_TIMEOUT_SECONDS: defaulted(value.wholeNumber(1, 3_600), '30', {
    help: 'Longest silence of the service within one request; the request as a whole has 120 s.',
    example: '60',
  }),
  NOTIFY_WEBHOOK_URL: optional(value.httpsUrl, {
    help: 'Address that is told of what a person should know; https unless on loopback.',
    unset: 'nobody is told',
    example: 'https://hooks.example.com/muster',
    secret: true,
  }),
  NOTIFY_WEBHOOK_SECRET: optional(value.longSecret, {
    help: 'Signs what is sent there: at least 16 characters without spaces.',
    unset: 'nobody is told',
    example: 'a-long-random-text-for-signing',
    secret: true,
  }),
  CHANGE_RETENTION_DAYS: optional(value.wholeNumber(1, 36_500), {
    help: 'How long the change feed keeps a change.',
    unset: 'for ever',
    example: '90',
  }),
  LOG_LEVEL: defaulted(value.logLevel, 'info', { help: 'Least severe level that is logged.', example: 'debug' }),
  ...prefixed('PRODUCTION', providerSettings('production')),
  ...prefixed('TEST', providerSettings('test')),
});

/** The settings of one environment of the service, without the prefix of their variables. */
function providerSettings(environment: Environment) {
  const unset = `the ${environment} environment is not configured`;
  const needed = <T>(schema: z.ZodType<T, string>, help: Omit<Help, 'unset'>) => optional(schema, { unset, ...help });
  return {
    BASE_URL: needed(value.safeUrl, { help: `Root of the API, ${environment} environment.`, example: 'https://api.example.com' }),
    AUTH_URL: needed(value.authUrl, {
      help: 'Root of its authorization server; `/auth/authorize` and `/auth/token` are added.',
      example: 'https://login.example.com',
    }),
    CLIENT_ID: needed(z.string(), { help: 'Application identifier, as registered there.', example: 'muster' }),
    CLIENT_SECRET: needed(value.secret, {
      help: 'Secret of the application.',
      example: 'the-secret-issued-at-registration',
      secret: true,
    }),
    REDIRECT_URI: optional(value.httpsUrl, {
      help: 'Redirect URL of the application, as registered there; https unless on loopback.',
      unset: '`PUBLIC_URL/oauth/callback`',
      example: 'https://muster.example.com/oauth/callback',
    }),
  };
}

type Prefixed<P extends string, T> = { [Name in keyof T & string as `${P}_${Name}`]: T[Name] };

function prefixed<P extends string, T extends object>(prefix: P, settings: T): Prefixed<P, T> {
  return Object.fromEntries(Object.entries(settings).map(([name, schema]) => [`${prefix}_${name}`, schema])) as Prefixed<P, T>;
}

export type SettingName = keyof typeof SETTINGS.shape;

export function helpOf(name: SettingName): SettingHelp {
  return HELP.get(SETTINGS.shape[name]) as SettingHelp;
}

/** Every variable, in the order of the documentation. */
export const SETTING_NAMES = Object.keys(SETTINGS.shape) as SettingName[];
