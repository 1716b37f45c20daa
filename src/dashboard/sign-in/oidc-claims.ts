import { ROLES, type Role } from '../../db/tables/named-tokens.js';
import type { OidcSettings } from './oidc-settings.js';

/** What an issuer says of a person. */
export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string };

const USUAL_NAMES = ['preferred_username', 'email'];
/** Names of tokens have neither brackets: in the audit nobody passes for a token, for `admin` or for another actor of ours. */
const OF_A_PERSON = ' (OIDC)';
/** As long as the audit takes a name. */
const LONGEST_NAME = 100 - OF_A_PERSON.length;

/** The values that say which role a person has; none of an address that the issuer has not verified, which anybody may claim. */
export function roleValues(claims: Claims, { roleClaim }: Pick<OidcSettings, 'roleClaim'>): readonly string[] {
  if (roleClaim === 'email' && claims.email_verified !== true) return [];
  return [claimAt(claims, roleClaim)].flat().filter((value) => typeof value === 'string');
}

/** The highest role that one of these values gives; undefined where none gives any. */
export function roleFor(values: readonly string[], { roles }: Pick<OidcSettings, 'roles'>): Role | undefined {
  return ROLES.findLast((role) => roles[role].some((value) => values.includes(value)));
}

/** Whether the issuer has said all that is looked at. */
export function isEnough(claims: Claims, settings: Pick<OidcSettings, 'roleClaim' | 'nameClaim'>): boolean {
  return claimAt(claims, settings.roleClaim) !== undefined && statedName(claims, settings) !== undefined;
}

/** How the audit names the person. */
export function nameOf(claims: Claims, settings: Pick<OidcSettings, 'nameClaim'>): string {
  return (statedName(claims, settings) ?? printable(claims.sub) ?? 'somebody without a name') + OF_A_PERSON;
}

function statedName(claims: Claims, { nameClaim }: Pick<OidcSettings, 'nameClaim'>): string | undefined {
  const stated = nameClaim === undefined ? USUAL_NAMES : [nameClaim];
  return stated.map((claim) => printable(claimAt(claims, claim))).find((name) => name !== undefined);
}

/** A name as the audit is asked for it: nothing that cannot be seen, and not without end. */
function printable(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const seen = value.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S}]+/gu, ' ').trim();
  return (
    seen
      .slice(0, LONGEST_NAME)
      .replace(/[\ud800-\udbff]$/, '')
      .trim() || undefined
  );
}

/** Names with dots in them, which are those of some issuers, come before paths. */
function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  return path
    .split('.')
    .reduce<unknown>(
      (value, key) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? value[key as keyof typeof value] : undefined,
      claims,
    );
}
