import type { Environment } from './company.js';
import { MusterError } from './errors.js';
import type { Secret } from './secret.js';

/** The addresses of one environment of the service, and the application that was registered there. */
export interface ProviderSettings {
  /** Root of the API, {base_url}. */
  readonly baseUrl: URL;
  /** Roots of further hosts of the API, by the names that entries of the catalogue have for them. */
  readonly bases?: Readonly<Record<string, URL>> | undefined;
  /** Root of the authorization server, {auth_url}. */
  readonly authUrl: URL;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** The scope that the consent screen asks for; undefined: the default of the service. */
  readonly scope?: string | undefined;
  /** One of the application's registered redirect URLs. */
  readonly redirectUri: URL;
  /** The limit for all workers together; Muster finds it if it is not set. */
  readonly requestsPerSecond?: number | undefined;
  readonly maxConcurrentRequests?: number | undefined;
}

/** A value for each configured environment. */
export type ByEnvironment<T> = Readonly<Partial<Record<Environment, T>>>;

/** Makes a new value from each of them. */
export function mapEnvironments<T, U>(each: ByEnvironment<T>, make: (one: T, environment: Environment) => U): ByEnvironment<U> {
  const entries = Object.entries(each) as [Environment, T][];
  return Object.fromEntries(entries.map(([environment, one]) => [environment, make(one, environment)]));
}

/** Returns the value of this environment. Throws `environment_not_configured`. */
export function ofEnvironment<T>(each: ByEnvironment<T>, environment: Environment): T {
  const one = each[environment];
  if (one !== undefined) return one;
  const prefix = environment.toUpperCase();
  throw new MusterError(
    'environment_not_configured',
    `The ${environment} environment is not configured: set ${prefix}_BASE_URL, ${prefix}_AUTH_URL, ${prefix}_CLIENT_ID and ${prefix}_CLIENT_SECRET.`,
  );
}
