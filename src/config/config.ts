import { ENVIRONMENTS, type Environment } from '../core/company.js';
import type { EncryptionKey } from '../core/encryption-key.js';
import { type Fault, FaultsError } from '../core/errors.js';
import { ownAddress } from '../core/own-address.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import type { Secret } from '../core/secret.js';
import { isSafe, Problem } from './setting-values.js';
import { type DefaultedSetting, PROVIDERS, SETTINGS, type Setting, type SettingHelp } from './settings.js';

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

/** Reads the settings; an empty variable counts as unset. Throws FaultsError `invalid_configuration` with every fault. */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const faults: Fault[] = [];
  const fault = ({ name, example }: SettingHelp, problem: string) => faults.push({ where: name, problem, example });
  const isSet = ({ name }: SettingHelp) => (env[name] ?? '').trim() !== '';

  function read<T>(wanted: DefaultedSetting<T>): T;
  function read<T>(wanted: Setting<T>): T | undefined;
  function read<T>(wanted: Setting<T> | DefaultedSetting<T>): T | undefined {
    const fallback = () => ('defaulted' in wanted ? wanted.parse(wanted.unset) : undefined);
    if (!isSet(wanted)) return fallback();
    try {
      return wanted.parse((env[wanted.name] ?? '').trim());
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      fault(wanted, error.message);
      return fallback();
    }
  }

  const databaseUrl = read(SETTINGS.databaseUrl);
  const host = read(SETTINGS.host);
  const port = read(SETTINGS.port);
  const publicUrl = read(SETTINGS.publicUrl) ?? ownAddress(host, port);
  if (isSet(SETTINGS.databaseUrl) && !isSet(SETTINGS.encryptionKeys)) {
    fault(SETTINGS.encryptionKeys, 'is missing; with DATABASE_URL set, the tokens in that database need keys that you keep');
  }

  function readProvider(environment: Environment): ProviderSettings | undefined {
    const { redirectUri: redirect, ...needed } = PROVIDERS[environment];
    const table: Setting<unknown>[] = Object.values<Setting<unknown>>(needed);
    if (!table.some(isSet) && !isSet(redirect)) return undefined;
    const names = table.map(({ name }) => name).join(', ');
    for (const missing of table.filter((one) => !isSet(one))) {
      fault(missing, `is missing; the ${environment} environment is configured by ${names} together, or by none of them`);
    }
    const [baseUrl, authUrl, clientId, clientSecret] = [
      read(needed.baseUrl),
      read(needed.authUrl),
      read(needed.clientId),
      read(needed.clientSecret),
    ];
    const derived = callbackUrl({ publicUrl });
    if (!isSet(redirect) && !isSafe(derived)) {
      fault(redirect, 'is missing, and PUBLIC_URL/oauth/callback, which stands in for it, is not https');
    }
    const redirectUri = read(redirect) ?? derived;
    if (!baseUrl || !authUrl || !clientId || !clientSecret) return undefined;
    return { baseUrl, authUrl, clientId, clientSecret, redirectUri };
  }

  function readWebhook(): Config['webhook'] {
    const { webhookUrl, webhookSecret } = SETTINGS;
    for (const [one, other] of [[webhookUrl, webhookSecret] as const, [webhookSecret, webhookUrl] as const]) {
      if (isSet(one) && !isSet(other)) fault(other, `is missing; ${webhookUrl.name} and ${webhookSecret.name} are set together`);
    }
    const [url, signingSecret] = [read(webhookUrl), read(webhookSecret)];
    return url && signingSecret && { url, secret: signingSecret };
  }

  const config: Config = {
    home: read(SETTINGS.home),
    host,
    port,
    publicUrl,
    schedule: { cron: read(SETTINGS.cron), timezone: read(SETTINGS.timezone), spreadMinutes: read(SETTINGS.spreadMinutes) },
    providers: present(Object.fromEntries(ENVIRONMENTS.map((environment) => [environment, readProvider(environment)]))),
    workerConcurrency: read(SETTINGS.workerConcurrency),
    requestTimeoutSeconds: read(SETTINGS.requestTimeoutSeconds),
    logLevel: read(SETTINGS.logLevel),
    ...present({
      databaseUrl,
      redisUrl: read(SETTINGS.redisUrl),
      adminToken: read(SETTINGS.adminToken),
      encryptionKeys: read(SETTINGS.encryptionKeys),
      cataloguePath: read(SETTINGS.cataloguePath),
      refreshMarginSeconds: read(SETTINGS.refreshMarginSeconds),
      changeRetentionDays: read(SETTINGS.changeRetentionDays),
      webhook: readWebhook(),
    }),
  };
  if (faults.length === 0) return config;
  const count = `${faults.length} ${faults.length === 1 ? 'setting is' : 'settings are'} wrong or missing`;
  throw new FaultsError('invalid_configuration', `Muster cannot start: ${count}.`, faults);
}

/** Without the members that are undefined. */
function present<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}

/** Where the service sends people back to, unless a redirect URI says another place. */
export function callbackUrl({ publicUrl }: Pick<Config, 'publicUrl'>): URL {
  return new URL(`${publicUrl.href.replace(/\/$/, '')}/oauth/callback`);
}
