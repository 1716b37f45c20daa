import type { Clock } from '../core/clock.js';
import { withoutSlash } from '../core/own-address.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import type { Secret } from '../core/secret.js';
import type { HttpClient } from '../http/http-client.js';
import { ServiceError } from '../http/service-error.js';
import { registerSecret } from '../observability/secret-registry.js';
import { readTokenResponse, type TokenResponse } from './token-response.js';

/** Milliseconds for one exchange. Shorter than the lease under which it is made, and than the time for a shutdown. */
export const TOKEN_DEADLINE_MS = 10_000;

/**
 * POST {auth_url}/auth/token of one environment: refreshes and code exchanges. Sends once and returns the outcome. Only the
 * caller knows which token is stored, so only it may send again. This is not openid-client, because the difference between
 * "never sent", "perhaps sent" and "answered" decides whether an authorization is lost, and an API that throws for all
 * three hides it.
 */
export class TokenEndpoint {
  readonly #http: HttpClient;
  readonly #provider: ProviderSettings;
  readonly #clock: Clock;
  readonly #url: URL;

  constructor(http: HttpClient, provider: ProviderSettings, clock: Clock) {
    this.#http = http;
    this.#provider = provider;
    this.#clock = clock;
    this.#url = new URL(`${withoutSlash(provider.authUrl)}/auth/token`);
  }

  refresh(refreshToken: Secret): Promise<TokenResponse> {
    return this.#send({ grant_type: 'refresh_token', refresh_token: refreshToken.reveal() });
  }

  /** `verifier`: the PKCE verifier, whose hash was sent to the consent screen. */
  exchangeCode(code: Secret, verifier: Secret): Promise<TokenResponse> {
    return this.#send({
      grant_type: 'authorization_code',
      code: code.reveal(),
      redirect_uri: this.#provider.redirectUri.href,
      code_verifier: verifier.reveal(),
    });
  }

  async #send(fields: Record<string, string>): Promise<TokenResponse> {
    const { clientId, clientSecret } = this.#provider;
    registerSecret(clientSecret.reveal(), { lasting: true });
    try {
      const response = await this.#http.send({
        method: 'POST',
        url: this.#url,
        headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ ...fields, client_id: clientId, client_secret: clientSecret.reveal() }).toString(),
        deadlineMs: TOKEN_DEADLINE_MS,
        freshConnection: true,
      });
      return readTokenResponse(response, this.#clock.now());
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return error.sent ? { kind: 'ambiguous', cause: error } : { kind: 'unreachable', cause: error };
    }
  }
}
