import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { loadCatalogue } from '../catalogue/load-catalogue.js';
import type { Environment } from '../core/company.js';
import { type Fault, FaultsError } from '../core/errors.js';
import { present } from '../core/json.js';
import { ownAddress, withoutSlash } from '../core/own-address.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import { QuietHours } from '../core/quiet-hours.js';
import { type OidcSettings, signInCallback } from '../dashboard/sign-in/oidc-settings.js';
import { Proxies } from '../http/proxy/proxies.js';
import { registerPasswordOf, registerSecret } from '../observability/secret-registry.js';
import { faultsWith } from './catalogue-needs.js';
import { readBases } from './further-bases.js';
import { faultsOfFiles, operatorOf } from './operator-settings.js';
import { isSafe } from './setting-values.js';
import { helpOf, SETTING_NAMES, SETTINGS, type SettingName } from './settings.js';
import { fileOf, showSettings, textOf } from './shown-settings.js';
import { tracesOf } from './trace-settings.js';

/** The settings of a process. A member that is absent is unset; docs/configuration.md says what then applies. */
export type Config = ReturnType<typeof readConfig>['config'];

/**
 * Reads the settings; an empty variable counts as unset. Throws FaultsError `invalid_configuration` with every fault but without any
 * value.
 */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const { config, faults } = readConfig(env);
  requireNone(faults);
  return config;
}

function requireNone(faults: readonly Fault[]): void {
  if (faults.length === 0) return;
  const count = `${faults.length} ${faults.length === 1 ? 'setting is' : 'settings are'} wrong or missing`;
  throw new FaultsError('invalid_configuration', `Muster cannot start: ${count}.`, faults);
}

