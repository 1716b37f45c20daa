import { z } from 'zod';
import { defaulted, optional } from './setting-help.js';
import * as value from './setting-values.js';

/** How people sign in to the control room by OpenID Connect, without the prefix of the variables. */
export function signInSettings() {
  const unset = 'people sign in with tokens alone';
  const noOne = 'no one has this role';
  return {
    ISSUER: optional(value.issuer, {
      help: 'Issuer at which people sign in to the control room; https unless on loopback.',
      unset,
      example: 'https://login.example.com/realms/staff',
    }),
    CLIENT_ID: optional(z.string(), { help: 'Client identifier, as registered there.', unset, example: 'muster' }),
    CLIENT_SECRET: optional(value.secret, {
      help: 'Secret of the client.',
      unset,
      example: 'the-secret-issued-at-registration',
      secret: true,
    }),
    SCOPE: defaulted(value.signInScope, 'openid profile email', {
      help: 'Scopes that are asked for, with a space between two.',
      example: 'openid profile email groups',
    }),
    ROLE_CLAIM: defaulted(z.string(), 'groups', {
      help: 'Claim that says which role a person has: its name, or a path with dots.',
      example: 'realm_access.roles',
    }),
    ADMINS: optional(value.list, {
      help: 'Comma-separated claim values; a person with any of them is an admin.',
      unset: noOne,
      example: 'muster-admins',
    }),
    OPERATORS: optional(value.list, {
      help: 'Comma-separated claim values; a person with any of them is an operator.',
      unset: noOne,
      example: 'muster-operators,on-call',
    }),
    VIEWERS: optional(value.list, {
      help: 'Comma-separated claim values; a person with any of them is a viewer.',
      unset: noOne,
      example: 'staff',
    }),
    NAME_CLAIM: optional(z.string(), {
      help: 'Claim with the name under which the audit has a person.',
      unset: 'the first there is of `preferred_username`, `email` and `sub`',
      example: 'email',
    }),
  };
}
