import { atOnce, ITEMS_A_TURN } from '../core/turns.js';
import type { KeyHashes } from '../pagers/key-hashes.js';
import { PassMemory } from '../walks/pass-memory.js';

/**
 * The memory of a pass that begins as the baseline did. As long as it receives the baseline's pages, one after the other, it only
 * counts them: which records the baseline's pages share is known. With the first page that is another, all that came is put into the
 * table that every other pass has from its start.
 */
export class FollowedMemory extends PassMemory {
  /** The baseline's pages, in its order. */
  readonly #pages: readonly KeyHashes[];
  readonly #digest: string;
  /** Pages that came; undefined once another page has come. */
  #followed: number | undefined = 0;
  #size = 0;

  /** `digest`: of all keys of the pages. Every page must be `isSequence` with those before it. */
  constructor(pages: readonly KeyHashes[], digest: string) {
    super();
    this.#pages = pages;
    this.#digest = digest;
  }

  override get size(): number {
    return this.#followed === undefined ? super.size : this.#size;
  }

  override get digest(): string {
    if (this.#followed === this.#pages.length) return this.#digest;
    atOnce(this.#leave());
    return super.digest;
  }

  override *repeats(keys: KeyHashes): Generator<void, number[]> {
    if (this.#isNext(keys)) return overlapOf(this.#pages, this.#followed!);
    yield* this.#leave();
    return yield* super.repeats(keys);
  }

  override *add(keys: KeyHashes): Generator<void, number[]> {
    if (!this.#isNext(keys)) {
      yield* this.#leave();
      return yield* super.add(keys);
    }
    const overlap = overlapOf(this.#pages, this.#followed!);
    this.#followed! += 1;
    this.#size += keys.length - overlap.length;
    return overlap;
  }

  override isFirstPage(keys: KeyHashes): boolean {
    // Pages of a sequence share one record at most.
    if (this.#isNext(keys)) return false;
    atOnce(this.#leave());
    return super.isFirstPage(keys);
  }

  override endsAsBefore(keys: KeyHashes): boolean {
    for (let n = (this.#followed ?? 0) - 1; n >= 0; n -= 1) {
      const page = this.#pages[n]!;
      if (page.length > 0) return keys.endsWith(page);
    }
    return super.endsAsBefore(keys);
  }

  #isNext(keys: KeyHashes): boolean {
    return this.#followed !== undefined && this.#pages[this.#followed] === keys;
  }

  *#leave(): Generator<void, void> {
    if (this.#followed === undefined) return;
    const received = this.#pages.slice(0, this.#followed);
    this.#followed = undefined;
    let inPortion = 0;
    for (const keys of received) {
      inPortion += keys.length;
      if (inPortion > ITEMS_A_TURN) {
        yield;
        inPortion = keys.length;
      }
      yield* super.add(keys);
    }
  }
}

/** Whether the pages share no record but the one with which a page ends and the next begins. They hold `distinct` records in all. */
export function isSequence(pages: readonly KeyHashes[], distinct: number): boolean {
  const most = pages.reduce((sum, { length }, n) => sum + length - overlapOf(pages, n).length, 0);
  return most === distinct;
}

/** Positions of records of page `n` that the page before has, too: none, or the first. */
function overlapOf(pages: readonly KeyHashes[], n: number): number[] {
  const [keys, before] = [pages[n]!, pages[n - 1]];
  const isJoined = before && before.length > 0 && keys.length > 0 && keys.isSame(0, before, before.length - 1);
  return isJoined ? [0] : [];
}
