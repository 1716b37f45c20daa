import type { Secret } from '../core/secret.js';

/** An access token and which edition of the company's token it is: `version` grows with every renewal. */
export interface AccessToken {
  readonly value: Secret;
  readonly version: bigint;
}

/**
 * Where requests of one company get their access token. `http` declares it, the manager of access tokens implements it.
 * `get` and `renew` throw MusterError `reauthorization_required` when a person must act first.
 */
export interface TokenSource {
  /** A token that is still valid for a while; renews first when it is about to expire. */
  get(): Promise<AccessToken>;
  /**
   * After a 401 to `stale`: renews only if `stale` is still the current token, so that many requests side by side
   * that all saw the 401 cause one renewal.
   */
  renew(stale: AccessToken): Promise<AccessToken>;
  /** After a 401 to a token that was just renewed: a person must authorize again, unless a newer token was stored since. */
  refused(token: AccessToken): Promise<void>;
}
