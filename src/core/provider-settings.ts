import type { Environment } from './company.js';
import { MusterError } from './errors.js';
import type { Secret } from './secret.js';

/** Where one environment of the service is, and the application that was registered there. */
export interface ProviderSettings {
  /** Root of the API, {base_url}. */
  readonly baseUrl: URL;
  /** Root of the authorization server, {auth_url}. */
  readonly authUrl: URL;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** One of the application's registered redirect URLs. */
  readonly redirectUri: URL;
}

/** One of something for each environment that is configured. */
export type ByEnvironment<T> = Readonly<Partial<Record<Environment, T>>>;

/** The one of this environment. Throws `environment_not_configured`. */
export function ofEnvironment<T>(each: ByEnvironment<T>, environment: Environment): T {
  const one = each[environment];
  if (one !== undefined) return one;
  const prefix = environment.toUpperCase();
  throw new MusterError(
    'environment_not_configured',
    `The ${environment} environment is not configured: set ${prefix}_BASE_URL, ${prefix}_AUTH_URL, ${prefix}_CLIENT_ID and ${prefix}_CLIENT_SECRET.`,
  );
}
