import { expect, test } from 'vitest';
import { MemoryMirror } from './memory-mirror.js';
import { SEEDS, walkInSharedMemory } from './simulated-walks.js';

test('walks that share little memory never exceed it, and none waits for ever', async () => {
  let short = 0;
  for (let seed = 1; seed <= SEEDS / 4; seed += 1) short += await walkInSharedMemory(seed, () => new MemoryMirror());
  // Were there always enough, the test would say nothing.
  expect(short).toBeGreaterThan(SEEDS);
});
