import { expect, test } from 'vitest';
import { KeyHashes } from '../../src/pagers/key-hashes.js';
import { RECENT_PAGES, type RecentPage, RecentPages } from '../../src/unchanged/recent-pages.js';

const pageOf = (id: string, rowHash: number): RecentPage => ({
  keys: KeyHashes.of([id]),
  rowHashes: () => Uint32Array.of(rowHash, rowHash),
});

test.each([
  ['right before, with the same text', 0, 7, true],
  ['right before, with another text', 0, 8, false],
  ['on the oldest page that is remembered', RECENT_PAGES - 1, 7, true],
  ['on a page that is not remembered any more', RECENT_PAGES, 7, false],
])('a record that came %s', (_, pagesSince, rowHash, isSame) => {
  const recent = new RecentPages();
  recent.add(pageOf('a', 7));
  for (let n = 0; n < pagesSince; n += 1) recent.add(pageOf(`other ${n}`, n));
  expect(recent.hasSame(pageOf('a', rowHash), 0)).toBe(isSame);
});
