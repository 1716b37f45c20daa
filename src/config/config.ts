import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { loadCatalogue } from '../catalogue/load-catalogue.js';
import { ENVIRONMENTS, type Environment } from '../core/company.js';
import { type Fault, FaultsError } from '../core/errors.js';
import { ownAddress, withoutSlash } from '../core/own-address.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import type { EncryptionKey, Secret } from '../core/secret.js';
import { isSafe } from './setting-values.js';
import { helpOf, SETTING_NAMES, SETTINGS, type SettingName } from './settings.js';

export interface Config {
  /** Folder of what Muster keeps beside the database: embedded server, generated keys and token. */
  readonly home: string;
  /** Unset: an embedded PostgreSQL under `home`. */
  readonly databaseUrl?: string;
  /** Unset: BullMQ's PostgreSQL backend. */
  readonly redisUrl?: string;
  readonly host: string;
  readonly port: number;
  readonly publicUrl: URL;
  /** Unset: generated under `home`. */
  readonly adminToken?: Secret;
  /** The first encrypts, all decrypt. Unset, which only the embedded database allows: generated under `home`. */
  readonly encryptionKeys?: readonly EncryptionKey[];
  readonly providers: Partial<Record<Environment, ProviderSettings>>;
  readonly cataloguePath?: string;
  readonly schedule: { readonly cron: string; readonly timezone: string; readonly spreadMinutes: number };
  readonly refreshMarginSeconds?: number;
  /** Who is told of what a person should know. Unset: nobody. */
  readonly webhook?: { readonly url: URL; readonly secret: Secret };
  /** Companies that one worker walks side by side. */
  readonly workerConcurrency: number;
  /** Longest silence of the service within one request. */
  readonly requestTimeoutSeconds: number;
  readonly changeRetentionDays?: number;
  readonly logLevel: string;
}

/**
 * Reads the settings; an empty variable counts as unset. Throws FaultsError `invalid_configuration` with every fault, and never with a
 * value.
 */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const faults: Fault[] = [];
  const texts = textsOf(env, faults);
  const wrong = new Set(faults.map(({ where }) => where.replace(/_FILE$/, '')));
  const isSet = (name: SettingName) => wrong.has(name) || texts[name] !== undefined;
  const fault = (name: SettingName, problem: string) => faults.push({ where: name, problem, example: helpOf(name).example });
  const missing = (name: SettingName, why: string) => isSet(name) || fault(name, `is missing${why}`);

  const read = SETTINGS.safeParse(texts);
  for (const [name, problems] of Object.entries(read.success ? {} : z.flattenError(read.error).fieldErrors)) {
    fault(name as SettingName, problems.join('; '));
    wrong.add(name);
  }
  // What is wrong counts as unset from here on, so that the rules between settings are checked as well.
  const values = read.data ?? SETTINGS.parse({ ...texts, ...Object.fromEntries([...wrong].map((name) => [name, undefined])) });
  const publicUrl = values.PUBLIC_URL ?? ownAddress(values.HOST, values.PORT);

  if (isSet('DATABASE_URL')) {
    missing('MUSTER_ENCRYPTION_KEYS', '; with DATABASE_URL set, the tokens in that database need keys that you keep');
  }
  const webhook = ['NOTIFY_WEBHOOK_URL', 'NOTIFY_WEBHOOK_SECRET'] as const;
  if (webhook.some(isSet)) for (const name of webhook) missing(name, `; ${webhook.join(' and ')} are set together`);

  function providerOf(environment: Environment): ProviderSettings | undefined {
    const prefix = environment === 'production' ? 'PRODUCTION' : 'TEST';
    const redirect = `${prefix}_REDIRECT_URI` as const;
    const needed = [`${prefix}_BASE_URL`, `${prefix}_AUTH_URL`, `${prefix}_CLIENT_ID`, `${prefix}_CLIENT_SECRET`] as const;
    if (![...needed, redirect].some(isSet)) return undefined;
    for (const name of needed) {
      missing(name, `; the ${environment} environment is configured by ${needed.join(', ')} together, or by none of them`);
    }
    const callback = callbackUrl({ publicUrl });
    if (!isSafe(callback)) missing(redirect, ', and PUBLIC_URL/oauth/callback, which stands in for it, is not https');
    const { [needed[0]]: baseUrl, [needed[1]]: authUrl, [needed[2]]: clientId, [needed[3]]: clientSecret } = values;
    if (!baseUrl || !authUrl || !clientId || !clientSecret) return undefined;
    return { baseUrl, authUrl, clientId, clientSecret, redirectUri: values[redirect] ?? callback };
  }

  const { NOTIFY_WEBHOOK_URL: url, NOTIFY_WEBHOOK_SECRET: secret } = values;
  const config: Config = {
    home: values.MUSTER_HOME,
    host: values.HOST,
    port: values.PORT,
    publicUrl,
    schedule: { cron: values.SYNC_CRON, timezone: values.SYNC_TIMEZONE, spreadMinutes: values.SYNC_SPREAD_MINUTES },
    providers: present(Object.fromEntries(ENVIRONMENTS.map((environment) => [environment, providerOf(environment)]))),
    workerConcurrency: values.WORKER_CONCURRENCY,
    requestTimeoutSeconds: values.REQUEST_TIMEOUT_SECONDS,
    logLevel: values.LOG_LEVEL,
    ...present({
      databaseUrl: values.DATABASE_URL,
      redisUrl: values.REDIS_URL,
      adminToken: values.MUSTER_ADMIN_TOKEN,
      encryptionKeys: values.MUSTER_ENCRYPTION_KEYS,
      cataloguePath: values.MUSTER_CATALOGUE,
      refreshMarginSeconds: values.REFRESH_MARGIN_SECONDS,
      changeRetentionDays: values.CHANGE_RETENTION_DAYS,
      webhook: url && secret && { url, secret },
    }),
  };
  if (faults.length === 0) return config;
  const count = `${faults.length} ${faults.length === 1 ? 'setting is' : 'settings are'} wrong or missing`;
  throw new FaultsError('invalid_configuration', `Muster cannot start: ${count}.`, faults);
}

