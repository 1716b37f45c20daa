import { expect, test } from 'vitest';
import { MemoryMirror } from './memory-mirror.js';
import { CAUGHT_OF, countCaught, type Kind, kinds, SEEDS, simulate } from './simulated-walks.js';

// Everything is compared here; test/unchanged walks the same lists by the walks before.

// What test/unchanged leaves out: few of these lists are proved.
const repetitive: readonly Kind[] = [
  { style: 'page-bare', declared: 'unstable', reorders: true },
  { style: 'page-bare', declared: 'stable', reorders: false, clamps: true },
  { style: 'bare', declared: 'stable', reorders: false, clamps: true },
];

test.each([...kinds, ...repetitive])('$style list, declared $declared, reordered: $reorders, clamps: $clamps', async (kind) => {
  const { verified, unverified, spared } = await simulate(kind, () => new MemoryMirror());
  expect(spared).toBe(0);
  // Were all walks of one kind, the test would say nothing.
  expect(verified).toBeGreaterThan(SEEDS / 20);
  if (!['token', 'link', 'cursor'].includes(kind.style)) expect(unverified).toBeGreaterThan(SEEDS / 20);
});

test('a reordered list that is declared stable is caught by its next walk', async () => {
  expect(await countCaught(() => new MemoryMirror())).toBeGreaterThan(CAUGHT_OF / 4);
});
