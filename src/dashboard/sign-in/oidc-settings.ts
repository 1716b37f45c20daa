import { withoutSlash } from '../../core/own-address.js';
import type { Secret } from '../../core/secret.js';
import type { Role } from '../../db/tables/named-tokens.js';

/** How people sign in to the control room by OpenID Connect. */
export interface OidcSettings {
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly scope: string;
  /** A claim's name, or the path to one with dots. */
  readonly roleClaim: string;
  /** The values of that claim that give each role. */
  readonly roles: Readonly<Record<Role, readonly string[]>>;
  /** The claim that names a person; undefined = the usual ones. */
  readonly nameClaim?: string | undefined;
}

/** Where the issuer sends people back to. */
export function signInCallback(publicUrl: URL): URL {
  return new URL(`${withoutSlash(publicUrl)}/login/callback`);
}
