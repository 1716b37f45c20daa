import type { KeyHashes } from '../pagers/key-hashes.js';
import { isSameRow } from './row-hashes.js';

/** A page that the pass has received. */
export interface RecentPage {
  readonly keys: KeyHashes;
  /** Gives the row hashes; undefined: all texts equal the baseline's, and their hashes have not been needed. */
  readonly rowHashes: () => Uint32Array | undefined;
}

/** Pages that are searched for a record that comes again. Where it came on an earlier page, its text counts as another one. */
export const RECENT_PAGES = 8;

/**
 * Tells whether a record that comes again in a pass comes with the text that it had before. Nearly always it is the last record of the page
 * before, with which the next page begins; where records were deleted since, a page or two are read again.
 */
export class RecentPages {
  /** The newest first. */
  readonly #pages: RecentPage[] = [];

  add(page: RecentPage): void {
    this.#pages.unshift(page);
    if (this.#pages.length > RECENT_PAGES) this.#pages.pop();
  }

  /** Whether record `n` of the page is known to have come before with the same text. The baseline gave each record one text. */
  hasSame(page: RecentPage, n: number): boolean {
    for (const earlier of this.#pages) {
      for (let m = earlier.keys.length - 1; m >= 0; m -= 1) {
        if (!page.keys.isSame(n, earlier.keys, m)) continue;
        const [rows, before] = [page.rowHashes(), earlier.rowHashes()];
        return rows && before ? isSameRow(rows, n, before, m) : rows === before;
      }
    }
    return false;
  }
}
