import { resolve } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../core/company.js';
import { defaulted, HELP, type Help, optional, type SettingHelp } from './setting-help.js';
import * as value from './setting-values.js';
import { signInSettings } from './sign-in-settings.js';

const path = z.string().transform((text) => resolve(text));

/** Reads the variables, whose texts are trimmed and never empty. */
export const SETTINGS = z.object({
  DATABASE_URL: optional(value.databaseUrl, {
    help: 'PostgreSQL 15 or newer. Sockets and several hosts: [below](#database_url). What each `sslmode` does, and which poolers may stand between: [requirements.md](requirements.md#postgresql).',
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
  INSTALLATION: optional(value.installation, {
    help: 'Name of this installation, the same for all of its processes: a clone of its disks is told from it by another name alone ([copies and restores](copies.md)).',
    unset: 'copies are told by their server and their database',
    example: 'production',
  }),
  TOKEN_JOURNAL: optional(path, {
    help: 'A file on this host to which every refresh token is appended, encrypted, before it is used: `muster restore-tokens` brings a restored backup up to date with it ([copies and restores](copies.md)).',
    unset: 'a restored backup has only the tokens that are in it',
    example: '/var/lib/muster/tokens.journal',
  }),
  HOST: defaulted(value.host, '127.0.0.1', { help: 'Address on which the admin API listens.', example: '0.0.0.0' }),
  PORT: defaulted(value.wholeNumber(0, 65_535), '8080', {
    help: 'Port on which it listens; 0 takes a free one.',
    example: '8080',
  }),
  PROBE_PORT: optional(value.wholeNumber(1, 65_535), {
    help: 'Port of `HOST` on which `api`, `worker` and `up` answer `GET /healthz` and `GET /readyz`, without a token, and nothing else. A worker whose event loop stands still does not answer. A port that is taken stops the start: each process of a host needs another one.',
    unset: 'a worker listens nowhere',
    example: '9100',
  }),
  PUBLIC_URL: optional(value.rootUrl, {
    help: 'Outside address of the admin API, for redirect and connect links.',
    unset: '`http://HOST:PORT`',
    example: 'https://muster.example.com',
  }),
  MUSTER_ADMIN_TOKEN: optional(value.asciiSecret, {
    help: 'Bearer token with every right: characters without spaces, better 16 or more. Commands take a named token here, too.',
    unset: 'generated at first start and kept under `MUSTER_HOME`',
    example: 'a-long-random-text-of-your-own',
    secret: true,
  }),
  METRICS_TOKEN: optional(value.longSecret, {
    help: 'Bearer token for `GET /metrics`: at least 16 characters without spaces. Any token that the API takes is taken there as well.',
    unset: 'anybody may scrape',
    example: 'a-long-random-text-for-prometheus',
    secret: true,
  }),
  MUSTER_ENCRYPTION_KEYS: optional(value.encryptionKeys, {
    help: 'Keys for the tokens at rest: `keyid:base64-of-32-bytes`, comma separated. The first encrypts, all decrypt.',
    unset: 'generated and kept under `MUSTER_HOME` with the embedded database; required with `DATABASE_URL`',
    example: 'k1:ZXhhbXBsZS1rZXktbmV2ZXItdXNlLXRoaXMtYXQtYWw=',
    secret: true,
  }),
  MUSTER_SIGNING_KEY: optional(value.signingKey, {
    help: 'Ed25519 key that signs [certificates](certificates.md): base64 of its 32 bytes, or of its PKCS#8.',
    unset: 'it follows from the first of `MUSTER_ENCRYPTION_KEYS`, or from the key kept under `MUSTER_HOME`',
    example: 'ZXhhbXBsZS1zaWduaW5nLWtleS1uZXZlci11c2UtaXQ=',
    secret: true,
  }),
  MUSTER_PRIVACY_KEY: optional(value.privacyKey, {
    help: 'Key of the hashes that privacy rules make: base64 of 32 bytes. Keep it: under another key the same value has another hash.',
    unset: 'needed as soon as the catalogue has a `hash` rule',
    example: 'ZXhhbXBsZS1rZXktbmV2ZXItdXNlLXRoaXMtYXQtYWw=',
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
  VERIFY_SHARE_PER_NIGHT: optional(value.share, {
    help: 'Share of the companies whose mirror is compared with the service each night, after their sync, in turn.',
    unset: 'none, unless a person asks',
    example: '3%',
  }),
  STALE_AFTER_HOURS: defaulted(value.wholeNumber(1, 8_760), '26', {
    help: 'Age of its last proof at which a list becomes late.',
    example: '50',
  }),
  REFRESH_MARGIN_SECONDS: optional(value.wholeNumber(0, 86_400), {
    help: 'How long before its expiry an access token is refreshed.',
    unset: 'a fifth of its lifetime, at least 60 s, never more than half the lifetime',
    example: '300',
  }),
  WORKER_CONCURRENCY: defaulted(value.wholeNumber(1, 100), '4', {
    help: 'Companies of each environment that one worker walks side by side.',
    example: '8',
  }),
  REQUEST_TIMEOUT_SECONDS: defaulted(value.wholeNumber(1, 3_600), '30', {
    help: 'Longest silence of the service within one request; the request as a whole has 120 s.',
    example: '60',
  }),
  ANSWER_MEMORY_MB: optional(value.wholeNumber(16, 1_000_000), {
    help: 'Memory of one worker for answers of the service, in MB: three times what they have in bytes, until they are written.',
    unset: "512, or less: the heap's limit, or half of what the machine or the container has beyond 128 MB",
    example: '256',
  }),
  HEARTBEAT_URL: optional(value.httpsUrl, {
    help: 'Address that is asked by GET once the first worker lives, then once a minute for the whole installation, while a worker lives and every sweep is in time: for a monitor that alarms on silence ([notifications](notifications.md#silence)). https unless on loopback.',
    unset: 'silence is not reported',
    example: 'https://monitor.example.com/ping/muster',
    secret: true,
  }),
  NOTIFY_WEBHOOK_URL: optional(value.httpsUrl, {
    help: 'Address that is told of what a person should know; https unless on loopback.',
    unset: 'no notification is sent',
    example: 'https://hooks.example.com/muster',
    secret: true,
  }),
  NOTIFY_WEBHOOK_SECRET: optional(value.longSecret, {
    help: 'Signs the notifications: at least 16 characters without spaces.',
    unset: 'no notification is sent',
    example: 'a-long-random-text-for-signing',
    secret: true,
  }),
  EXPORT_TO: optional(value.exportTarget, {
    help: `Where each night is exported to when it is over: ${value.EXPORT_FOLDERS}. What is written, and when: [export.md](export.md#after-each-night).`,
    unset: 'nights are not exported',
    example: '/srv/exports',
  }),
  EXPORT_FORMAT: optional(value.exportFormat, {
    help: 'Format of these files: `parquet`, `csv` or `ndjson`.',
    unset: '`parquet`',
    example: 'csv',
  }),
  EXPORT_RESOURCES: optional(value.list, {
    help: 'Resources that are exported, comma separated.',
    unset: 'all of the catalogue',
    example: 'employees,departments',
  }),
  EXPORT_REQUIRE_VERIFIED: optional(value.yesOrNo, {
    help: '`yes`: a night is not exported while a list of the file has no proof, or a late one, and that is the issue `export_failed`.',
    unset: '`no`',
    example: 'yes',
  }),
  CHANGE_RETENTION_DAYS: optional(value.wholeNumber(1, 36_500), {
    help: 'How long the change feed keeps a change.',
    unset: 'for ever',
    example: '90',
  }),
  RUN_RETENTION_DAYS: defaulted(value.wholeNumber(1, 36_500), '90', {
    help: 'How long a run that has ended is kept, with its walks, what it rejected and its decided holds; the newest of each company stays.',
    example: '30',
  }),
  AUDIT_RETENTION_DAYS: defaulted(value.wholeNumber(1, 36_500), '400', {
    help: 'How long the audit keeps an entry.',
    example: '3650',
  }),
  QUARANTINE_RETENTION_DAYS: defaulted(value.wholeNumber(1, 36_500), '30', {
    help: 'How long a refresh token that belongs to no onboarded company is kept.',
    example: '90',
  }),
  HTTPS_PROXY: optional(value.proxy, {
    help: 'Proxy for every request to an address by https: to the service, its authorization server, the webhook, the heartbeat, the issuer and S3 ([below](#proxies)).',
    unset: 'they are asked directly',
    example: 'http://user:password@proxy.example.com:3128',
    secret: true,
  }),
  HTTP_PROXY: optional(value.proxy, {
    help: 'The same for addresses by http.',
    unset: 'they are asked directly',
    example: 'http://proxy.example.com:3128',
    secret: true,
  }),
  NO_PROXY: optional(value.noProxy, {
    help: 'Hosts that are asked without a proxy, comma separated ([below](#proxies)).',
    unset: 'none is',
    example: 'localhost,127.0.0.1,.internal.example.com,10.0.0.0/8',
  }),
  LOG_LEVEL: defaulted(value.logLevel, 'info', { help: 'Least severe level that is logged.', example: 'debug' }),
  LOG_FORMAT: defaulted(value.logFormat, 'auto', {
    help: 'How the log is written: `json`, an object a line; `pretty`, for people; `auto`, pretty on a terminal and JSON elsewhere.',
    example: 'json',
  }),
  ...prefixed('OIDC', signInSettings()),
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
    SCOPE: optional(value.scope, {
      help: 'Scopes that are asked for on the consent screen, with a space between two.',
      unset: 'none is named, and the service gives what it gives by itself',
      example: 'offline_access employees.read',
    }),
    REDIRECT_URI: optional(value.httpsUrl, {
      help: 'Redirect URL of the application, as registered there; https unless on loopback.',
      unset: '`PUBLIC_URL/oauth/callback`',
      example: 'https://muster.example.com/oauth/callback',
    }),
    REQUESTS_PER_SECOND: optional(value.wholeNumber(1, 100_000), {
      help: 'Requests a second that all workers together ask of its API at most.',
      unset: 'found by Muster',
      example: '20',
    }),
    REQUESTS_AT_ONCE: optional(value.wholeNumber(1, 10_000), {
      help: 'Requests that all workers together have under way there at once at most.',
      unset: 'found by Muster',
      example: '10',
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
