import { describe, expect, test } from 'vitest';
import { isEnough, nameOf, roleFor, roleValues } from '../../../src/dashboard/sign-in/oidc-claims.js';

const roles = { admin: ['ops'], operator: ['day', 'night'], viewer: ['staff'] };

describe('the role', () => {
  test.each<[string, string, object, string | undefined]>([
    ['a list', 'groups', { groups: ['staff', 'day'] }, 'operator'],
    ['one text', 'groups', { groups: 'night' }, 'operator'],
    ['the highest of several', 'groups', { groups: ['staff', 'ops', 'day'] }, 'admin'],
    ['a path', 'realm_access.roles', { realm_access: { roles: ['ops'] } }, 'admin'],
    ['a path of a client', 'resource_access.muster.roles', { resource_access: { muster: { roles: ['staff'] } } }, 'viewer'],
    ['a name with dots', 'https://muster.example/roles', { 'https://muster.example/roles': ['ops'] }, 'admin'],
    ['no claim', 'groups', {}, undefined],
    ['an empty list', 'groups', { groups: [] }, undefined],
    ['another value', 'groups', { groups: ['Ops', 'ops ', 'opsy', ''] }, undefined],
    ['a text that holds a value', 'groups', { groups: 'ops day staff' }, undefined],
    ['something that is no text', 'groups', { groups: [{ ops: 'ops' }, 1, null, ['ops']] }, undefined],
    ['an inherited member', 'constructor.name', {}, undefined],
    ['a path into a text', 'groups.length', { groups: 'ops' }, undefined],
    ['an address that was verified', 'email', { email: 'ops', email_verified: true }, 'admin'],
    ['an address that was not', 'email', { email: 'ops', email_verified: false }, undefined],
    ['an address of which nobody says so', 'email', { email: 'ops' }, undefined],
    ['an address that is verified as a text', 'email', { email: 'ops', email_verified: 'true' }, undefined],
  ])('%s', (_, roleClaim, claims, role) => {
    expect(roleFor(roleValues({ sub: 'x', ...claims }, { roleClaim }), { roles })).toBe(role);
  });
});

describe('the name', () => {
  const named = (claims: object, nameClaim?: string) => nameOf({ sub: 'sub-1', ...claims }, { nameClaim });

  test.each<[string, object, string | undefined, string]>([
    ['the user name', { preferred_username: 'anna', email: 'a@example.com' }, undefined, 'anna (OIDC)'],
    ['else the address', { email: 'a@example.com' }, undefined, 'a@example.com (OIDC)'],
    ['else the subject', {}, undefined, 'sub-1 (OIDC)'],
    ['the claim that is set', { preferred_username: 'anna', name: 'Anna Ås' }, 'name', 'Anna Ås (OIDC)'],
    ['the subject where that is missing', { preferred_username: 'anna' }, 'name', 'sub-1 (OIDC)'],
    ['no other actor of the audit', { preferred_username: 'admin' }, undefined, 'admin (OIDC)'],
    ['nothing that hides', { preferred_username: ' a\u202Eb\u0000c\n\ud800d ' }, undefined, 'a b c d (OIDC)'],
    ['nothing that is no text', { preferred_username: ['anna'] }, undefined, 'sub-1 (OIDC)'],
  ])('is %s', (_, claims, nameClaim, name) => {
    expect(named(claims, nameClaim)).toBe(name);
  });

  test.each(['x'.repeat(500), '😀'.repeat(200), `${'x'.repeat(92)}😀`])('is one by which the audit can be asked: %#', (long) => {
    const name = named({ preferred_username: long });
    expect(name.length).toBeLessThanOrEqual(100);
    expect(name.isWellFormed?.() ?? !/[\ud800-\udbff](?![\udc00-\udfff])/.test(name)).toBe(true);
  });
});

test('the user info is asked for where role or name is missing', () => {
  const settings = { roleClaim: 'groups' };
  expect(isEnough({ sub: 'x', groups: [], email: 'a@example.com' }, settings)).toBe(true);
  expect(isEnough({ sub: 'x', email: 'a@example.com' }, settings)).toBe(false);
  expect(isEnough({ sub: 'x', groups: [] }, settings)).toBe(false);
});
