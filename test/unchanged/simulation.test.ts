import { expect, test } from 'vitest';
import { KeyHashes } from '../../src/pagers/key-hashes.js';
import { Baseline, type BaselinePage } from '../../src/unchanged/baseline.js';
import { ROW_WORDS } from '../../src/unchanged/row-hashes.js';
import { SkipUnchanged } from '../../src/unchanged/skip-unchanged.js';
import { compareEverything } from '../../src/walks/comparison.js';
import { type ComparisonOf, type LedgerPage, MemoryMirror } from '../walks/memory-mirror.js';
import { CAUGHT_OF, countCaught, FIRST, kinds, SEEDS, simulate, walkInSharedMemory } from '../walks/simulated-walks.js';

/** The comparison that the database's ledger would give. */
const comparisonOf: ComparisonOf = async ({ endpoint, baseline, digest, committed }) => {
  if (committed.some(({ rowHashes }) => !rowHashes)) return compareEverything;
  const pages = baseline.map((page, n): BaselinePage => {
    const { keys, rowHashes, answer } = page;
    const chunks = rowHashes!.slice(ROW_WORDS * keys.length);
    return { snapshotId: BigInt(n), keysId: BigInt(n), keys: new KeyHashes(keys.words.slice()), chunks, answer };
  });
  const comparison = new SkipUnchanged(
    new Baseline(pages, digest, async function* () {
      for (const { rowHashes } of baseline) yield rowHashes!.slice();
    }),
    endpoint,
    'ask',
  );
  const recent = committed.slice(-8).toReversed();
  await comparison.remember(
    (async function* () {
      for (const page of recent)
        yield { snapshotId: snapshotOf(page, baseline), keys: page.keys.words.slice(), rowHashes: page.rowHashes };
    })(),
  );
  return comparison;
};

/** A page that the pass has received as it was has the snapshot of the baseline's. */
function snapshotOf(page: LedgerPage, baseline: readonly LedgerPage[]): bigint {
  return BigInt(baseline.findIndex(({ keys, rowHashes }) => keys === page.keys && rowHashes === page.rowHashes));
}

test.each(kinds)('$style list, declared $declared, reordered: $reorders', async (kind) => {
  const { verified, unverified, spared, notModified } = await simulate(kind, () => new MemoryMirror(comparisonOf));
  // Were all walks of one kind, the test would say nothing.
  expect(spared).toBeGreaterThan(SEEDS / 4);
  if (!kind.reorders) expect(notModified).toBeGreaterThan(SEEDS / 4);
  expect(verified).toBeGreaterThan(SEEDS / 20);
  if (!['token', 'link', 'cursor'].includes(kind.style)) expect(unverified).toBeGreaterThan(SEEDS / 20);
});

test('a reordered list that is declared stable is caught by its next walk', async () => {
  expect(await countCaught(() => new MemoryMirror(comparisonOf))).toBeGreaterThan(CAUGHT_OF / 4);
});

test('walks that share little memory never exceed it, and none keeps pages while others wait', async () => {
  let short = 0;
  for (let n = 0; n < SEEDS / 4; n += 1) short += await walkInSharedMemory(FIRST + n, () => new MemoryMirror(comparisonOf));
  expect(short).toBeGreaterThan(SEEDS);
});