/** The settings with all their faults. A wrong setting counts as unset, so that the others can still be examined. */
export function readConfig(env: NodeJS.ProcessEnv) {
  const faults: Fault[] = [];
  const texts = textsOf(env, faults);
  const wrong = new Set(faults.map(({ where }) => where.replace(/_FILE$/, '')));
  const isSet = (name: SettingName) => wrong.has(name) || texts[name] !== undefined;
  const isAnySet = (prefix: string) => SETTING_NAMES.some((name) => name.startsWith(`${prefix}_`) && isSet(name));
  const fault = (name: SettingName, problem: string) => faults.push({ where: name, problem, example: helpOf(name).example });
  const missing = (name: SettingName, why: string) => isSet(name) || fault(name, `is missing${why}`);

  const read = SETTINGS.safeParse(texts);
  for (const [name, problems] of Object.entries(read.success ? {} : z.flattenError(read.error).fieldErrors)) {
    fault(name as SettingName, problems.join('; '));
    wrong.add(name);
  }
  // A wrong setting counts as unset from here on, so that the rules between settings are checked as well.
  const values = read.data ?? SETTINGS.parse({ ...texts, ...Object.fromEntries([...wrong].map((name) => [name, undefined])) });
  for (const secret of [env.AWS_SECRET_ACCESS_KEY, env.AWS_SESSION_TOKEN]) registerSecret(secret ?? '', { lasting: true });
  for (const url of [values.DATABASE_URL, values.REDIS_URL, texts.HTTPS_PROXY, texts.HTTP_PROXY])
    if (url !== undefined) registerPasswordOf(url);
  const publicUrl = values.PUBLIC_URL ?? ownAddress(values.HOST, values.PORT);

  if (isSet('DATABASE_URL')) {
    missing('MUSTER_ENCRYPTION_KEYS', '; with DATABASE_URL set, the tokens in that database need keys that you keep');
  }
  const webhook = ['NOTIFY_WEBHOOK_URL', 'NOTIFY_WEBHOOK_SECRET'] as const;
  if (webhook.some(isSet)) for (const name of webhook) missing(name, `; ${webhook.join(' and ')} are set together`);

  const ofExports = ['EXPORT_FORMAT', 'EXPORT_RESOURCES', 'EXPORT_REQUIRE_VERIFIED', 'EXPORT_LAYOUT', 'EXPORT_CHANGES'] as const;
  if (ofExports.some(isSet)) missing('EXPORT_TO', `; ${ofExports.join(', ')} have no effect without it`);

  function providerOf(environment: Environment): ProviderSettings | undefined {
    const prefix = environment === 'production' ? 'PRODUCTION' : 'TEST';
    const needed = [`${prefix}_BASE_URL`, `${prefix}_AUTH_URL`, `${prefix}_CLIENT_ID`, `${prefix}_CLIENT_SECRET`] as const;
    const optional = [
      `${prefix}_REDIRECT_URI`,
      `${prefix}_SCOPE`,
      `${prefix}_REQUESTS_PER_SECOND`,
      `${prefix}_REQUESTS_AT_ONCE`,
    ] as const;
    const { bases, faults: ofBases } = readBases(env, environment);
    faults.push(...ofBases);
    const hasBases = ofBases.length > 0 || Object.keys(bases).length > 0;
    if (!hasBases && !isAnySet(prefix)) return undefined;
    for (const name of needed) {
      missing(name, `; the ${environment} environment is configured by ${needed.join(', ')} together, or by none of them`);
    }
    const callback = callbackUrl({ publicUrl });
    if (!isSafe(callback)) missing(optional[0], ', and PUBLIC_URL/oauth/callback, its default, is not https');
    const { [needed[0]]: baseUrl, [needed[1]]: authUrl, [needed[2]]: clientId, [needed[3]]: clientSecret } = values;
    if (!baseUrl || !authUrl || !clientId || !clientSecret) return undefined;
    const { [optional[1]]: scope, [optional[2]]: requestsPerSecond, [optional[3]]: maxConcurrentRequests } = values;
    return {
      baseUrl,
      ...(hasBases && { bases }),
      authUrl,
      clientId,
      clientSecret,
      redirectUri: values[optional[0]] ?? callback,
      ...present({ scope, requestsPerSecond, maxConcurrentRequests }),
    };
  }

  function oidcOf(): OidcSettings | undefined {
    const needed = ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'] as const;
    const roles = ['OIDC_ADMINS', 'OIDC_OPERATORS', 'OIDC_VIEWERS'] as const;
    if (!isAnySet('OIDC')) return undefined;
    for (const name of needed) missing(name, `; people sign in by OpenID Connect with ${needed.join(', ')} together`);
    if (!roles.some(isSet)) fault(roles[0], `is missing, and so are ${roles[1]} and ${roles[2]}: no person could sign in`);
    if (!isSafe(signInCallback(publicUrl)))
      fault('PUBLIC_URL', 'must be https, unless its host is loopback, where people sign in by OpenID Connect');
    const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = values;
    if (!issuer || !clientId || !clientSecret) return undefined;
    const { OIDC_ADMINS: admin = [], OIDC_OPERATORS: operator = [], OIDC_VIEWERS: viewer = [] } = values;
    const { OIDC_SCOPE: scope, OIDC_ROLE_CLAIM: roleClaim, OIDC_NAME_CLAIM: nameClaim } = values;
    return { issuer, clientId, clientSecret, scope, roleClaim, roles: { admin, operator, viewer }, ...present({ nameClaim }) };
  }

  const { NOTIFY_WEBHOOK_URL: url, NOTIFY_WEBHOOK_SECRET: secret } = values;
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracesEndpoint } = values;
  const { traces, faults: ofTraces } = tracesOf({ endpoint, tracesEndpoint, headers: values.OTEL_EXPORTER_OTLP_HEADERS }, env);
  faults.push(...ofTraces);
  const { EXPORT_TO: to, EXPORT_FORMAT: format = 'parquet', EXPORT_RESOURCES: resources } = values;
  const { EXPORT_REQUIRE_VERIFIED: requiresProofs, EXPORT_LAYOUT: layout, EXPORT_CHANGES: makesChanges } = values;
  const providers: Partial<Record<Environment, ProviderSettings>> = present({
    production: providerOf('production'),
    test: providerOf('test'),
  });
  const config = {
    /** Folder for everything outside the database: embedded server, generated keys and token. */
    home: values.MUSTER_HOME,
    host: values.HOST,
    port: values.PORT,
    publicUrl,
    schedule: { cron: values.SYNC_CRON, timezone: values.SYNC_TIMEZONE, spreadMinutes: values.SYNC_SPREAD_MINUTES },
    quiet: new QuietHours({ windows: values.QUIET_HOURS ?? [], timezone: values.SYNC_TIMEZONE }),
    staleAfterHours: values.STALE_AFTER_HOURS,
    providers,
    workerConcurrency: values.WORKER_CONCURRENCY,
    requestTimeoutSeconds: values.REQUEST_TIMEOUT_SECONDS,
    runRetentionDays: values.RUN_RETENTION_DAYS,
    auditRetentionDays: values.AUDIT_RETENTION_DAYS,
    quarantineRetentionDays: values.QUARANTINE_RETENTION_DAYS,
    proxies: new Proxies({ https: values.HTTPS_PROXY, http: values.HTTP_PROXY, noProxy: values.NO_PROXY }),
    operator: operatorOf(values),
    logLevel: values.LOG_LEVEL,
    drainSeconds: values.DRAIN_SECONDS,
    shown: showSettings(env),
    logFormat: values.LOG_FORMAT,
    ...present({
      installation: values.INSTALLATION,
      tokenJournal: values.TOKEN_JOURNAL,
      databaseUrl: values.DATABASE_URL,
      redisUrl: values.REDIS_URL,
      adminToken: values.MUSTER_ADMIN_TOKEN,
      metricsToken: values.METRICS_TOKEN,
      encryptionKeys: values.MUSTER_ENCRYPTION_KEYS,
      privacyKey: values.MUSTER_PRIVACY_KEY,
      signingKey: values.MUSTER_SIGNING_KEY,
      cataloguePath: values.MUSTER_CATALOGUE,
      refreshMarginSeconds: values.REFRESH_MARGIN_SECONDS,
      verifySharePerNight: values.VERIFY_SHARE_PER_NIGHT,
      answerMemoryBytes: values.ANSWER_MEMORY_MB && values.ANSWER_MEMORY_MB * 1024 * 1024,
      changeRetentionDays: values.CHANGE_RETENTION_DAYS,
      exports: to === undefined ? undefined : { to, format, ...present({ resources, requiresProofs, layout, makesChanges }) },
      oidc: oidcOf(),
      probePort: values.PROBE_PORT,
      heartbeatUrl: values.HEARTBEAT_URL,
      webhook: url && secret && { url, secret },
      traces,
    }),
  };
  return { config, faults };
}

