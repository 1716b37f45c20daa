import { type Members, parseObject } from '../core/json.js';
import type { Secret } from '../core/secret.js';

// Two access tokens belong to one grant if they name the same person with the same rights. The claims are read for this comparison only, and never verified,
// because the token comes from the authorization server itself.

/** The claims of an access token about a person and their rights. */
export interface GrantClaims {
  /** Equal claims have equal texts, in whatever order and form they come. Personal data: only a keyed hash of it is stored. */
  readonly text: string;
  /** A claim names the person. Without one, equal rights do not prove the same person. */
  readonly namesPerson: boolean;
}

/** Claims that name the person, as `canonical` spells them. */
const PERSON = new Set([
  'sub',
  'oid',
  'uid',
  'userid',
  'nameid',
  'nameidentifier',
  'upn',
  'uniquename',
  'preferredusername',
  'username',
  'email',
]);
/** Claims of rights, each a set. Claims that differ from token to token, such as iat, exp, jti and nbf, are left out. */
const RIGHTS = new Set([
  'scope',
  'scopes',
  'scp',
  'role',
  'roles',
  'permission',
  'permissions',
  'group',
  'groups',
  'wids',
  'authorities',
  'entitlements',
  'privileges',
  'realmaccess',
  'resourceaccess',
]);

/** Reads the claims of a JWT about a person and their rights; undefined if the token is no readable JWT. */
export function readClaims(accessToken: Secret): GrantClaims | undefined {
  const payload = payloadOf(accessToken.reveal());
  if (!payload) return undefined;
  const known = new Map<string, string[]>();
  let namesPerson = false;
  for (const [name, value] of Object.entries(payload)) {
    const short = canonical(name);
    if (!PERSON.has(short) && !RIGHTS.has(short)) continue;
    const set = setOf(value, RIGHTS.has(short));
    // For a person without a role, the claim may be absent or empty.
    if (set.length === 0) continue;
    namesPerson ||= PERSON.has(short);
    known.set(short, [...new Set([...(known.get(short) ?? []), ...set])].toSorted());
  }
  const entries = [...known].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return { text: JSON.stringify(entries), namesPerson };
}

/** The claims of a signed JWT (RFC 7519), whose second part is a JSON object in base64url. */
function payloadOf(token: string): Members | undefined {
  const [, payload, ...rest] = token.split('.');
  return payload !== undefined && rest.length === 1 ? parseObject(Buffer.from(payload, 'base64url').toString()) : undefined;
}

/** Names are compared without letter case, `_` and `-`. If a name is a URI, as in WS-Federation, only its last part counts. */
function canonical(name: string): string {
  return name
    .slice(name.lastIndexOf('/') + 1)
    .toLowerCase()
    .replaceAll(/[_-]/g, '');
}

/** The members of a set: the words of a text (if `isList`), the items of an array, or the items of an object with their names. */
function setOf(value: unknown, isList: boolean): string[] {
  if (value === null || value === undefined || value === '') return [];
  if (typeof value === 'string') return isList ? value.split(/[\s,]+/).filter((word) => word !== '') : [value];
  if (Array.isArray(value)) return value.flatMap((item) => setOf(item, false));
  if (typeof value === 'object') {
    return Object.entries(value).flatMap(([name, item]) => setOf(item, false).map((member) => JSON.stringify([name, member])));
  }
  return [JSON.stringify(value)];
}
