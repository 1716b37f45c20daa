import type { Secret } from '../core/secret.js';

// Two access tokens are of one grant where they name the same person with the same rights. What a token claims is read for that, and never checked:
// the token was received from the authorization server itself, and nothing but the comparison rests on it.

/** What an access token claims of a person and their rights. */
export interface GrantClaims {
  /** The same for equal claims, in whatever order and form they come. Personal data: only a keyed hash of it is kept. */
  readonly text: string;
  /** Whether a claim says who the person is. Without, equal rights do not mean that it is the same one. */
  readonly namesPerson: boolean;
}

/** Claims that say who the person is, as `canonical` spells their names. */
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
/** Claims that say what the person may do: each is a set. Iat, exp, jti, nbf and whatever else differs from token to token is not among them. */
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

/** What a JWT claims of a person and their rights; undefined where the token is no JWT that can be read. */
export function readClaims(accessToken: Secret): GrantClaims | undefined {
  const payload = payloadOf(accessToken.reveal());
  if (!payload) return undefined;
  const known = new Map<string, string[]>();
  let namesPerson = false;
  for (const [name, value] of Object.entries(payload)) {
    const short = canonical(name);
    if (!PERSON.has(short) && !RIGHTS.has(short)) continue;
    const set = setOf(value, RIGHTS.has(short));
    // A person without a role has it absent or empty.
    if (set.length === 0) continue;
    namesPerson ||= PERSON.has(short);
    known.set(short, [...new Set([...(known.get(short) ?? []), ...set])].toSorted());
  }
  const entries = [...known].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return { text: JSON.stringify(entries), namesPerson };
}

/** The claims of a signed JWT (RFC 7519), whose second part is a JSON object in base64url. */
function payloadOf(token: string): Readonly<Record<string, unknown>> | undefined {
  const parts = token.split('.');
  if (parts.length !== 3) return undefined;
  try {
    const payload: unknown = JSON.parse(Buffer.from(parts[1]!, 'base64url').toString());
    return typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? { ...payload } : undefined;
  } catch {
    return undefined;
  }
}

/** Names are compared without letter case, `_` and `-`; of a name that is a URI, as WS-Federation has them, by its last part. */
function canonical(name: string): string {
  return name
    .slice(name.lastIndexOf('/') + 1)
    .toLowerCase()
    .replaceAll(/[_-]/g, '');
}

/** The members of a set: words of a text where it may list several, items of an array, and of an object each item with its name. */
function setOf(value: unknown, isList: boolean): string[] {
  if (value === null || value === undefined || value === '') return [];
  if (typeof value === 'string') return isList ? value.split(/[\s,]+/).filter((word) => word !== '') : [value];
  if (Array.isArray(value)) return value.flatMap((item) => setOf(item, false));
  if (typeof value === 'object') {
    return Object.entries(value).flatMap(([name, item]) => setOf(item, false).map((member) => JSON.stringify([name, member])));
  }
  return [JSON.stringify(value)];
}
