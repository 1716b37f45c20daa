import fc from 'fast-check';
import { expect, test } from 'vitest';
import { atOnce } from '../../src/core/turns.js';
import { KeyHashes } from '../../src/pagers/key-hashes.js';
import { holdsKeyTwice } from '../../src/walks/key-table.js';
import { digestToken, PassMemory } from '../../src/walks/pass-memory.js';

/** Records `record-0` and so on, a thousand at a time. */
function addMany(memory: PassMemory, records: number): void {
  for (let from = 0; from < records; from += 1_000)
    atOnce(memory.add(KeyHashes.of(Array.from({ length: Math.min(1_000, records - from) }, (_, n) => `record-${from + n}`))));
}

const add = (memory: PassMemory, key: string) => atOnce(memory.add(KeyHashes.of([key]))).length === 0;
const has = (memory: PassMemory, key: string) => atOnce(memory.repeats(KeyHashes.of([key]))).length > 0;
const keysOf = (keys: readonly string[]) => {
  const memory = new PassMemory();
  for (const key of keys) add(memory, key);
  return memory;
};

/** Whatever a service may say. */
const TOTAL = fc.oneof(fc.nat(2_000), fc.maxSafeNat());

test('it holds what a set would hold', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 3 })), fc.string({ maxLength: 3 }), TOTAL, (keys, other, total) => {
      const memory = new PassMemory();
      memory.expect(total);
      const set = new Set<string>();
      for (const key of keys) {
        expect(add(memory, key)).toBe(!set.has(key));
        set.add(key);
      }
      expect(memory.size).toBe(set.size);
      expect(has(memory, other)).toBe(set.has(other));
      expect(atOnce(memory.repeats(KeyHashes.of([...keys, other])))).toHaveLength(keys.length + (set.has(other) ? 1 : 0));
    }),
  );
});

test('its digest tells sets apart, and no order of them', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { maxLength: 20 }), fc.uniqueArray(fc.string(), { maxLength: 20 }), (a, b) => {
      expect(keysOf([...a, ...a].toReversed()).digest).toBe(keysOf(a).digest);
      expect(keysOf(a).digest === keysOf(b).digest).toBe(a.length === b.length && a.every((key) => b.includes(key)));
    }),
  );
});

test.each([0, 1_000_000, 2 ** 53])('a million keys are held in 17 MB and none is lost (%i expected)', (expected) => {
  const memory = new PassMemory();
  memory.expect(expected);
  const before = process.memoryUsage().arrayBuffers;
  addMany(memory, 1_000_000);
  expect(memory.size).toBe(1_000_000);
  for (let n = 0; n < 1_000_000; n += 9_973) expect(add(memory, `record-${n}`)).toBe(false);
  expect(has(memory, 'record-1000000')).toBe(false);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000);
});

test.each([
  [1_000, 1],
  [40_000, 4],
  [2_200_000, 110],
])('a total that means nothing does not cost a list of %i records more than %i MB', (records, megabytes) => {
  const before = process.memoryUsage().arrayBuffers;
  const memory = new PassMemory();
  memory.expect(2 ** 53);
  addMany(memory, records);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(megabytes * 1_000_000);
});

test('tokens are known by their digest alone', () => {
  const memory = new PassMemory();
  memory.addTokenDigest(digestToken('t'.repeat(10_000)));
  expect(memory.hasToken('t'.repeat(10_000))).toBe(true);
  expect(memory.hasToken('t')).toBe(false);
});

test('a page that holds one key twice is told from one that does not, and both places are known', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), { maxLength: 12 }), (keys) => {
      const seconds = keys.flatMap((key, n) => (keys.indexOf(key) < n ? [n] : []));
      expect(atOnce(new PassMemory().add(KeyHashes.of(keys)))).toEqual(seconds);
      expect(holdsKeyTwice(KeyHashes.of(keys))).toBe(seconds.length > 0);
    }),
  );
});