/** The texts of the variables that are set, trimmed; that of a secret also from the file that NAME_FILE names. */
function textsOf(env: NodeJS.ProcessEnv, faults: Fault[]): Partial<Record<SettingName, string>> {
  const texts: Partial<Record<SettingName, string>> = {};
  for (const name of SETTING_NAMES) {
    const [text, file] = [env[name]?.trim(), helpOf(name).secret && env[`${name}_FILE`]?.trim()];
    if (text) texts[name] = text;
    if (!file) continue;
    const problem = text ? `is set beside ${name}; set one of them` : readInto(texts, name, file);
    if (problem) faults.push({ where: `${name}_FILE`, problem, example: `/run/secrets/${name.toLowerCase()}` });
  }
  return texts;
}

/** Returns what is wrong with the file. */
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
 * The settings of a process that serves, and not only reads them to find one that does. Throws FaultsError with every fault of the
 * settings and of the catalogue at once: `invalid_configuration`, or `invalid_catalogue` where the settings are right.
 */
export function loadServerConfig(env: NodeJS.ProcessEnv): Config {
  const errors: FaultsError[] = [];
  const attempt = <T>(load: () => T): T | undefined => {
    try {
      return load();
    } catch (error) {
      if (!(error instanceof FaultsError)) throw error;
      errors.push(error);
      return undefined;
    }
  };
  const config = attempt(() => loadConfig(env));
  attempt(() => loadCatalogue(env.MUSTER_CATALOGUE?.trim() || undefined));
  if (errors.length === 2) {
    const faults = errors.flatMap((error) => error.faults);
    throw new FaultsError('invalid_configuration', 'Muster cannot start: settings and the catalogue are wrong.', faults);
  }
  if (!config || errors[0]) throw errors[0]!;
  return config;
}

/** Without the members that are undefined. */
function present<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}

/** Where the service sends people back to, unless a redirect URI says another place. */
export function callbackUrl({ publicUrl }: Pick<Config, 'publicUrl'>): URL {
  return new URL(`${withoutSlash(publicUrl)}/oauth/callback`);
}
