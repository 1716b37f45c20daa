import { freeBuffers } from '../core/free-buffers.js';
import { eachInPortions, ITEMS_A_TURN } from '../core/turns.js';
import type { Database } from '../db/connection/database.js';
import { type BaselineRow, type BaselineWalk, type KeptPage, readBaseline, readRowHashes } from '../db/tables/ledger.js';
import { fenced, type ListKey } from '../db/tables/lists.js';
import { KeyHashes } from '../pagers/key-hashes.js';
import type { KeptResponse } from '../walks/received-page.js';
import { ROW_BYTES, ROW_WORDS } from './row-hashes.js';

/** A page that the baseline received. */
export interface BaselinePage {
  readonly snapshotId: bigint;
  readonly keysId: bigint;
  readonly keys: KeyHashes;
  /** The last words of its row hashes: the hashes of its chunks. */
  readonly chunks: Uint32Array;
  readonly answer?: KeptResponse | undefined;
}

/** In the place of the first key of a page without records. */
const NO_KEY = -1;

/**
 * The pages that an earlier walk received: a verified one, the very last to write to its list. Every record of them is in the mirror
 * with the text that it had. Without such a walk there are no pages.
 */
export class Baseline {
  readonly pages: readonly BaselinePage[];
  readonly keysDigest: string | undefined;
  /** Pages without records by NO_KEY. */
  readonly #byFirstKey = new Map<number, BaselinePage>();
  readonly #byRequest = new Map<string, BaselinePage>();
  readonly #bySnapshot = new Map<bigint, BaselinePage>();
  readonly #read: () => AsyncIterable<Uint32Array>;
  #rowHashes: Map<BaselinePage, Uint32Array> | undefined;
  /** First words of all row hashes as numbers, in ascending order. */
  #texts: Float64Array | undefined;

  /** `rowHashes` reads the row hashes of all pages, in their order. It throws when another worker has taken the list. */
  constructor(pages: readonly BaselinePage[], keysDigest: string | undefined, rowHashes: () => AsyncIterable<Uint32Array>) {
    this.pages = pages;
    this.keysDigest = keysDigest;
    this.#read = rowHashes;
    for (const page of pages) {
      this.#byFirstKey.set(firstNumberOf(page.keys), page);
      this.#bySnapshot.set(page.snapshotId, page);
      if (page.answer) this.#byRequest.set(page.answer.request, page);
    }
  }

  static async read(db: Database, list: ListKey, { id, keysDigest, pages: few }: BaselineWalk): Promise<Baseline> {
    if (few) return Baseline.#ofFew(few, keysDigest);
    const pages: BaselinePage[] = [];
    for await (const row of readBaseline(db, id, { bytes: ROW_BYTES })) pages.push(pageOf(row));
    return new Baseline(pages, keysDigest, async function* () {
      let n = 0;
      for await (const words of readRowHashes(db, id)) {
        n += 1;
        yield words;
      }
      if (n !== pages.length) throw fenced(list, 'the ledger of its last walk is gone');
    });
  }

  static #ofFew(few: readonly KeptPage[], keysDigest: string | undefined): Baseline {
    const pages = few.map(({ rowHashes, ...row }) =>
      pageOf({ ...row, chunks: rowHashes.slice((row.keys.length / 2) * ROW_WORDS) }),
    );
    return new Baseline(pages, keysDigest, async function* () {
      for (const { rowHashes } of few) yield rowHashes;
    });
  }

  /** The page that this request (KeptResponse) was answered with. */
  answerTo(request: string): BaselinePage | undefined {
    return this.#byRequest.get(request);
  }

  /** The page that begins with the first of these keys, or has none. */
  beginningWith(keys: KeyHashes): BaselinePage | undefined {
    return this.#byFirstKey.get(firstNumberOf(keys));
  }

  ofSnapshot(id: bigint): BaselinePage | undefined {
    return this.#bySnapshot.get(id);
  }

  /** Reads the row hashes of all pages, which are not needed before a page has changed. */
  async readRowHashes(): Promise<void> {
    if (this.#rowHashes) return;
    const read = new Map<BaselinePage, Uint32Array>();
    let n = 0;
    for await (const words of this.#read()) {
      const page = this.pages[n++];
      if (page) read.set(page, words);
    }
    this.#rowHashes = read;
  }

  /** Once they have been read. */
  rowHashesOf(page: BaselinePage): Uint32Array | undefined {
    return this.#rowHashes?.get(page);
  }

  /** Picks in portions the records of a page whose text no page held, by the page's row hashes. The baseline's row hashes have been read. */
  *unknownOf<R extends { readonly position: number }>(records: readonly R[], words: Uint32Array): Generator<void, R[]> {
    const texts = (this.#texts ??= yield* this.#numbersOfTexts());
    const unknown: R[] = [];
    yield* eachInPortions(records, (record) => {
      if (!includes(texts, numberOf(words, ROW_WORDS * record.position))) unknown.push(record);
    });
    return unknown;
  }

  free(): void {
    freeBuffers([...this.pages.flatMap(({ keys, chunks }) => [keys.words, chunks]), ...(this.#rowHashes?.values() ?? [])]);
  }

  /** Sorts in portions: hashes are spread evenly, so their leading bits divide them into parts of some thousand, each sorted by itself. */
  *#numbersOfTexts(): Generator<void, Float64Array> {
    const count = [...(this.#rowHashes?.keys() ?? [])].reduce((sum, { keys }) => sum + keys.length, 0);
    const parts = 2 ** Math.max(0, Math.ceil(Math.log2(count / ITEMS_A_TURN)));
    const partOf = (number: number) => Math.floor(number / (2 ** 53 / parts));
    /** The beginning of each part, then the place of its next number, and in the end the beginning of the next part. */
    const places = new Uint32Array(parts + 1);
    yield* this.#eachText((number) => {
      places[partOf(number) + 1]! += 1;
    });
    for (let part = 1; part < parts; part += 1) places[part]! += places[part - 1]!;
    const numbers = new Float64Array(count);
    yield* this.#eachText((number) => {
      numbers[places[partOf(number)]!++] = number;
    });
    for (let part = 0; part < parts; part += 1) {
      if (part > 0) yield;
      numbers.subarray(places[part - 1] ?? 0, places[part]).sort();
    }
    return numbers;
  }

  /** Handles the number of each row hash, in portions. */
  *#eachText(handle: (number: number) => void): Generator<void, void> {
    let handled = 0;
    for (const [{ keys }, words] of this.#rowHashes ?? []) {
      for (let n = 0; n < keys.length; n += 1) {
        if (handled > 0 && handled % ITEMS_A_TURN === 0) yield;
        handled += 1;
        handle(numberOf(words, ROW_WORDS * n));
      }
    }
  }
}

function pageOf({ keys, answer, ...row }: BaselineRow): BaselinePage {
  return { ...row, keys: new KeyHashes(keys), ...(answer !== undefined && { answer: JSON.parse(answer) as KeptResponse }) };
}

function includes(ascending: Float64Array, number: number): boolean {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle]! < number) low = middle + 1;
    else high = middle;
  }
  return ascending[low] === number;
}

function firstNumberOf({ words, length }: KeyHashes): number {
  return length === 0 ? NO_KEY : numberOf(words, 0);
}

/** 53 bits of a hash, which are a whole number: two of a million differing texts look the same with a probability of 10^-10. */
function numberOf(hashes: Uint32Array, at: number): number {
  return hashes[at]! * 2 ** 21 + (hashes[at + 1]! >>> 11);
}
