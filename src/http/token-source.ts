import { orAborted } from '../core/clock.js';
import type { CompanyKey } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { Secret } from '../core/secret.js';

/**
 * Gives the requests of one company their access token. `http` declares it, AccessTokenManager implements it.
 * `get` and `renew` throw MusterError `reauthorization_required` if a person must act first.
 */
export interface TokenSource {
  /** Path of the company's own record, which shows whether a token is refused everywhere or by one list. Without it, no 401 ends an authorization. */
  readonly recordPath?: string;
  /** Returns a token that stays valid for a while; renews it first if it is about to expire. */
  get(): Promise<Secret>;
  /**
   * Call it after a 401 to `stale`. Renews only if `stale` is still the current token, so that concurrent requests that all got
   * the 401 cause one renewal. `unless` returns `stale` itself if a new token would be no better: `new`, if it was stored
   * less than a minute ago; `refused-alone`, if only single lists are known to refuse it.
   */
  renew(stale: Secret, unless?: 'new' | 'refused-alone'): Promise<Secret>;
  /**
   * Call it after a list and the company's own record answered 401 to a token that was just renewed: a person must authorize again. Throws `token_busy` if that does not
   * follow: this is the first time, or the first was less than 30 seconds ago; a newer token was stored or is being fetched; or this token is older than a minute or has expired.
   */
  refused(token: Secret): Promise<void>;
  /** If absent, only the company's own record judges a 401. */
  readonly evidence?: TokenEvidence;
}

/** Earlier responses of the API to one company's tokens, which help to judge a later 401. */
export interface TokenEvidence {
  /** The API accepted a token. `witness`: the address, if it may be requested again to check whether a later token is refused everywhere. */
  taken(witness?: string): Promise<void> | undefined;
  /** The address that accepted a token last, known to this process or stored by another one. */
  witness(): Promise<string | undefined>;
  /** Stores the witness for other processes. It accepts a token that the company's own record refuses. */
  keep(witness: string): Promise<void>;
  /** Whether this process knows that a just renewed token was refused everywhere and no token was accepted since. */
  readonly isRefused: boolean;
  /** Records the token that only a single list refuses; undefined clears it. */
  recordRefusedAlone(token: Secret | undefined): void;
}

export function recordPathOf({ companyId }: Pick<CompanyKey, 'companyId'>): string {
  return `/api/companies/${companyId}`;
}

/** An access token with the number of the grant that it belongs to. */
export class GrantedToken extends Secret {
  /** Number of the grant in its connection. */
  readonly grantNumber: number;

  constructor(value: string, grantNumber: number) {
    super(value);
    this.grantNumber = grantNumber;
  }
}

/**
 * Restricts a token source to one grant, so that a walk sees only what one person may see. `get` and `renew` throw `grant_changed` once the company has a
 * later grant. A token of an earlier grant that is still in memory is not used.
 */
export function tokensOfGrant(tokens: TokenSource, grantNumber: number): TokenSource {
  const require = async (token: Secret): Promise<Secret> => {
    if (!(token instanceof GrantedToken) || token.grantNumber === grantNumber) return token;
    if (token.grantNumber > grantNumber) throw grantChanged();
    const newer = await tokens.renew(token);
    if (newer instanceof GrantedToken && newer.grantNumber !== grantNumber) throw grantChanged();
    return newer;
  };
  return {
    ...(tokens.recordPath !== undefined && { recordPath: tokens.recordPath }),
    get: async () => require(await tokens.get()),
    renew: async (stale, options) => require(await tokens.renew(stale, options)),
    refused: (token) => tokens.refused(token),
    ...(tokens.evidence && { evidence: tokens.evidence }),
  };
}

/** Lets callers of `get` and `renew` wait no longer than until the signal aborts. The refresh goes on without them. */
export function tokensUntil(signal: AbortSignal, tokens: TokenSource): TokenSource {
  return {
    ...tokens,
    get: () => orAborted(tokens.get(), signal),
    renew: (stale, unless) => orAborted(tokens.renew(stale, unless), signal),
  };
}

function grantChanged(): MusterError {
  return new MusterError(
    'grant_changed',
    'The company was authorized again while its lists were read, or its rights have changed. Lists under another grant are read from the start.',
  );
}
