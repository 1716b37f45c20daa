import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { fingerprint } from '../../src/catalogue/fingerprint.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { FaultsError } from '../../src/core/errors.js';
import { Secret } from '../../src/core/secret.js';
import { PrivacyKey } from '../../src/privacy/privacy-key.js';

const key = (byte: number) => new PrivacyKey(new Secret(Buffer.alloc(32, byte).toString('base64')));
const entry = (rules: unknown, more: object = {}) => ({
  people: {
    method: 'GET',
    path: '/c/{company_id}/people',
    pager: { style: 'continuation', size: 5 },
    ...(rules === undefined ? {} : { privacy: rules }),
    ...more,
  },
});
const endpointOf = (rules: unknown, privacyKey?: PrivacyKey) => validateCatalogue(entry(rules), 'test', privacyKey).endpoints[0]!;

function faultsOf(catalogue: object): Record<string, string> {
  try {
    validateCatalogue(catalogue, 'test');
  } catch (error) {
    if (!(error instanceof FaultsError)) throw error;
    for (const { example } of error.faults) expect(example).toContain('nationalId: drop');
    return Object.fromEntries(error.faults.map(({ where, problem }) => [where, problem]));
  }
  return {};
}

describe('the privacy of a list', () => {
  test('is left out where it has no rules', () => {
    expect(endpointOf(undefined)).not.toHaveProperty('privacy');
    expect(endpointOf({})).not.toHaveProperty('privacy');
    expect(endpointOf({ email: 'mask' }).privacy?.rules).toEqual({ email: 'mask' });
  });

  test.each<[string, string, unknown, object?]>([
    ['an unknown kind', 'people.privacy.email', { email: 'encrypt' }],
    ['no kind', 'people.privacy.email', { email: null }],
    ['a list', 'people.privacy', ['email']],
    ['an empty path', 'people.privacy.', { '': 'drop' }],
    ['an empty name', 'people.privacy.a..b', { 'a..b': 'drop' }],
    ['the id', 'people.privacy.id', { id: 'hash' }],
    ['another candidate for it', 'people.privacy.uid', { uid: 'drop' }],
    ['what stands within it', 'people.privacy.no.part', { 'no.part': 'mask' }, { id: ['no'] }],
    ['what stands around it', 'people.privacy.key', { key: 'mask' }, { id: ['key.no'] }],
    ['a path within another one', 'people.privacy.home.street', { home: 'drop', 'home.street': 'mask' }],
    [
      "the member that the next page's token is read from",
      'people.privacy.cursor',
      { cursor: 'mask' },
      { fields: { next: 'last cursor' } },
    ],
  ])('is refused for %s', (_what, where, rules, more) => {
    expect(Object.keys(faultsOf(entry(rules, more)))).toEqual([where]);
  });

  test('loses no rule on a name that objects have by themselves', () => {
    expect(endpointOf(parse('constructor: mask')).privacy?.rules).toEqual({ constructor: 'mask' });
    expect(Object.keys(faultsOf(entry(parse('__proto__: drop'))))).toEqual(['people.privacy.__proto__']);
  });

  test('is part of the fingerprint, with the key where a rule hashes', () => {
    const prints = [
      endpointOf(undefined),
      endpointOf({ email: 'mask' }),
      endpointOf({ email: 'drop' }),
      endpointOf({ email: 'hash' }, key(1)),
      endpointOf({ email: 'hash' }, key(2)),
    ].map(fingerprint);
    expect(new Set(prints).size).toBe(prints.length);
    expect(fingerprint(endpointOf({ email: 'mask' }, key(1)))).toBe(fingerprint(endpointOf({ email: 'mask' })));
    expect(fingerprint(endpointOf({}))).toBe(fingerprint(endpointOf(undefined)));
  });
});
