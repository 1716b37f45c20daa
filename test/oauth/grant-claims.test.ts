import { expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.js';
import { readClaims } from '../../src/oauth/grant-claims.js';

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwt = (claims: unknown) => `${part({ alg: 'RS256' })}.${part(claims)}.c2lnbmF0dXJl`;
const read = (claims: object) => readClaims(new Secret(jwt(claims)));

const ANNA = { sub: 'anna', scope: 'read write', roles: ['admin', 'hr'] };

test.each([
  ['scopes in another order', { ...ANNA, scope: 'write read' }],
  ['scopes as an array', { ...ANNA, scope: ['write', 'read'] }],
  ['a scope twice', { ...ANNA, scope: 'read write read' }],
  ['roles in another order', { ...ANNA, roles: ['hr', 'admin'] }],
  ['members in another order', { roles: ANNA.roles, scope: ANNA.scope, sub: ANNA.sub }],
  ['other times and ids', { ...ANNA, iat: 1, nbf: 2, exp: 3, jti: 'x', auth_time: 4, sid: 's', nonce: 'n' }],
  ['an empty set', { ...ANNA, permissions: [], groups: '' }],
])('%s: equal claims', (_, claims) => {
  expect(read(claims)).toEqual(read(ANNA));
});

test.each([
  ['another person', { ...ANNA, sub: 'berit' }],
  ['another spelling of the person', { ...ANNA, sub: 'Anna' }],
  ['a person more', { ...ANNA, oid: 'b' }],
  ['a scope less', { ...ANNA, scope: 'read' }],
  ['a role more', { ...ANNA, roles: ['admin', 'hr', 'it'] }],
  ['one role of two words', { ...ANNA, roles: ['admin hr'] }],
  ['permissions', { ...ANNA, permissions: ['x'] }],
  ['a role of a realm', { ...ANNA, realm_access: { roles: ['x'] } }],
  ['a role of WS-Federation', { ...ANNA, 'http://schemas.microsoft.com/ws/2008/06/identity/claims/role': 'x' }],
])('%s: other claims', (_, claims) => {
  expect(read(claims)!.text).not.toBe(read(ANNA)!.text);
});

test('a token without a person has rights that can be compared, and no person', () => {
  expect(read({ scope: 'read' })).toMatchObject({ namesPerson: false });
  expect(read({})).toEqual({ text: '[]', namesPerson: false });
  expect(read(ANNA)).toMatchObject({ namesPerson: true });
});

test.each([
  'opaque',
  'a.b.c',
  `${part({})}.${part([1])}.c`,
  `${part({})}.${part('text')}.c`,
  `${part({})}.${part(null)}.c`,
  `${part({})}.${part(ANNA)}`,
  `${part({})}.${part(ANNA)}.b.c.d`,
])('%s cannot be read', (token) => {
  expect(readClaims(new Secret(token))).toBeUndefined();
});
