/** The keys of a page's records in the order received, each as a 64-bit hash. */
export class KeyHashes {
  /** Two 32-bit words a key, never both 0. */
  readonly words: Uint32Array;
  #repeats: Set<number> | undefined;

  constructor(words: Uint32Array) {
    this.words = words;
  }

  static of(keys: readonly string[]): KeyHashes {
    const words = new Uint32Array(2 * keys.length);
    for (let n = 0; n < keys.length; n += 1) hashKey(keys[n]!, words, 2 * n);
    return new KeyHashes(words);
  }

  get length(): number {
    return this.words.length / 2;
  }

  /** Whether an earlier key is the same as key `n`. */
  isRepeat(n: number): boolean {
    if (n === 0) return false;
    this.#repeats ??= this.#findRepeats();
    return this.#repeats.has(n);
  }

  #findRepeats(): Set<number> {
    const seen = new Set<bigint>();
    const repeats = new Set<number>();
    for (let n = 0; n < this.length; n += 1) {
      const key = (BigInt(this.words[2 * n]!) << 32n) | BigInt(this.words[2 * n + 1]!);
      if (seen.has(key)) repeats.add(n);
      seen.add(key);
    }
    return repeats;
  }
}

/**
 * Two lanes of multiply and xor over the key's characters, mixed at the end (after MurmurHash3's finalizer). Not
 * cryptographic: ids are not chosen to collide, and a page's worth of sha256 took as long as reading the page.
 */
function hashKey(key: string, words: Uint32Array, at: number): void {
  let high = 0xdeadbeef ^ key.length;
  let low = 0x41c6ce57 ^ key.length;
  for (let n = 0; n < key.length; n++) {
    const code = key.charCodeAt(n);
    high = Math.imul(high ^ code, 0x9e3779b1);
    low = Math.imul(low ^ code, 0x5f356495);
    high ^= high >>> 15;
    low ^= low >>> 13;
  }
  const mixed = mix(high ^ Math.imul(low, 0xc2b2ae35));
  words[at] = mixed;
  words[at + 1] = mix(low ^ Math.imul(mixed, 0x85ebca6b)) || 1;
}

/**
 * 64-bit hash of `bytes` from `start` to `end`, eight bytes a step (the loop of MurmurHash3 for two words). Not cryptographic:
 * it tells a record's text from what the same service sent before.
 */
export function hashBytes(bytes: DataView, start: number, end: number, words: Uint32Array, at: number): void {
  let high = 0x9747b28c ^ (end - start);
  let low = 0x3c6ef372 ^ (end - start);
  let n = start;
  for (; n + 8 <= end; n += 8) {
    const first = Math.imul(bytes.getInt32(n, true), 0x239b961b);
    high ^= Math.imul((first << 15) | (first >>> 17), 0xab0e9789);
    high = Math.imul(((high << 19) | (high >>> 13)) + low, 5) + 0x561ccd1b;
    const second = Math.imul(bytes.getInt32(n + 4, true), 0xab0e9789);
    low ^= Math.imul((second << 17) | (second >>> 15), 0x38b34ae5);
    low = Math.imul(((low << 17) | (low >>> 15)) + high, 5) + 0x1bcaa747;
  }
  for (; n < end; n++) {
    high = Math.imul(high ^ bytes.getUint8(n), 0x9e3779b1);
    high ^= high >>> 15;
    low = Math.imul(low ^ high, 0x5f356495);
  }
  const mixed = mix(high ^ Math.imul(low, 0xc2b2ae35));
  words[at] = mixed;
  words[at + 1] = mix(low ^ Math.imul(mixed, 0x85ebca6b));
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
