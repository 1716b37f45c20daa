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
