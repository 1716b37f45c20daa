import { expect, test } from 'vitest';
import { hashBytes } from '../../src/core/xxh64.js';

test('bytes have their XXH64, however many they are', () => {
  // Of the reference implementation (xxhsum -H1).
  expect(hashBytes(Buffer.from('')).toString(16)).toBe('ef46db3751d8e999');
  expect(hashBytes(Buffer.from('abc')).toString(16)).toBe('44bc2cf5ad770999');
  expect(hashBytes(Buffer.alloc(200_000, 'muster')).toString(16)).toBe('918adab846574182');
});
