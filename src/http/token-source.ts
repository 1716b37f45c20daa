import type { Secret } from '../core/secret.js';

/**
 * Where requests of one company get their access token. `http` declares it, the manager of access tokens implements it.
 * `get` and `renew` throw MusterError `reauthorization_required` when a person must act first.
 */
export interface TokenSource {
  /** A token that is still valid for a while; renews first when it is about to expire. */
  get(): Promise<Secret>;
  /**
   * After a 401 to `stale`: renews only if `stale` is still the current token, so that many requests side by side
   * that all saw the 401 cause one renewal.
   */
  renew(stale: Secret): Promise<Secret>;
  /** After a 401 to a token that was just renewed: a person must authorize again, unless a newer token was stored since. */
  refused(token: Secret): Promise<void>;
}
