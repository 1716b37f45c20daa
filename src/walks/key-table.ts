import { freeBuffers } from '../core/free-buffers.js';
import { ITEMS_A_TURN } from '../core/turns.js';
import type { KeyHashes } from '../pagers/key-hashes.js';

/** The most that an unproved total may cost at once: this growth, and a table of a million records. */
const MOST_GROWTH = 16;
const MOST_SLOTS = 2 ** 21;

/**
 * A set of the 64-bit hashes of records' keys, in open addressing: 16 to 32 bytes a record, whatever the length of its id. A collision
 * makes the distinct count fall short of the total, so that it costs another pass and never hides a record.
 */
export class KeyTable {
  /** The two halves of each hash; 0 and 0 = free. */
  #high: Uint32Array;
  #low: Uint32Array;
  #size = 0;
  #expected = 0;
  /** Sums of the halves of all keys. */
  #highSum = 0;
  #lowSum = 0;

  constructor(slots = 1024) {
    this.#high = new Uint32Array(slots);
    this.#low = new Uint32Array(slots);
  }

  get size(): number {
    return this.#size;
  }

  /** Equal for equal sets of keys, in whatever order they came. Begins with their number (sizeOfDigest). */
  get digest(): string {
    return [this.#size, this.#highSum, this.#lowSum].map((part) => part.toString(16)).join(':');
  }

  /** Whether it has key `n`. */
  has({ words }: KeyHashes, n: number): boolean {
    return this.#isTaken(this.#find(words[2 * n]!, words[2 * n + 1]!));
  }

  /** Whether it must grow before another key is added. */
  get isFull(): boolean {
    return this.#size * 2 > this.#low.length;
  }

  /** Adds key `n`, unless it has it. Returns whether it is new. */
  add({ words }: KeyHashes, n: number): boolean {
    const high = words[2 * n]!;
    const low = words[2 * n + 1]!;
    const slot = this.#find(high, low);
    if (this.#isTaken(slot)) return false;
    this.#high[slot] = high;
    this.#low[slot] = low;
    this.#size += 1;
    this.#highSum = (this.#highSum + high) >>> 0;
    this.#lowSum = (this.#lowSum + low) >>> 0;
    return true;
  }

  /** Records that there may be in all. The number is not proved, and only says how far to grow. */
  expect(records: number): void {
    this.#expected = records;
  }

  #isTaken(slot: number): boolean {
    return this.#high[slot] !== 0 || this.#low[slot] !== 0;
  }

  /** The slot that holds the hash, or the free one where it belongs. */
  #find(high: number, low: number): number {
    const mask = this.#low.length - 1;
    let slot = low & mask;
    while ((this.#low[slot] !== low || this.#high[slot] !== high) && this.#isTaken(slot)) slot = (slot + 1) & mask;
    return slot;
  }

  /** Moves all keys to a larger table, in portions. No key may be added during it. */
  *grow(): Generator<void, void> {
    const enough = 2 ** Math.ceil(Math.log2(2 * this.#expected));
    const length = this.#low.length;
    const larger = new KeyTable(Math.max(2 * length, Math.min(enough, MOST_SLOTS, MOST_GROWTH * length)));
    for (let from = 0; from < length; from++) {
      if (from > 0 && from % ITEMS_A_TURN === 0) yield;
      if (!this.#isTaken(from)) continue;
      const slot = larger.#find(this.#high[from]!, this.#low[from]!);
      larger.#high[slot] = this.#high[from]!;
      larger.#low[slot] = this.#low[from]!;
    }
    freeBuffers([this.#high, this.#low]);
    this.#high = larger.#high;
    this.#low = larger.#low;
  }
}

/** How many distinct keys a digest was made of. */
export function sizeOfDigest(digest: string): number {
  return Number.parseInt(digest, 16);
}

/** Whether a page holds one key twice. The table has room for all of them from the start. */
export function holdsKeyTwice(keys: KeyHashes): boolean {
  const table = new KeyTable(2 ** Math.ceil(Math.log2(2 * keys.length + 2)));
  for (let n = 0; n < keys.length; n += 1) if (!table.add(keys, n)) return true;
  return false;
}
