import { createHash } from 'node:crypto';
import { ITEMS_A_TURN, inTurns } from '../core/turns.js';
import { KeyHashes } from '../pagers/key-hashes.js';
import { KeyTable } from './key-table.js';

/** The records and page tokens that one pass has received; rebuilt from the ledger after a restart. */
export class PassMemory {
  readonly #table = new KeyTable();
  readonly #tokens = new Set<string>();
  /** The keys of the first page; undefined before it, and where it holds one key twice: such keys tell no page from another. */
  #firstPage: Uint32Array | undefined;
  /** The keys of the last page that had any. */
  #lastPage: KeyHashes | undefined;

  /** The memory of a pass that has received these pages, as the ledger has them: their keys, and the digests of their tokens. */
  static async of(
    pages: AsyncIterable<{ readonly keys: Uint32Array; readonly nextToken: string | undefined }>,
  ): Promise<PassMemory> {
    const memory = new PassMemory();
    for await (const { keys, nextToken } of pages) {
      await inTurns(memory.add(new KeyHashes(keys)));
      if (nextToken !== undefined) memory.addTokenDigest(nextToken);
    }
    return memory;
  }

  /** Distinct records. */
  get size(): number {
    return this.#table.size;
  }

  /** Equal for equal sets of keys, in whatever order they came. */
  get digest(): string {
    return this.#table.digest;
  }

  /** Positions of the keys that came on earlier pages. In portions. */
  *repeats(keys: KeyHashes): Generator<void, number[]> {
    const positions: number[] = [];
    for (let n = 0; n < keys.length; n += 1) {
      if (n > 0 && n % ITEMS_A_TURN === 0) yield;
      if (this.#table.has(keys, n)) positions.push(n);
    }
    return positions;
  }

  /** Adds the keys of a page, in portions. Returns the positions of keys that had come before, on earlier pages or on this one. */
  *add(keys: KeyHashes): Generator<void, number[]> {
    const isFirst = this.size === 0;
    const known: number[] = [];
    for (let n = 0; n < keys.length; n += 1) {
      if (n > 0 && n % ITEMS_A_TURN === 0) yield;
      if (!this.#table.add(keys, n)) known.push(n);
      if (this.#table.isFull) yield* this.#table.grow();
    }
    // A copy: a page's memory is given back.
    const words = keys.words.slice();
    if (isFirst && known.length === 0) this.#firstPage = words;
    if (words.length > 0) this.#lastPage = new KeyHashes(words);
    return known;
  }

  /** Whether a page has the keys of the first page that had any, in their order. */
  isFirstPage({ words }: KeyHashes): boolean {
    const first = this.#firstPage;
    return first?.length === words.length && first.every((word, n) => word === words[n]);
  }

  /** Whether a page ends with all keys of the last page that had any, in their order. */
  endsAsBefore(keys: KeyHashes): boolean {
    return this.#lastPage !== undefined && keys.endsWith(this.#lastPage);
  }

  hasToken(token: string | number): boolean {
    return this.#tokens.has(digestToken(token));
  }

  addTokenDigest(digest: string): void {
    this.#tokens.add(digest);
  }

  /** Records that there may be in all. The number is not proved, and only says how far to grow. */
  expect(records: number): void {
    this.#table.expect(records);
  }
}

/** The digest of a page token that the ledger keeps: enough to recognize the token, and short whatever its length. */
export function digestToken(token: string | number): string {
  return createHash('sha256').update(String(token)).digest('base64url').slice(0, 16);
}
