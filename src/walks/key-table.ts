import { freeBuffers } from '../core/free-buffers.js';
import { type PageHashes, TEXT_WORDS } from '../pagers/hashes.js';

/** Whether a key is new, was received before with the same text, or with another one. */
export type Receipt = 'new' | 'same' | 'differs';

/** What a total that nobody has proved may cost: so many times the slots, and a table of a million records, at once. */
const MOST_GROWTH = 16;
const MOST_SLOTS = 2 ** 21;

/**
 * Records: the 64-bit hash of each key and half of its text's hash in open addressing, 24 to 48 bytes a record, whatever the
 * length of its id. Two of a million keys collide with a probability of 3 in 10^8; a collision would make the distinct count fall
 * short of the total, so it costs another pass and never hides a record.
 */
export class KeyTable {
  /** The two halves of each hash; 0 and 0 = free. */
  #high = new Uint32Array(1024);
  #low = new Uint32Array(1024);
  #text = new Uint32Array(1024);
  #size = 0;
  #expected = 0;
  /** Sums of the halves of all keys. */
  #highSum = 0;
  #lowSum = 0;

  get size(): number {
    return this.#size;
  }

  /** The same for the same set of keys, in whatever order they came. Begins with their number (sizeOfDigest). */
  get digest(): string {
    return [this.#size, this.#highSum, this.#lowSum].map((part) => part.toString(16)).join(':');
  }

  /** Whether it has the key of record `n` of a page. */
  has({ words }: PageHashes['keys'], n: number): boolean {
    return this.#isTaken(this.#find(words[2 * n]!, words[2 * n + 1]!));
  }

  add({ keys: { words }, texts }: PageHashes, n: number): Receipt {
    const high = words[2 * n]!;
    const low = words[2 * n + 1]!;
    const text = texts.words[TEXT_WORDS * n]!;
    const slot = this.#find(high, low);
    if (this.#isTaken(slot)) {
      if (this.#text[slot] === text) return 'same';
      this.#text[slot] = text;
      return 'differs';
    }
    this.#high[slot] = high;
    this.#low[slot] = low;
    this.#text[slot] = text;
    this.#size += 1;
    this.#highSum = (this.#highSum + high) >>> 0;
    this.#lowSum = (this.#lowSum + low) >>> 0;
    if (this.#size * 2 > this.#low.length) this.#grow();
    return 'new';
  }

  /** Whether record `n` was not received with another text. */
  agreesWith({ keys: { words }, texts }: PageHashes, n: number): boolean {
    const slot = this.#find(words[2 * n]!, words[2 * n + 1]!);
    return !this.#isTaken(slot) || this.#text[slot] === texts.words[TEXT_WORDS * n];
  }

  /** How many records there may be in all. Nobody has proved it: it only says how far to grow. */
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
    while ((this.#low[slot] !== low || this.#high[slot] !== high) && (this.#low[slot] !== 0 || this.#high[slot] !== 0)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const [high, low, text] = [this.#high, this.#low, this.#text];
    const enough = 2 ** Math.ceil(Math.log2(2 * this.#expected));
    const slots = Math.max(2 * low.length, Math.min(enough, MOST_SLOTS, MOST_GROWTH * low.length));
    this.#high = new Uint32Array(slots);
    this.#low = new Uint32Array(slots);
    this.#text = new Uint32Array(slots);
    for (let from = 0; from < low.length; from++) {
      if (high[from] === 0 && low[from] === 0) continue;
      const slot = this.#find(high[from]!, low[from]!);
      this.#high[slot] = high[from]!;
      this.#low[slot] = low[from]!;
      this.#text[slot] = text[from]!;
    }
    freeBuffers([high, low, text]);
  }
}

/** How many distinct keys a digest was made of. */
export function sizeOfDigest(digest: string): number {
  return Number.parseInt(digest, 16);
}
