import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hashBytes, KeyHashes, TEXT_WORDS, TextHashes, textsOf } from '../../src/pagers/hashes.js';

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

test('texts that are others but for some changes are what they would be if they were made at once', () => {
  const text = fc.tuple(fc.nat(2 ** 32 - 1), fc.nat(2 ** 32 - 1), fc.nat(9_999));
  const RECORDS = 20;
  const size = textsOf(RECORDS);
  fc.assert(
    fc.property(
      fc.array(text, { minLength: size, maxLength: size }),
      fc.uniqueArray(fc.tuple(fc.nat(size - 1), text), { selector: ([n]) => n, maxLength: size }),
      (before, changes) => {
        const expected = [...before];
        for (const [n, changed] of changes) expected[n] = changed;
        const others = new TextHashes(RECORDS, Uint32Array.from(before.flat()));
        const texts = others.with(Uint32Array.from(changes.flat(2)));
        expect(expected.map((_, n) => texts.markOf(n))).toEqual(expected.map(([mark]) => mark));
        expect([...texts.words]).toEqual(expected.flat());
        expect(expected.map((_, n) => texts.markOf(n))).toEqual(expected.map(([mark]) => mark));
        expect([...texts.runs]).toEqual(expected.flat().slice(TEXT_WORDS * RECORDS));
        expect([...others.words]).toEqual(before.flat());
      },
    ),
  );
});
