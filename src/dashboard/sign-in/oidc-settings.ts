import { withoutSlash } from '../../core/own-address.js';
import type { Secret } from '../../core/secret.js';
import type { Role } from '../../db/tables/named-tokens.js';

export interface OidcSettings {
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly scope: string;
  /** The name of a claim, or a dot path to it. */
  readonly roleClaim: string;
  /** The values of the claim that give each role. */
  readonly roles: Readonly<Record<Role, readonly string[]>>;
  /** The claim that names a person; undefined = the usual ones. */
  readonly nameClaim?: string | undefined;
}

export function signInCallback(publicUrl: URL): URL {
  return new URL(`${withoutSlash(publicUrl)}/login/callback`);
}
