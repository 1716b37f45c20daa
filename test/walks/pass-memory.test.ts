import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyHashes, TextHashes } from '../../src/pagers/hashes.js';
import { digestToken, ReceivedKeys } from '../../src/walks/pass-memory.js';

const add = (memory: ReceivedKeys, key: string, text = 0) =>
  memory.add({ keys: KeyHashes.of([key]), texts: new TextHashes(1, Uint32Array.of(text, 0, 0)) }, 0);
const has = (memory: ReceivedKeys, key: string) => memory.hasAny(KeyHashes.of([key]));
const keysOf = (keys: readonly string[]) => {
  const memory = new ReceivedKeys();
  for (const key of keys) add(memory, key);
  return memory;
};

/** Whatever a service may say. */
const TOTAL = fc.oneof(fc.nat(2_000), fc.maxSafeNat());

test('it holds what a set would hold', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 3 })), fc.string({ maxLength: 3 }), TOTAL, (keys, other, total) => {
      const memory = new ReceivedKeys();
      memory.expect(total);
      const set = new Set<string>();
      for (const key of keys) {
        expect(add(memory, key)).toBe(set.has(key) ? 'same' : 'new');
        set.add(key);
      }
      expect(memory.size).toBe(set.size);
      expect(has(memory, other)).toBe(set.has(other));
      expect(memory.hasAll(KeyHashes.of([...keys, other]))).toBe(set.has(other));
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

test.each([0, 1_000_000, 2 ** 53])('a million keys are held in 25 MB and none is lost (%i expected)', (expected) => {
  const memory = new ReceivedKeys();
  memory.expect(expected);
  const before = process.memoryUsage().arrayBuffers;
  for (let n = 0; n < 1_000_000; n += 1) add(memory, `record-${n}`, n);
  expect(memory.size).toBe(1_000_000);
  for (let n = 0; n < 1_000_000; n += 9_973) expect(add(memory, `record-${n}`, n)).toBe('same');
  expect(has(memory, 'record-1000000')).toBe(false);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(30_000_000);
});

test.each([
  [1_000, 1],
  [40_000, 4],
  [2_200_000, 110],
])('a total that means nothing does not cost a list of %i records more than %i MB', (records, megabytes) => {
  const before = process.memoryUsage().arrayBuffers;
  const memory = new ReceivedKeys();
  memory.expect(2 ** 53);
  for (let n = 0; n < records; n += 1) add(memory, `record-${n}`);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(megabytes * 1_000_000);
});

test('tokens are known by their digest alone', () => {
  const memory = new ReceivedKeys();
  memory.addTokenDigest(digestToken('t'.repeat(10_000)));
  expect(memory.hasToken('t'.repeat(10_000))).toBe(true);
  expect(memory.hasToken('t')).toBe(false);
});

test('a record that comes with another text makes the pass unsteady', () => {
  const memory = new ReceivedKeys();
  expect([add(memory, 'a', 1), add(memory, 'b', 1), add(memory, 'a', 1)]).toEqual(['new', 'new', 'same']);
  expect(memory.isSteady).toBe(true);
  expect([add(memory, 'b', 2), add(memory, 'b', 2)]).toEqual(['differs', 'same']);
  expect(memory.isSteady).toBe(false);
});