/** The trimmed texts of the variables that are set. A secret may also come from the file that NAME_FILE names. */
function textsOf(env: NodeJS.ProcessEnv, faults: Fault[]): Partial<Record<SettingName, string>> {
  const texts: Partial<Record<SettingName, string>> = {};
  for (const name of SETTING_NAMES) {
    const [text, file] = [textOf(env, name), fileOf(env, name)];
    if (text) texts[name] = text;
    if (!file) continue;
    const problem = text ? `is set together with ${name}; set only one of them` : readInto(texts, name, file);
    if (problem) faults.push({ where: `${name}_FILE`, problem, example: `/run/secrets/${name.toLowerCase()}` });
  }
  return texts;
}

/** Returns the problem with the file, if there is one. */
function readInto(texts: Partial<Record<SettingName, string>>, name: SettingName, file: string): string | undefined {
  try {
    const text = readFileSync(file, 'utf8').trim();
    if (text === '') return 'must name a file that is not empty';
    texts[name] = text;
    return undefined;
  } catch (error) {
    return `must name a file that can be read (${(error as NodeJS.ErrnoException).code})`;
  }
}

/**
 * The settings of a serving process, checked together with the catalogue. Throws FaultsError with every fault of both at once:
 * `invalid_configuration`, or `invalid_catalogue` if the settings are right.
 */
export function loadServerConfig(env: NodeJS.ProcessEnv): Config {
  const { config, faults: ofSettings } = readConfig(env);
  const faults = [...ofSettings, ...faultsOfFiles(config.operator)];
  try {
    const catalogue = loadCatalogue(config.cataloguePath);
    const isWrong = (name: string) => faults.some(({ where }) => where.replace(/_FILE$/, '') === name);
    requireNone([...faults, ...faultsWith(config, catalogue).filter(({ where }) => !isWrong(where))]);
  } catch (error) {
    if (!(error instanceof FaultsError) || error.code !== 'invalid_catalogue' || faults.length === 0) throw error;
    const all = [...faults, ...error.faults];
    throw new FaultsError('invalid_configuration', 'Muster cannot start: settings and the catalogue are wrong.', all);
  }
  return config;
}

/** The address to which the service sends people back, unless a redirect URI is set. */
export function callbackUrl({ publicUrl }: { readonly publicUrl: URL }): URL {
  return new URL(`${withoutSlash(publicUrl)}/oauth/callback`);
}
