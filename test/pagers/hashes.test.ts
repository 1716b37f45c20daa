import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hashBytes, KeyHashes } from '../../src/pagers/hashes.js';

test('a key that stood before is a repeat, the first one is none', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), { maxLength: 12 }), (keys) => {
      const hashes = KeyHashes.of(keys);
      expect(keys.map((_, n) => hashes.isRepeat(n))).toEqual(keys.map((key, n) => keys.indexOf(key) < n));
    }),
  );
});

test('bytes have their XXH64, however many they are', () => {
  // Of the reference implementation (xxhsum -H1).
  expect(hashBytes(Buffer.from('')).toString(16)).toBe('ef46db3751d8e999');
  expect(hashBytes(Buffer.from('abc')).toString(16)).toBe('44bc2cf5ad770999');
  expect(hashBytes(Buffer.alloc(200_000, 'muster')).toString(16)).toBe('918adab846574182');
});
