import { expect, test } from 'vitest';
import { MemoryMirror } from './memory-mirror.js';
import { CAUGHT_OF, countCaught, kinds, SEEDS, simulate } from './simulated-walks.js';

// Everything is compared here; test/unchanged walks the same lists by the walks before.

test.each(kinds)('$style list, declared $declared, reordered: $reorders', async (kind) => {
  const { verified, unverified, spared } = await simulate(kind, () => new MemoryMirror());
  expect(spared).toBe(0);
  // Were all walks of one kind, the test would say nothing.
  expect(verified).toBeGreaterThan(SEEDS / 20);
  if (!['token', 'link', 'cursor'].includes(kind.style)) expect(unverified).toBeGreaterThan(SEEDS / 20);
});

test('a reordered list that is declared stable is caught by its next walk', async () => {
  expect(await countCaught(() => new MemoryMirror())).toBeGreaterThan(CAUGHT_OF / 4);
});
