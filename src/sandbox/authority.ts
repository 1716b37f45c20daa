import type { Clock } from '../core/clock.js';
import { MusterError } from '../core/errors.js';
import { digest } from '../core/secret.js';
import type { Grants, IssuedTokens } from './grants.js';
import { randomToken, Tokens } from './tokens.js';

/** The life of an authorization code: 5 minutes, as in the service. */
const CODE_SECONDS = 5 * 60;

/** Members of a query or of a form. */
export type Form = Readonly<Record<string, string | undefined>>;

/** An authorization request that waits for the member's decision. */
interface Consent {
  readonly redirectUri: string;
  /** The PKCE challenge (RFC 7636): the client that redeems the code must know the text with this SHA-256. */
  readonly challenge: string | undefined;
  readonly state: string | undefined;
}

interface Code extends Pick<Consent, 'redirectUri' | 'challenge'> {
  readonly companyId: string;
}

/** The outcome of GET /auth/authorize. */
export type Authorize =
  | { readonly kind: 'consent'; readonly consentId: string; readonly companyId: string | undefined }
  | { readonly kind: 'redirect'; readonly location: string }
  | { readonly kind: 'error'; readonly problem: string };

/** The errors of the token endpoint (RFC 6749, 5.2). */
export interface TokenRefusal {
  readonly status: 400 | 401;
  readonly error: 'invalid_request' | 'invalid_client' | 'invalid_grant' | 'unsupported_grant_type';
  readonly description: string;
}

export interface Registration {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUris: readonly string[];
}

/** The authorization server: one registered application, the members' decisions, the token endpoint. */
export class Authority {
  readonly #application: Registration;
  readonly #grants: Grants;
  readonly #consents = new Map<string, Consent>();
  readonly #codes: Tokens<Code>;

  constructor(clock: Clock, application: Registration, grants: Grants) {
    for (const uri of application.redirectUris) requireSafe(uri);
    this.#codes = new Tokens(clock, CODE_SECONDS);
    this.#application = application;
    this.#grants = grants;
  }

  /**
   * An unknown client or address gets an error page: the browser is never sent to an address that is not registered. Any other failure goes
   * back to redirect_uri, without a code.
   */
  authorize(query: Form): Authorize {
    if (query.client_id !== this.#application.clientId) return { kind: 'error', problem: 'No application has this client_id.' };
    const redirectUri = query.redirect_uri ?? '';
    if (!this.#application.redirectUris.includes(redirectUri)) {
      return { kind: 'error', problem: 'This redirect_uri is not among the registered redirect URLs of the application.' };
    }
    const state = query.state;
    if (query.response_type !== 'code') return { kind: 'redirect', location: back({ redirectUri, state }) };
    const { code_challenge: challenge, code_challenge_method: method } = query;
    // In RFC 7636 a missing method means `plain`, which protects nothing from a program that sees the address.
    if (challenge !== undefined && (method !== 'S256' || !/^[\w-]{43}$/.test(challenge)))
      return { kind: 'redirect', location: back({ redirectUri, state }) };
    const consentId = randomToken();
    this.#consents.set(consentId, { redirectUri, state, challenge });
    return { kind: 'consent', consentId, companyId: query.company_id };
  }

  /** The address for the browser after the decision (`companyId` undefined: denied); undefined if the consent is unknown. */
  decide(consentId: string, companyId: string | undefined): string | undefined {
    const consent = this.#consents.get(consentId);
    if (!consent) return undefined;
    this.#consents.delete(consentId);
    if (companyId === undefined) return back(consent);
    const { redirectUri, challenge } = consent;
    return back(consent, this.#codes.issue({ redirectUri, challenge, companyId }));
  }

  /** Handles POST /auth/token. */
  token(form: Form): IssuedTokens | TokenRefusal {
    const grantType = form.grant_type;
    if (!grantType) return refuse('invalid_request', 'grant_type is missing, or the body is no form');
    if (grantType !== 'authorization_code' && grantType !== 'refresh_token') {
      return refuse('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token');
    }
    const { clientId, clientSecret } = this.#application;
    if (form.client_id !== clientId || form.client_secret !== clientSecret) {
      return { status: 401, error: 'invalid_client', description: 'client_id or client_secret is wrong' };
    }
    return grantType === 'refresh_token' ? this.#refresh(form) : this.#exchange(form);
  }

  #refresh(form: Form): IssuedTokens | TokenRefusal {
    const refreshToken = form.refresh_token;
    if (!refreshToken) return refuse('invalid_request', 'refresh_token is missing');
    return this.#grants.refresh(refreshToken) ?? refuse('invalid_grant', 'the refresh token is unknown, used or revoked');
  }

  /** Every attempt spends the code, so that a stolen one cannot be tried with several addresses. */
  #exchange(form: Form): IssuedTokens | TokenRefusal {
    const { code: text, redirect_uri: redirectUri } = form;
    if (!text || !redirectUri) return refuse('invalid_request', 'code or redirect_uri is missing');
    const code = this.#codes.read(text);
    this.#codes.delete(text);
    if (!code || code.isExpired) return refuse('invalid_grant', 'the code is unknown, used or expired');
    if (code.value.redirectUri !== redirectUri)
      return refuse('invalid_grant', 'redirect_uri is not that of the authorization request');
    if (!isProved(code.value.challenge, form.code_verifier))
      return refuse('invalid_grant', 'code_verifier does not fit the code_challenge of the authorization request');
    return this.#grants.refresh(this.#grants.open(code.value.companyId)) ?? refuse('invalid_grant', 'the grant was revoked');
  }
}

function refuse(error: TokenRefusal['error'], description: string): TokenRefusal {
  return { status: 400, error, description };
}

/** A verifier without a challenge is refused too: an attacker may have removed the challenge from the authorization request. */
function isProved(challenge: string | undefined, verifier: string | undefined): boolean {
  if (challenge === undefined || verifier === undefined) return challenge === verifier;
  return /^[\w.~-]{43,128}$/.test(verifier) && digest(verifier) === challenge;
}

function back({ redirectUri, state }: Pick<Consent, 'redirectUri' | 'state'>, code?: string): string {
  const location = new URL(redirectUri);
  if (code !== undefined) location.searchParams.set('code', code);
  if (state !== undefined) location.searchParams.set('state', state);
  return location.href;
}

function requireSafe(uri: string): void {
  const url = URL.canParse(uri) ? new URL(uri) : undefined;
  const loopback = url !== undefined && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && loopback)) return;
  throw new MusterError('invalid_configuration', `Sandbox redirect URI "${uri}" must be https, or http on a loopback address.`);
}
