import xxhash from 'xxhash-wasm';

const { create64, h64, h64Raw } = await xxhash();

/** Bytes that are hashed at once. They are copied into the hash's own memory, which grows to the most that it was given. */
const CHUNK_BYTES = 2 ** 16;

/** XXH64. Not cryptographic: it tells a text from what the same service sent before. */
export function hashBytes(bytes: Uint8Array): bigint {
  if (bytes.length <= CHUNK_BYTES) return h64Raw(bytes);
  const hash = create64();
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) hash.update(bytes.subarray(at, at + CHUNK_BYTES));
  return hash.digest();
}

/** Hashes of a page's records in the order received. Those of a page that an earlier walk received are read when they are needed. */
abstract class Hashes {
  readonly length: number;
  #words: Uint32Array | undefined;

  constructor(length: number, words?: Uint32Array) {
    this.length = length;
    this.#words = words;
  }

  get words(): Uint32Array {
    if (!this.#words) throw new Error('These hashes have not been read.');
    return this.#words;
  }

  arrive(words: Uint32Array): void {
    this.#words = words;
  }

  /** Empty until they have arrived. */
  get memory(): readonly Uint32Array[] {
    return this.#words ? [this.#words] : [];
  }
}

/**
 * Of each record's text TEXT_WORDS words: two of its 64-bit hash, and its length in bytes. Behind those, the same of each run of
 * records as one text, from its first record to its last: what has not changed is recognized by the run.
 */
export class TextHashes extends Hashes {
  #runs: Uint32Array | undefined;
  #changeCount = 0;
  /** Those that these differ from, until all of these are asked for. */
  #but: { readonly others: TextHashes; readonly changes: Uint32Array } | undefined;

  /** The same as these but for the changes: made when they are asked for, which is seldom. These must not be freed before. */
  with(changes: Uint32Array): TextHashes {
    const texts = new TextHashes(this.length);
    texts.#but = { others: this, changes };
    return texts;
  }

  override get words(): Uint32Array {
    if (this.#but) {
      const { others, changes } = this.#but;
      this.#but = undefined;
      super.arrive(others.words.slice());
      change(super.words, 0, changes);
    }
    return super.words;
  }

  /** Half of the hash of text `n`. */
  markOf(n: number): number {
    if (!this.#but) return this.words[TEXT_WORDS * n]!;
    const { others, changes } = this.#but;
    for (let at = changes.length - CHANGE_WORDS; at >= 0; at -= CHANGE_WORDS) if (changes[at] === n) return changes[at + 1]!;
    return others.markOf(n);
  }

  /** Those of the runs, which may arrive before all others. */
  get runs(): Uint32Array {
    return (this.#runs ??= this.words.subarray(TEXT_WORDS * this.length));
  }

  /** How many changes the ledger keeps these as, beside the texts of another page; 0 where it keeps all of them. */
  get changeCount(): number {
    return this.#changeCount;
  }

  /** `changes`: words of each text that another takes the place of. Of several for one text the last counts. */
  override arrive(words: Uint32Array, changes: Uint32Array = new Uint32Array()): void {
    super.arrive(words);
    this.#runs = undefined;
    this.#changeCount = changes.length / CHANGE_WORDS;
    change(words, 0, changes);
  }

  arriveRuns(runs: Uint32Array, changes: Uint32Array = new Uint32Array()): void {
    this.#runs = runs;
    change(runs, this.length, changes);
  }
}

export const TEXT_WORDS = 3;
/** Of a change: which text, and the words of the one that it has now. */
export const CHANGE_WORDS = 1 + TEXT_WORDS;
/** Records of a run; the last one of a page may have fewer. */
export const RUN = 16;

/** Texts of a page that have a hash: those of its records, then those of its runs. */
export function textsOf(records: number): number {
  return records + Math.ceil(records / RUN);
}

/** Puts the changed texts into `words`, which begin with those of text `first`. */
function change(words: Uint32Array, first: number, changes: Uint32Array): void {
  for (let at = 0; at < changes.length; at += CHANGE_WORDS) {
    const n = changes[at]!;
    if (n >= first) copyText(changes, at + 1, words, TEXT_WORDS * (n - first));
  }
}

/** Word by word: a view of three takes longer to make than they take to copy. */
function copyText(from: Uint32Array, fromAt: number, to: Uint32Array, toAt: number): void {
  for (let word = 0; word < TEXT_WORDS; word += 1) to[toAt + word] = from[fromAt + word]!;
}

/** Of each record's key the two words of a 64-bit hash, never both 0. */
export class KeyHashes extends Hashes {
  #repeats: Set<number> | undefined;

  static of(keys: readonly string[]): KeyHashes {
    const hashes = new BigUint64Array(keys.length);
    for (let n = 0; n < keys.length; n += 1) hashes[n] = hashKey(keys[n]!);
    return new KeyHashes(keys.length, new Uint32Array(hashes.buffer));
  }

  /** Whether key `n` is this one. */
  isKey(n: number, key: string): boolean {
    const hash = wordsOf(hashKey(key));
    return this.words[2 * n] === hash[0] && this.words[2 * n + 1] === hash[1];
  }

  /** Whether an earlier key is the same as key `n`. */
  isRepeat(n: number): boolean {
    if (n === 0) return false;
    this.#repeats ??= this.#findRepeats();
    return this.#repeats.has(n);
  }

  #findRepeats(): Set<number> {
    const { words, length } = this;
    const seen = new Set<bigint>();
    const repeats = new Set<number>();
    for (let n = 0; n < length; n += 1) {
      const key = (BigInt(words[2 * n]!) << 32n) | BigInt(words[2 * n + 1]!);
      if (seen.has(key)) repeats.add(n);
      seen.add(key);
    }
    return repeats;
  }
}

const number = new BigUint64Array(1);
const numberWords = new Uint32Array(number.buffer);

/** The two words of a hash, as long as no other is asked for: without arithmetic of large numbers. */
export function wordsOf(hash: bigint): Uint32Array {
  number[0] = hash;
  return numberWords;
}

function hashKey(key: string): bigint {
  return h64(key) || 1n;
}

/** What is kept of a page's records outside the database. */
export interface PageHashes {
  readonly keys: KeyHashes;
  readonly texts: TextHashes;
}
