import { expect, test } from 'vitest';
import { MemoryMirror } from './memory-mirror.js';
import { kinds, SEEDS, simulate, walkInSharedMemory } from './simulated-walks.js';

test('walks that share little memory never exceed it, and none waits for ever', async () => {
  let short = 0;
  for (let seed = 1; seed <= SEEDS / 4; seed += 1) short += await walkInSharedMemory(seed, () => new MemoryMirror());
  // Were there always enough, the test would say nothing.
  expect(short).toBeGreaterThan(SEEDS);
});

test('a page that needs more memory than was reserved does not wait for pages of its own list that wait to be committed', async () => {
  const { verified, unverified } = await simulate(kinds[0], () => new MemoryMirror(), { first: 132_169_807, seeds: 1 });
  expect(verified + unverified).toBe(3);
});
