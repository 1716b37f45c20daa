import type { Endpoint } from '../catalogue/endpoint.js';
import type { Database } from '../db/connection/database.js';
import type { EtagTrust } from '../db/tables/etag-trust.js';
import type { BaselineWalk } from '../db/tables/ledger.js';
import type { ListKey } from '../db/tables/lists.js';
import type { PageFormat, PageResponse } from '../pagers/read-page.js';
import { PassMemory } from './pass-memory.js';
import { type ReceivedPage, readInFull } from './received-page.js';

/**
 * Decides, for one pass over a list, which records need no comparison with the mirror and which pages no transfer. A walk is right whatever
 * is decided here, as long as a record that is left out is in the mirror with the text that the service has.
 */
export interface Comparison {
  /** Whether the next walk may take this pass as its baseline. */
  readonly isReusable: boolean;
  /** The memory of the pass, empty. */
  newMemory(): PassMemory;
  /** The If-None-Match of a request (KeptResponse); undefined: the page is to be sent, whatever it is. */
  ifNoneMatch(request: string): string | undefined;
  /** The page that a 304 with this ETag confirms; undefined: it confirms another one, and the page must be asked for again. */
  notModified(request: string, etag: string | undefined): ReceivedPage | undefined;
  /** Reads a page that was sent. `idField`: the record member that is the id, once a page has shown it. Throws as readPage does. */
  read(request: string, response: PageResponse, format: PageFormat, idField: string | undefined): Promise<ReceivedPage>;
  /**
   * Whether the page may be taken as it was read. `repeats`: positions of its records that the pass has received before. False: the pass may
   * have written other texts of these records, so that everything is compared from here on, this page included.
   */
  agrees(page: ReceivedPage, repeats: readonly number[]): boolean;
  /** Removes these records from a page's row hashes. */
  blank(rowHashes: Uint32Array, positions: readonly number[]): void;
  /** Records a page that counts. */
  took(page: ReceivedPage): void;
  /** Whether the keys of this digest are the baseline's, so that no other row can be living. */
  hasSameKeys(digest: string): boolean;
  /** Whether the pass received the very pages of its baseline, in their order, and no other: then no record has moved. */
  hasSamePages(): boolean;
  /** Gives memory back, once the pass is over. */
  close(): void;
}

/** Makes the comparisons of walks. */
export interface Comparisons {
  /** Whether walks may have an earlier one as their baseline (openWalk in db/tables/walks.ts says which). The choice is stored with the walk, for a worker that continues it. */
  readonly goesByAnother: boolean;
  /** The hash of a record's text as it is kept with a page that was received; undefined where none is kept. */
  readonly rowHashOf: ((text: Uint8Array) => Buffer) | undefined;
  /** Opens the comparison of a pass with its baseline, if any. `resumes`: the walk has committed pages of the pass already. */
  open(db: Database, list: ListKey, walk: PassOpening): Promise<Comparison>;
}

export interface PassOpening {
  readonly walkId: string;
  readonly endpoint: Endpoint;
  readonly baseline: BaselineWalk | null;
  readonly etagTrust: EtagTrust;
  readonly resumes: boolean;
}

/** Compares every record of every page. Any other comparison must lead to the same mirror. */
class CompareEverything implements Comparison, Comparisons {
  readonly isReusable = false;
  readonly goesByAnother = false;
  readonly rowHashOf = undefined;

  newMemory(): PassMemory {
    return new PassMemory();
  }

  ifNoneMatch(): undefined {}

  notModified(): undefined {}

  async read(_request: string, response: PageResponse, format: PageFormat, idField: string | undefined): Promise<ReceivedPage> {
    return readInFull(response, format, idField);
  }

  agrees(): boolean {
    return true;
  }

  blank(): void {}

  took(): void {}

  hasSameKeys(): boolean {
    return false;
  }

  hasSamePages(): boolean {
    return false;
  }

  close(): void {}

  async open(): Promise<Comparison> {
    return this;
  }
}

export const compareEverything: Comparison & Comparisons = new CompareEverything();
