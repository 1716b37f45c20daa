import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';

const key = (id: string) => ({ id, key: new Secret(randomBytes(32).toString('base64')) });
const [k1, k2] = [key('k1'), key('2026.q1')];
const company: CompanyKey = { environment: 'test', companyId: '0f8fad5b-d9cb-469f-a165-70867728950e' };
const token = new Secret('a refresh token – with ünïcode');
const cipher = new Cipher(new Keyring([k1]));
const sealed = cipher.seal(token, company, 'refresh_token');

test('what was sealed opens, and shows nothing', () => {
  expect(cipher.open(sealed, company, 'refresh_token').reveal()).toBe(token.reveal());
  expect(sealed).toMatch(/^v1\.k1\.[\w-]+$/);
  expect(Buffer.from(sealed.split('.')[2] ?? '', 'base64url').toString('latin1')).not.toContain('refresh');
  expect(cipher.seal(token, company, 'refresh_token')).not.toBe(sealed);
});

describe('token_unreadable', () => {
  const unreadable = { code: 'token_unreadable', retryable: false };
  test.each([
    ['another company', { ...company, companyId: '1f8fad5b-d9cb-469f-a165-70867728950e' }, 'refresh_token'],
    ['another environment', { ...company, environment: 'production' }, 'refresh_token'],
    ['another column', company, 'access_token'],
  ] as const)('moved to %s', (_where, elsewhere, field) => {
    expect(() => cipher.open(sealed, elsewhere, field)).toThrow(expect.objectContaining(unreadable));
  });

  test('damaged anywhere, cut short, or no ciphertext', () => {
    const [, , payload = ''] = sealed.split('.');
    const bytes = Buffer.from(payload, 'base64url');
    for (let at = 0; at < bytes.length; at++) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      expect(() => cipher.open(`v1.k1.${damaged.toString('base64url')}`, company, 'refresh_token')).toThrow(
        expect.objectContaining(unreadable),
      );
    }
    for (const text of ['', 'plain', 'v1.k1.', 'v1.k1.AAAA', `v2.k1.${payload}`, `v1.k1.${payload.slice(0, -4)}`]) {
      expect(() => cipher.open(text, company, 'refresh_token')).toThrow(expect.objectContaining(unreadable));
    }
  });

  test('a key that is not in the ring is named, with what to do', () => {
    const other = new Cipher(new Keyring([k2]));
    expect(() => other.open(sealed, company, 'refresh_token')).toThrow(
      /refresh token of company 0f8fad5b.*key "k1".*MUSTER_ENCRYPTION_KEYS/,
    );
  });
});

test('the first key encrypts, all decrypt, whatever characters their ids hold', () => {
  const both = new Cipher(new Keyring([k2, k1]));
  expect(both.open(sealed, company, 'refresh_token').reveal()).toBe(token.reveal());
  const again = both.seal(token, company, 'refresh_token');
  expect(new Cipher(new Keyring([k2])).open(again, company, 'refresh_token').reveal()).toBe(token.reveal());
  expect([both.isCurrent(again), both.isCurrent(sealed)]).toEqual([true, false]);
});

test('a key of the wrong length is refused without showing it', () => {
  const short = randomBytes(16).toString('base64');
  const make = () => new Keyring([{ id: 'short', key: new Secret(short) }]);
  expect(make).toThrow(/key "short" has 16 bytes/);
  expect(make).not.toThrow(short);
  expect(() => new Keyring([])).toThrow(/no key/);
});
