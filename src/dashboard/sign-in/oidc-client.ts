import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import type { Proxies } from '../../http/proxy/proxies.js';
import { fetchThrough } from '../../http/proxy/through-proxies.js';
import { registerSecret } from '../../observability/secret-registry.js';
import { type Claims, isEnough } from './oidc-claims.js';
import type { OidcSettings } from './oidc-settings.js';
import type { SignInFlow } from './sign-in-flow.js';

/** The timeout of each request to the issuer: a person waits for it. */
const TIMEOUT_SECONDS = 10;
/** The issuer's addresses are looked up again after this time, since they may change. */
const KNOWN_MS = 3_600_000;

/**
 * Why a sign-in failed.
 * - `unreachable`: there was no response, or an unreadable one.
 * - `cancelled`: the issuer sent the person back without a code.
 * - `spent`: the issuer does not accept the code, or no longer.
 * - `rejected`: the issuer does not accept Muster's credentials.
 * - `untrusted`: the response failed a check.
 */
type OidcFault = 'unreachable' | 'cancelled' | 'spent' | 'rejected' | 'untrusted';

export class OidcError extends Error {
  readonly fault: OidcFault;
  /** A word of the protocol, never a text from the issuer. */
  readonly reason: string;

  constructor(fault: OidcFault, reason: string) {
    super(`Signing in by OpenID Connect failed: ${fault} (${reason})`);
    this.fault = fault;
    this.reason = reason;
  }
}

/** Codes of the library for responses that are not OpenID Connect: from a proxy in front of the issuer, or from a broken issuer. */
const UNREADABLE: ReadonlySet<string> = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_PARSE_ERROR',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
]);

/** Signs people in at an issuer: the authorization code flow with PKCE, state and nonce; it checks the signatures of ID tokens. */
export class OidcClient {
  readonly #settings: OidcSettings;
  readonly #callback: URL;
  readonly #now: () => number;
  readonly #proxies: Proxies | undefined;
  #known: { readonly configuration: Promise<Configuration>; readonly until: number } | undefined;

  constructor(
    settings: OidcSettings,
    { callback, now, proxies }: { readonly callback: URL; readonly now: () => number; readonly proxies?: Proxies | undefined },
  ) {
    this.#settings = settings;
    this.#callback = callback;
    this.#now = now;
    this.#proxies = proxies;
    registerSecret(settings.clientSecret.reveal(), { lasting: true });
  }

  /** The address at which the person signs in. Throws OidcError. */
  async signInUrl({ state, nonce, verifier }: SignInFlow): Promise<URL> {
    const configuration = await this.#configuration();
    return buildAuthorizationUrl(configuration, {
      redirect_uri: this.#callback.href,
      scope: this.#settings.scope,
      response_type: 'code',
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
    });
  }

  /** The claims about the person whom the issuer sent back with this query. Reads the user info if the ID token lacks something. Throws OidcError. */
  async claimsOf(query: string, { state, nonce, verifier }: SignInFlow): Promise<Claims> {
    const configuration = await this.#configuration();
    const address = new URL(`${this.#callback.href}?${query}`);
    registerSecret(address.searchParams.get('code') ?? '');
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
    return orOidcError(async () => {
      const tokens = await authorizationCodeGrant(configuration, address, checks);
      const claims = tokens.claims() as Claims;
      if (isEnough(claims, this.#settings) || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
      return { ...(await fetchUserInfo(configuration, tokens.access_token, claims.sub)), ...claims };
    });
  }

  /** The address at which people sign out of the issuer itself; undefined if it has none. Throws OidcError. */
  async signOutUrl(): Promise<URL | undefined> {
    const configuration = await this.#configuration();
    const { end_session_endpoint: endpoint } = configuration.serverMetadata();
    return endpoint === undefined ? undefined : buildEndSessionUrl(configuration);
  }

  /** Looks the issuer up at a sign-in and not before, so that Muster starts without it. */
  #configuration(): Promise<Configuration> {
    if (this.#known && this.#now() < this.#known.until) return this.#known.configuration;
    const configuration = orOidcError(() => this.#discover());
    this.#known = { configuration, until: this.#now() + KNOWN_MS };
    // The next sign-in repeats a failed lookup.
    configuration.catch(() => {
      if (this.#known?.configuration === configuration) this.#known = undefined;
    });
    return configuration;
  }

  async #discover(): Promise<Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const secret = clientSecret.reveal();
    // The settings allow http only on loopback.
    const execute = [enableNonRepudiationChecks, ...(issuer.protocol === 'http:' ? [allowInsecureRequests] : [])];
    const authenticate: ReturnType<typeof ClientSecretBasic> = (server, client, body, headers) => {
      // The default is that of OpenID Connect for a server that names no method.
      const { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] } = server;
      const how = methods.includes('client_secret_basic') ? ClientSecretBasic(secret) : ClientSecretPost(secret);
      return how(server, client, body, headers);
    };
    const through = this.#proxies?.areSet ? { [customFetch]: await fetchThrough(this.#proxies) } : {};
    return discovery(issuer, clientId, undefined, authenticate, { execute, timeout: TIMEOUT_SECONDS, ...through });
  }
}

async function orOidcError<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw faultOf(error);
  }
}

/** The library's errors hold responses, and with them tokens, so this keeps only words of the protocol. */
function faultOf(error: unknown): OidcError {
  if (error instanceof AuthorizationResponseError) return new OidcError('cancelled', word(error.error));
  if (error instanceof ResponseBodyError) {
    if (error.status >= 500) return new OidcError('unreachable', word(error.error));
    return new OidcError(error.error === 'invalid_grant' ? 'spent' : 'rejected', word(error.error));
  }
  if (error instanceof WWWAuthenticateChallengeError) return new OidcError('rejected', word(error.cause[0]?.parameters.error));
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  // `fetch` throws a TypeError if no response came.
  if (error instanceof TypeError && code === undefined) return new OidcError('unreachable', word(cause?.code));
  const reason = word(code);
  return new OidcError(UNREADABLE.has(reason) ? 'unreachable' : 'untrusted', reason);
}

function word(text: unknown): string {
  return typeof text === 'string' && /^\w{1,64}$/.test(text) ? text : 'unknown';
}
