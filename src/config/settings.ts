import { resolve } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../core/company.js';
import { operatorSettings } from './operator-settings.js';
import { defaulted, HELP, type Help, optional, type SettingHelp, secret } from './setting-help.js';
import * as value from './setting-values.js';
import { signInSettings } from './sign-in-settings.js';
import { traceSettings } from './trace-settings.js';

const path = z.string().transform((text) => resolve(text));

/** Reads the variables, whose texts are trimmed and never empty. */
export const SETTINGS = z.object({
  DATABASE_URL: secret(value.databaseUrl, {
    help: 'PostgreSQL 15 or newer. Sockets and several hosts: [below](#database_url). For each `sslmode` and for poolers, see [requirements.md](requirements.md#postgresql).',
    unset: 'an embedded PostgreSQL under `MUSTER_HOME`',
    example: 'postgres://muster:password@db.example.com:5432/muster',
  }),
  REDIS_URL: secret(value.urlText('redis:', 'rediss:'), {
    help: 'Redis 6.2 or newer, or Valkey, for the queue.',
    unset: 'the queue lives in the database',
    example: 'redis://cache.example.com:6379/0',
  }),
  MUSTER_HOME: defaulted(path, '.muster', {
    help: 'Folder for the embedded database and for generated keys and tokens.',
    example: '/var/lib/muster',
  }),
  INSTALLATION: optional(value.installation, {
    help: 'Name of this installation, the same for all of its processes. A clone of its disks is recognized only by another name ([copies and restores](copies.md)).',
    unset: 'copies are recognized by their server and their database',
    example: 'production',
  }),
  TOKEN_JOURNAL: optional(path, {
    help: 'A file on this host to which every refresh token is appended, encrypted, before it is used: `muster restore-tokens` brings a restored backup up to date with it ([copies and restores](copies.md)).',
    unset: 'a restored backup has only the tokens that are in it',
    example: '/var/lib/muster/tokens.journal',
  }),
  HOST: defaulted(value.host, '127.0.0.1', { help: 'Address on which the admin API listens.', example: '0.0.0.0' }),
  PORT: defaulted(value.wholeNumber(0, 65_535), '8080', {
    help: 'Port on which the admin API listens; 0 takes a free one.',
    example: '8080',
  }),
  PROBE_PORT: optional(value.wholeNumber(1, 65_535), {
    help: 'Port of `HOST` on which `api`, `worker` and `up` answer `GET /healthz` and `GET /readyz`, without a token, and nothing else. A worker whose event loop is blocked does not answer. A port that is taken stops the start: each process of a host needs its own.',
    unset: 'a worker listens nowhere',
    example: '9100',
  }),
  DRAIN_SECONDS: defaulted(value.wholeNumber(0, 300), '0', {
    help: 'How long `api` and `up` go on answering when they are told to stop, while `GET /readyz` says 503: as long as your load balancer needs to send requests elsewhere ([upgrading](upgrading.md#what-a-load-balancer-sees)).',
    example: '10',
  }),
  PUBLIC_URL: optional(value.rootUrl, {
    help: 'Outside address of the admin API, for redirect and connect links.',
    unset: '`http://HOST:PORT`',
    example: 'https://muster.example.com',
  }),
  MUSTER_ADMIN_TOKEN: secret(value.asciiSecret, {
    help: 'Bearer token with every right, without spaces; use 16 characters or more. Commands accept a named token here, too.',
    unset: 'generated at first start and kept under `MUSTER_HOME`',
    example: 'a-long-random-text-of-your-own',
  }),
  METRICS_TOKEN: secret(value.longSecret, {
    help: 'Bearer token for `GET /metrics`: at least 16 characters without spaces. Every token that the API accepts is accepted there as well.',
    unset: 'anyone may scrape',
    example: 'a-long-random-text-for-prometheus',
  }),
  MUSTER_ENCRYPTION_KEYS: secret(value.encryptionKeys, {
    help: 'Keys for the tokens at rest: `keyid:base64-of-32-bytes`, comma-separated. The first encrypts, all decrypt.',
    unset: 'generated and kept under `MUSTER_HOME` with the embedded database; required with `DATABASE_URL`',
    example: 'k1:ZXhhbXBsZS1rZXktbmV2ZXItdXNlLXRoaXMtYXQtYWw=',
  }),
  MUSTER_SIGNING_KEY: secret(value.signingKey, {
    help: 'Ed25519 key that signs [certificates](certificates.md): base64 of its 32 bytes, or of its PKCS#8.',
    unset: 'derived from the first of `MUSTER_ENCRYPTION_KEYS`, or from the key kept under `MUSTER_HOME`',
    example: 'ZXhhbXBsZS1zaWduaW5nLWtleS1uZXZlci11c2UtaXQ=',
  }),
  MUSTER_PRIVACY_KEY: secret(value.privacyKey, {
    help: 'Key for the hashes of privacy rules: base64 of 32 bytes. Keep it: under another key the same value has another hash.',
    unset: 'none; required if the catalogue has a `hash` rule',
    example: 'ZXhhbXBsZS1rZXktbmV2ZXItdXNlLXRoaXMtYXQtYWw=',
  }),
  MUSTER_CATALOGUE: optional(path, {
    help: 'YAML or JSON file that replaces the built-in catalogue.',
    unset: 'the built-in catalogue: employees and departments',
    example: '/etc/muster/catalogue.yaml',
  }),
  SYNC_CRON: defaulted(value.cron, '0 2 * * *', {
    help: 'Start of the nightly sync: minute, hour, day of month, month, day of week.',
    example: '30 1 * * *',
  }),
  SYNC_TIMEZONE: defaulted(value.timezone, 'UTC', {
    help: 'Time zone of `SYNC_CRON`, as an IANA name.',
    example: 'Europe/Copenhagen',
  }),
  SYNC_SPREAD_MINUTES: defaulted(value.wholeNumber(0, 10_080), '120', {
    help: 'Window after `SYNC_CRON` over which the companies are spread.',
    example: '120',
  }),
  QUIET_HOURS: optional(value.quietHours, {
    help: 'Times of the day, in `SYNC_TIMEZONE`, in which nothing is asked of the service ([quiet hours](operating.md#quiet-hours)): comma-separated windows, which may pass midnight.',
    unset: 'the service is asked at any hour',
    example: '07:00-09:00,12:00-13:00',
  }),
  VERIFY_SHARE_PER_NIGHT: optional(value.share, {
    help: 'Share of the companies whose mirror is compared with the service each night after their sync, in turn.',
    unset: 'only on request',
    example: '3%',
  }),
  STALE_AFTER_HOURS: defaulted(value.wholeNumber(1, 8_760), '26', {
    help: 'A list is late when its last proof is older than this.',
    example: '50',
  }),
  REFRESH_MARGIN_SECONDS: optional(value.wholeNumber(0, 86_400), {
    help: 'How long before its expiry an access token is refreshed.',
    unset: 'a fifth of its lifetime, at least 60 s, never more than half the lifetime',
    example: '300',
  }),
  WORKER_CONCURRENCY: defaulted(value.wholeNumber(1, 100), '4', {
    help: 'Companies of each environment that one worker walks concurrently.',
    example: '8',
  }),
  REQUEST_TIMEOUT_SECONDS: defaulted(value.wholeNumber(1, 3_600), '30', {
    help: 'Longest silence of the service within one request; the request as a whole has 120 s.',
    example: '60',
  }),
  ANSWER_MEMORY_MB: optional(value.wholeNumber(16, 1_000_000), {
    help: 'Memory of one worker for responses of the service, in MB. A response takes three times its size until it is written.',
    unset: "512, or less: the heap's limit, or half of what the machine or the container has beyond 128 MB",
    example: '256',
  }),
  HEARTBEAT_URL: secret(value.httpsUrl, {
    help: 'Address of a monitor that alarms on silence ([notifications](notifications.md#silence)). The installation sends it a GET once a minute while a worker is alive and every sweep is on time. https unless on loopback.',
    unset: 'silence raises no alarm',
    example: 'https://monitor.example.com/ping/muster',
  }),
  NOTIFY_WEBHOOK_URL: secret(value.httpsUrl, {
    help: 'Address that receives [notifications](notifications.md); https unless on loopback.',
    unset: 'no notification is sent',
    example: 'https://hooks.example.com/muster',
  }),
  NOTIFY_WEBHOOK_SECRET: secret(value.longSecret, {
    help: 'Key that signs the notifications: at least 16 characters without spaces.',
    unset: 'no notification is sent',
    example: 'a-long-random-text-for-signing',
  }),
  EXPORT_TO: optional(value.exportTarget, {
    help: `Target of the export after each night: ${value.EXPORT_FOLDERS}. Contents and times: [export.md](export.md#after-each-night).`,
    unset: 'nights are not exported',
    example: '/srv/exports',
  }),
  EXPORT_FORMAT: optional(value.exportFormat, {
    help: 'Format of the exported files: `parquet`, `csv` or `ndjson`.',
    unset: '`parquet`',
    example: 'csv',
  }),
  EXPORT_RESOURCES: optional(value.list, {
    help: 'Resources that are exported, comma-separated.',
    unset: 'all resources of the catalogue',
    example: 'employees,departments',
  }),
  EXPORT_REQUIRE_VERIFIED: optional(value.yesOrNo, {
    help: '`yes`: a night is not exported while a list of the file has no proof or a late one; the issue `export_failed` says so.',
    unset: '`no`',
    example: 'yes',
  }),
  EXPORT_LAYOUT: optional(value.exportLayout, {
    help: 'Folders of the exported files: `flat` (`employees/2026-01-31.parquet`) or `date` (`employees/date=2026-01-31/employees.parquet`).',
    unset: '`flat`',
    example: 'date',
  }),
  EXPORT_CHANGES: optional(value.yesOrNo, {
    help: '`yes`: a file of the changes since the night before is next to each exported file (`2026-01-31.changes.parquet`).',
    unset: '`no`',
    example: 'yes',
  }),
  CHANGE_RETENTION_DAYS: optional(value.wholeNumber(1, 36_500), {
    help: 'How long the change feed keeps a change.',
    unset: 'for ever',
    example: '90',
  }),
  RUN_RETENTION_DAYS: defaulted(value.wholeNumber(1, 36_500), '90', {
    help: 'How long an ended run is kept, with its walks, rejected records and decided holds. The newest run of each company stays.',
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
  HTTPS_PROXY: secret(value.proxy, {
    help: 'Proxy for all requests to https addresses: the service, its authorization server, the webhook, the heartbeat, the issuer and S3 ([below](#proxies)).',
    unset: 'requests are sent directly',
    example: 'http://user:password@proxy.example.com:3128',
  }),
  HTTP_PROXY: secret(value.proxy, {
    help: 'Proxy for all requests to http addresses.',
    unset: 'requests are sent directly',
    example: 'http://proxy.example.com:3128',
  }),
  NO_PROXY: optional(value.noProxy, {
    help: 'Hosts that are reached without a proxy, comma-separated ([below](#proxies)).',
    unset: 'none',
    example: 'localhost,127.0.0.1,.internal.example.com,10.0.0.0/8',
  }),
  LOG_LEVEL: defaulted(value.logLevel, 'info', { help: 'Least severe level that is logged.', example: 'debug' }),
  LOG_FORMAT: defaulted(value.logFormat, 'auto', {
    help: 'Format of the log: `json`, one object per line; `pretty`, for people; `auto`, pretty on a terminal and JSON elsewhere.',
    example: 'json',
  }),
  ...prefixed('OTEL_EXPORTER_OTLP', traceSettings()),
  ...operatorSettings(),
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
    CLIENT_ID: needed(z.string(), { help: 'Identifier of the registered application.', example: 'muster' }),
    CLIENT_SECRET: secret(value.secret, {
      help: 'Secret of the application.',
      unset,
      example: 'the-secret-issued-at-registration',
    }),
    SCOPE: optional(value.scope, {
      help: 'Scopes that the consent screen asks for, separated by spaces.',
      unset: 'none; the service grants its default',
      example: 'offline_access employees.read',
    }),
    REDIRECT_URI: optional(value.httpsUrl, {
      help: 'Registered redirect URL of the application; https unless on loopback.',
      unset: '`PUBLIC_URL/oauth/callback`',
      example: 'https://muster.example.com/oauth/callback',
    }),
    REQUESTS_PER_SECOND: optional(value.wholeNumber(1, 100_000), {
      help: 'Limit for requests a second to its API, for all workers together.',
      unset: 'found by Muster',
      example: '20',
    }),
    REQUESTS_AT_ONCE: optional(value.wholeNumber(1, 10_000), {
      help: 'Limit for concurrent requests to its API, for all workers together.',
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

/** All variables, in the order of the documentation. */
export const SETTING_NAMES = Object.keys(SETTINGS.shape) as SettingName[];
