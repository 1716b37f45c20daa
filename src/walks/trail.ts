import type { PageHashes } from '../pagers/hashes.js';
import { sizeOfDigest } from './key-table.js';

/** A page of a trail. */
export interface TrailPage extends PageHashes {
  /** How many of its records, from the first, the page before it ended with: 0 or 1. All others stand on no other page. */
  readonly joined: number;
}

/**
 * The pages of a verified walk in the order received, where none has a record that another has, but the one that it may begin with
 * and the page before it ended with. Whoever receives the same pages knows what they add up to without looking any key up.
 */
export interface Trail {
  readonly pages: readonly TrailPage[];
  /** Digest of all keys. */
  readonly keysDigest: string;
}

/** A page, and the hashes of its first and last key; empty where it has no record. */
export interface PageEnds {
  readonly content: PageHashes;
  readonly firstKey: Buffer;
  readonly lastKey: Buffer;
}

/**
 * The trail of the pages, if they make one. Each adds at most the records that it does not begin with; the walk has received just
 * as many distinct ones if all of those are distinct.
 */
export function trailOf(ends: readonly PageEnds[], keysDigest: string): Trail | undefined {
  const pages = ends.map(({ content: { keys, texts }, firstKey }, n) => {
    const isJoined = n > 0 && keys.length > 0 && firstKey.equals(ends[n - 1]!.lastKey);
    return { keys, texts, joined: isJoined ? 1 : 0 };
  });
  const most = pages.reduce((sum, { keys, joined }) => sum + keys.length - joined, 0);
  return most === sizeOfDigest(keysDigest) ? { pages, keysDigest } : undefined;
}
