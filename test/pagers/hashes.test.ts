import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyHashes } from '../../src/pagers/hashes.js';

test('a key that stood before is a repeat, the first one is none', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), { maxLength: 12 }), (keys) => {
      const hashes = KeyHashes.of(keys);
      expect(keys.map((_, n) => hashes.isRepeat(n))).toEqual(keys.map((key, n) => keys.indexOf(key) < n));
    }),
  );
});
