import { z } from 'zod';
import { defaulted, optional, secret } from './setting-help.js';
import * as value from './setting-values.js';

/** The settings for sign-in by OpenID Connect, without the prefix of their variables. */
export function signInSettings() {
  const unset = 'people sign in with tokens only';
  const none = 'no person has it';
  return {
    ISSUER: optional(value.issuer, {
      help: 'Issuer for sign-in to the control room; https unless on loopback.',
      unset,
      example: 'https://login.example.com/realms/staff',
    }),
    CLIENT_ID: optional(z.string(), { help: 'Client identifier, registered with the issuer.', unset, example: 'muster' }),
    CLIENT_SECRET: secret(value.secret, {
      help: 'Secret of the client.',
      unset,
      example: 'the-secret-issued-at-registration',
    }),
    SCOPE: defaulted(value.signInScope, 'openid profile email', {
      help: 'Scopes to request, separated by spaces.',
      example: 'openid profile email groups',
    }),
    ROLE_CLAIM: defaulted(z.string(), 'groups', {
      help: "Claim that holds a person's role: its name, or a path with dots.",
      example: 'realm_access.roles',
    }),
    ADMINS: optional(value.list, {
      help: 'Comma-separated claim values; a person with any of them is an admin.',
      unset: none,
      example: 'muster-admins',
    }),
    OPERATORS: optional(value.list, {
      help: 'Claim values; a person with any of them is an operator.',
      unset: none,
      example: 'muster-operators,on-call',
    }),
    VIEWERS: optional(value.list, {
      help: 'Claim values; a person with any of them is a viewer.',
      unset: none,
      example: 'staff',
    }),
    NAME_CLAIM: optional(z.string(), {
      help: 'Claim with the name of a person in the audit.',
      unset: 'the first present of `preferred_username`, `email` and `sub`',
      example: 'email',
    }),
  };
}
