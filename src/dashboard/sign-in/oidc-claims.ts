import { ROLES, type Role } from '../../db/tables/named-tokens.js';
import type { OidcSettings } from './oidc-settings.js';

export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string };

const USUAL_NAMES = ['preferred_username', 'email'];
/** Names of tokens have no brackets, so that a person cannot pose as a token, as `admin` or as another actor in the audit. */
const SUFFIX = ' (OIDC)';
/** The audit's longest name without the suffix. */
const LONGEST_NAME = 100 - SUFFIX.length;

/** The values that give a person's role. An address that the issuer has not verified gives none, since anyone may claim it. */
export function roleValues(claims: Claims, { roleClaim }: Pick<OidcSettings, 'roleClaim'>): readonly string[] {
  if (roleClaim === 'email' && claims.email_verified !== true) return [];
  return [claimAt(claims, roleClaim)].flat().filter((value) => typeof value === 'string');
}

/** The highest role that one of these values gives; undefined if none does. */
export function roleFor(values: readonly string[], { roles }: Pick<OidcSettings, 'roles'>): Role | undefined {
  return ROLES.findLast((role) => roles[role].some((value) => values.includes(value)));
}

/** Whether the claims have everything that is needed. */
export function isEnough(claims: Claims, settings: Pick<OidcSettings, 'roleClaim' | 'nameClaim'>): boolean {
  return claimAt(claims, settings.roleClaim) !== undefined && statedName(claims, settings) !== undefined;
}

/** The person's name in the audit. */
export function nameOf(claims: Claims, settings: Pick<OidcSettings, 'nameClaim'>): string {
  return (statedName(claims, settings) ?? printable(claims.sub) ?? 'a person without a name') + SUFFIX;
}

function statedName(claims: Claims, { nameClaim }: Pick<OidcSettings, 'nameClaim'>): string | undefined {
  const stated = nameClaim === undefined ? USUAL_NAMES : [nameClaim];
  return stated.map((claim) => printable(claimAt(claims, claim))).find((name) => name !== undefined);
}

/** A name that can be searched in the audit: without invisible characters, and not too long. */
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

/** A claim whose name has dots, as some issuers use them, takes precedence over a path. */
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
