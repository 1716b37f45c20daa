import { atOnce, ITEMS_A_TURN } from '../core/turns.js';
import { hashText, wordsOf } from '../core/xxh64.js';

/** A 64-bit hash of each record's key, in page order, as two 32-bit words. Zero means no key, so no hash is zero. */
export class KeyHashes {
  /** Two words a record. */
  readonly words: Uint32Array;

  constructor(words: Uint32Array) {
    this.words = words;
  }

  static of(keys: readonly string[]): KeyHashes {
    return atOnce(KeyHashes.inPortions(keys));
  }

  /** Makes the hashes in portions. */
  static *inPortions(keys: readonly string[]): Generator<void, KeyHashes> {
    const hashes = new BigUint64Array(keys.length);
    for (let n = 0; n < keys.length; n += 1) {
      if (n > 0 && n % ITEMS_A_TURN === 0) yield;
      hashes[n] = hashKey(keys[n]!);
    }
    return new KeyHashes(new Uint32Array(hashes.buffer));
  }

  get length(): number {
    return this.words.length / 2;
  }

  equals({ words }: KeyHashes): boolean {
    return words.length === this.words.length && words.every((word, n) => word === this.words[n]);
  }

  /** Whether the last keys are those of the others, in their order. */
  endsWith({ words }: KeyHashes): boolean {
    const before = this.words.length - words.length;
    return before >= 0 && words.every((word, n) => word === this.words[before + n]);
  }

  isKey(n: number, key: string): boolean {
    const hash = wordsOf(hashKey(key));
    return this.words[2 * n] === hash[0] && this.words[2 * n + 1] === hash[1];
  }

  /** Whether key `n` is key `m` of the others. */
  isSame(n: number, others: KeyHashes, m: number): boolean {
    return this.words[2 * n] === others.words[2 * m] && this.words[2 * n + 1] === others.words[2 * m + 1];
  }
}

function hashKey(key: string): bigint {
  return hashText(key) || 1n;
}
