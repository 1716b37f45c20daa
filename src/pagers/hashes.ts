import xxhash from 'xxhash-wasm';

const { create64, h64, h64Raw } = await xxhash();

/** Bytes that are hashed at once. They are copied into the hash's own memory, which grows to the most that it was given. */
const CHUNK_BYTES = 2 ** 16;

/** XXH64. Not cryptographic: it tells a text from what the same service sent before. */
export function hashBytes(bytes: Uint8Array, seed = 0n): bigint {
  if (bytes.length <= CHUNK_BYTES) return h64Raw(bytes, seed);
  const hash = create64(seed);
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) hash.update(bytes.subarray(at, at + CHUNK_BYTES));
  return hash.digest();
}

/** The keys of a page's records in the order received, each as a 64-bit hash. */
export class KeyHashes {
  /** Two 32-bit words a key, never both 0. */
  readonly words: Uint32Array;
  #repeats: Set<number> | undefined;

  constructor(words: Uint32Array) {
    this.words = words;
  }

  static of(keys: readonly string[]): KeyHashes {
    const hashes = BigUint64Array.from(keys, (key) => h64(key) || 1n);
    return new KeyHashes(new Uint32Array(hashes.buffer));
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
