import { createHash } from 'node:crypto';
import { freeBuffer } from '../core/free-buffer.js';
import type { KeyHashes } from '../pagers/hashes.js';
import { TEXT_WORDS } from '../pagers/record-digests.js';
import type { PassMemory } from '../pagers/pager.js';

/** Whether a key is new to the pass, was received before with the same text, or with another one. */
export type Receipt = 'new' | 'same' | 'differs';

/** What a total that nobody has proved may cost: so many times the slots, and a table of a million records, at once. */
const MOST_GROWTH = 16;
const MOST_SLOTS = 2 ** 21;

/**
 * The records and page tokens that one pass has received: the 64-bit hash of each key and half of its text's hash in open
 * addressing, 24 to 48 bytes a record, whatever the length of its id. Two of a million keys collide with a probability of 3
 * in 10^8; a collision would make the distinct count fall short of the total, so it costs another pass and never hides a record.
 */
export class ReceivedKeys implements PassMemory {
  /** The two halves of each hash; 0 and 0 = free. */
  #high = new Uint32Array(1024);
  #low = new Uint32Array(1024);
  #text = new Uint32Array(1024);
  #size = 0;
  #expected = 0;
  /** Sums of the halves of all keys. */
  #highSum = 0;
  #lowSum = 0;
  #isSteady = true;
  readonly #tokens = new Set<string>();

  get size(): number {
    return this.#size;
  }

  /** The same for the same set of keys, in whatever order they came. */
  get digest(): string {
    return [this.#size, this.#highSum, this.#lowSum].map((part) => part.toString(16)).join(':');
  }

  /** Whether every record that came more than once came with the same text. */
  get isSteady(): boolean {
    return this.#isSteady;
  }

  hasAny({ words }: KeyHashes): boolean {
    for (let at = 0; at < words.length; at += 2) if (this.#has(words[at]!, words[at + 1]!)) return true;
    return false;
  }

  hasAll({ words }: KeyHashes): boolean {
    for (let at = 0; at < words.length; at += 2) if (!this.#has(words[at]!, words[at + 1]!)) return false;
    return true;
  }

  hasToken(token: string): boolean {
    return this.#tokens.has(digestToken(token));
  }

  /** Adds record `n` of a page whose keys and texts have these hashes. */
  add({ words }: KeyHashes, texts: Uint32Array, n: number): Receipt {
    const high = words[2 * n]!;
    const low = words[2 * n + 1]!;
    const text = texts[TEXT_WORDS * n]!;
    const slot = this.#find(high, low);
    if (this.#high[slot] === high && this.#low[slot] === low) {
      if (this.#text[slot] === text) return 'same';
      this.#isSteady = false;
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

  /** Whether every record so far came with one text, also if these come next. */
  agreesWith({ words, length }: KeyHashes, texts: Uint32Array): boolean {
    for (let n = 0; n < length && this.#isSteady; n += 1) {
      const slot = this.#find(words[2 * n]!, words[2 * n + 1]!);
      const isKnown = this.#high[slot] !== 0 || this.#low[slot] !== 0;
      if (isKnown && this.#text[slot] !== texts[TEXT_WORDS * n]) this.#isSteady = false;
    }
    return this.#isSteady;
  }

  /** How many records there may be in all. Nobody has proved it: it only says how far to grow. */
  expect(records: number): void {
    this.#expected = records;
  }

  addTokenDigest(digest: string): void {
    this.#tokens.add(digest);
  }

  #has(high: number, low: number): boolean {
    const slot = this.#find(high, low);
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
    for (const outgrown of [high, low, text]) freeBuffer(outgrown);
  }
}

/** What the ledger keeps of a page token: enough to see it again, short whatever the token's length. */
export function digestToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url').slice(0, 16);
}
