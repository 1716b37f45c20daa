import type { PageToWrite } from './page-values.js';

/**
 * What the ledger says of pages, column by column. Keys and hashes that pages have of their own are put together, and beside each page
 * stands where its own are, from 1: hashes in one value, since an array of values would be sent as hexadecimal digits. A key with which
 * one page ends and the next begins stands there once.
 *
 * Filled in a loop and not by functions that each call makes anew: these V8 compiles again behind every full collection.
 */
export class LedgerColumns {
  readonly numbers: number[] = [];
  readonly tokenDigests: (string | null)[] = [];
  /** The content of an earlier page that is the same in everything, and that of one which has the same keys. */
  readonly contents: (bigint | null)[] = [];
  readonly likes: (bigint | null)[] = [];
  readonly areChanges: boolean[] = [];
  readonly answers: (string | null)[] = [];
  /** Places in `ids`, the last one included. */
  readonly firstIds: number[] = [];
  readonly lastIds: number[] = [];
  /** Places in `hashes`; a size of null where there are none. */
  readonly keysAt: number[] = [];
  readonly keysSizes: (number | null)[] = [];
  readonly textsAt: number[] = [];
  readonly textsSizes: (number | null)[] = [];
  readonly ids: string[] = [];
  readonly #hashes: Buffer[] = [];
  #nextHash = 1;

  constructor(pages: readonly PageToWrite[]) {
    for (const page of pages) this.#add(page);
  }

  get hashes(): Buffer {
    return Buffer.concat(this.#hashes);
  }

  #add({ page, number, tokenDigest }: PageToWrite): void {
    const { content, ids, keys, texts, changes, answer } = page;
    const isLike = 'id' in ids;
    this.numbers.push(number);
    this.tokenDigests.push(tokenDigest ?? null);
    this.contents.push(content?.id ?? null);
    this.likes.push(isLike ? ids.id : null);
    this.areChanges.push(changes !== undefined);
    this.answers.push(answer ? JSON.stringify(answer) : null);
    this.#addIds(isLike ? [] : ids);
    this.keysAt.push(this.#nextHash);
    this.keysSizes.push(isLike ? null : this.#addHashes(keys.words));
    this.textsAt.push(this.#nextHash);
    this.textsSizes.push(content ? null : this.#addHashes(changes ?? texts.words));
  }

  #addIds(ids: readonly string[]): void {
    const overlap = ids.length > 0 && ids[0] === this.ids.at(-1) ? 1 : 0;
    this.firstIds.push(this.ids.length + 1 - overlap);
    for (let n = overlap; n < ids.length; n += 1) this.ids.push(ids[n]!);
    this.lastIds.push(this.ids.length);
  }

  #addHashes({ buffer, byteOffset, byteLength }: Uint32Array): number {
    this.#hashes.push(Buffer.from(buffer, byteOffset, byteLength));
    this.#nextHash += byteLength;
    return byteLength;
  }
}
