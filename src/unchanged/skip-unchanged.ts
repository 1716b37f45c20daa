import type { Endpoint } from '../catalogue/endpoint.js';
import { inTurns } from '../core/turns.js';
import { hashBytes } from '../core/xxh64.js';
import type { Database } from '../db/connection/database.js';
import { ETAGS, type EtagTrust } from '../db/tables/etag-trust.js';
import { lacksRowHashes, readRecentPages } from '../db/tables/ledger.js';
import type { ListKey } from '../db/tables/lists.js';
import { KeyHashes } from '../pagers/key-hashes.js';
import { envelopeOf } from '../pagers/page-envelope.js';
import { type PageFormat, type PageResponse, readPage } from '../pagers/read-page.js';
import { pagerFor } from '../pagers/registry.js';
import { type Comparison, type Comparisons, compareEverything, type PassOpening } from '../walks/comparison.js';
import { holdsKeyTwice, sizeOfDigest } from '../walks/key-table.js';
import { PassMemory } from '../walks/pass-memory.js';
import { isRead, type ReceivedPage } from '../walks/received-page.js';
import { Baseline, type BaselinePage } from './baseline.js';
import { FollowedMemory, isSequence } from './followed-memory.js';
import { RECENT_PAGES, type RecentPage, RecentPages } from './recent-pages.js';
import { type RecognizedPage, recognize } from './recognize.js';
import { blankRows, hashRows, rowHashOf } from './row-hashes.js';

/** Compares with the last verified walk of the list (README.md). */
export const skipUnchanged: Comparisons = {
  goesByAnother: true,
  rowHashOf,

  async open(db: Database, list: ListKey, { walkId, endpoint, baseline, etagTrust, resumes }: PassOpening): Promise<Comparison> {
    // The pass had given the comparison up before it was interrupted.
    if (resumes && (await lacksRowHashes(db, walkId))) return compareEverything;
    const pages = baseline === null ? new Baseline([], undefined, noRowHashes) : await Baseline.read(db, list, baseline);
    // Services make their tags of the body alone: the next page and the total in the headers may have changed under a tag that has not.
    const comparison = new SkipUnchanged(pages, endpoint, pagerFor(endpoint).readsHeaders ? 'none' : etagTrust);
    if (resumes) await comparison.remember(readRecentPages(db, walkId, RECENT_PAGES));
    return comparison;
  },
};

async function* noRowHashes(): AsyncGenerator<Uint32Array> {}

/** One pass that is compared with a baseline, and that the next walk can take as its own baseline. */
export class SkipUnchanged implements Comparison {
  readonly isReusable = true;
  readonly #baseline: Baseline;
  /** ETags that are kept; undefined where none is. No specification says what 304 means for methods other than GET. */
  #etags: RegExp | undefined;
  readonly #asksByEtag: boolean;
  /** Hashes of the texts that came with a tag in this pass. */
  readonly #tagged = new Map<string, bigint>();
  readonly #recent = new RecentPages();
  /** Pages taken, as long as each was the baseline's in its place; undefined once one was not. */
  #inPlace: number | undefined = 0;

  constructor(baseline: Baseline, { method, etag }: Pick<Endpoint, 'method' | 'etag'>, trust: EtagTrust) {
    this.#baseline = baseline;
    this.#asksByEtag = trust === 'ask';
    this.#etags = method === 'GET' && etag !== 'ignore' && trust !== 'none' ? ETAGS[etag] : undefined;
  }

  /** Takes over the pages that an interrupted pass has received last; the newest first. */
  async remember(pages: ReturnType<typeof readRecentPages>): Promise<void> {
    this.#inPlace = undefined;
    const oldestFirst: RecentPage[] = [];
    for await (const { snapshotId, keys, rowHashes } of pages) {
      const known = this.#baseline.ofSnapshot(snapshotId);
      if (!known) await this.#baseline.readRowHashes();
      oldestFirst.unshift({ keys: new KeyHashes(keys), rowHashes: () => (known ? this.#rowHashesOf(snapshotId) : rowHashes) });
    }
    for (const page of oldestFirst) this.#recent.add(page);
  }

  newMemory(): PassMemory {
    const { keysDigest } = this.#baseline;
    const pages = this.#baseline.pages.map(({ keys }) => keys);
    const isFollowed = keysDigest !== undefined && pages.length > 0 && isSequence(pages, sizeOfDigest(keysDigest));
    return isFollowed ? new FollowedMemory(pages, keysDigest) : new PassMemory();
  }

  ifNoneMatch(request: string): string | undefined {
    const etag = this.#baseline.answerTo(request)?.answer?.etag;
    return this.#asksByEtag && etag !== undefined && this.#etags?.test(etag) ? etag : undefined;
  }

  notModified(request: string, etag: string | undefined): ReceivedPage | undefined {
    const page = this.#baseline.answerTo(request);
    const answer = page?.answer;
    if (!answer || !this.#etags || (etag !== undefined && opaqueTag(etag) !== opaqueTag(answer.etag))) return undefined;
    return { kind: 'not-modified', ...envelopeOf(answer), answer, ...sameAs(page) };
  }

  async read(request: string, response: PageResponse, format: PageFormat, idField: string | undefined): Promise<ReceivedPage> {
    const etag = response.headers['etag'];
    const isTagged = etag !== undefined && this.#etags?.test(etag) === true;
    const hash = isTagged && ETAGS.strong.test(etag) ? hashBytes(response.bytes) : undefined;
    const known = idField === undefined ? undefined : await recognize(this.#baseline, response, format, idField);
    const page: ReceivedPage = known ? recognized(known) : await this.#readInFull(response, format, idField);
    // The totals of a list that contradicts itself were left unread, and must not be confirmed by an ETag.
    if (!isTagged || format.ignoreTotals) return page;
    if (hash !== undefined && this.#isFalse(request, etag, hash, page)) {
      this.#etags = undefined;
      return { ...page, hasFalseEtag: true };
    }
    return { answer: { request, etag, ...envelopeOf(page) }, ...page };
  }

  /** Whether the tag of a page that was sent came with another text before, on a page of this pass or as the baseline's answer to the same request. */
  #isFalse(request: string, etag: string, hash: bigint, page: ReceivedPage): boolean {
    const before = this.#tagged.get(etag);
    this.#tagged.set(etag, hash);
    if (before !== undefined && before !== hash) return true;
    const earlier = this.#baseline.answerTo(request);
    if (earlier?.answer?.etag !== etag) return false;
    const hasSameRecords = isRead(page)
      ? page.records.length === 0 && page.keys.equals(earlier.keys)
      : page.keys === earlier.keys;
    const { total, nextToken, hasNext } = earlier.answer;
    return !hasSameRecords || page.total !== total || page.nextToken !== nextToken || page.hasNext !== hasNext;
  }

  agrees(page: ReceivedPage, repeats: readonly number[]): boolean {
    // Where a page holds a record twice, it is not known which text of it is written.
    if (isRead(page) && holdsKeyTwice(page.keys)) return false;
    if (repeats.length === 0) return true;
    const recent = this.#recentOf(page);
    return repeats.every((n) => this.#recent.hasSame(recent, n));
  }

  blank(rowHashes: Uint32Array, positions: readonly number[]): void {
    blankRows(rowHashes, positions);
  }

  took(page: ReceivedPage): void {
    this.#recent.add(this.#recentOf(page));
    if (this.#inPlace !== undefined)
      this.#inPlace = this.#baseline.pages[this.#inPlace]?.keys === page.keys ? this.#inPlace + 1 : undefined;
  }

  hasSameKeys(digest: string): boolean {
    return this.#baseline.keysDigest === digest;
  }

  hasSamePages(): boolean {
    return this.#baseline.pages.length > 0 && this.#inPlace === this.#baseline.pages.length;
  }

  close(): void {
    this.#baseline.free();
  }

  /** Reads every record, and leaves out those whose text the baseline had. */
  async #readInFull(response: PageResponse, format: PageFormat, idField: string | undefined): Promise<ReceivedPage> {
    const { bytes, array, ids, keys, records, ...page } = await inTurns(readPage(response, format, idField));
    const rowHashes = await inTurns(hashRows(bytes, array.records));
    const ledger = { kind: 'new', ids, keys: keys.words, rowHashes } as const;
    await this.#baseline.readRowHashes();
    const unknown = await inTurns(this.#baseline.unknownOf(records, rowHashes));
    const kind = unknown.length < records.length ? 'partial' : 'full';
    return { ...page, kind, keys, ledger, records: unknown };
  }

  #recentOf({ keys, ledger }: ReceivedPage): RecentPage {
    return { keys, rowHashes: () => (ledger.kind === 'same' ? this.#rowHashesOf(ledger.snapshotId) : ledger.rowHashes) };
  }

  /** The row hashes of a page of the baseline; undefined until they have been needed. */
  #rowHashesOf(snapshotId: bigint): Uint32Array | undefined {
    const page = this.#baseline.ofSnapshot(snapshotId);
    return page && this.#baseline.rowHashesOf(page);
  }
}

/** A page with the records of a page of the baseline. */
function recognized({ page, changed, ...envelope }: RecognizedPage): ReceivedPage {
  if (!changed) return { kind: 'unchanged', ...sameAs(page), ...envelope };
  const { records, rowHashes } = changed;
  const ledger = { kind: 'same-keys', keysId: page.keysId, rowHashes } as const;
  return { ...sameAs(page), kind: 'partial', ledger, ...envelope, records };
}

function sameAs({ snapshotId, keys }: BaselinePage) {
  return { count: keys.length, keys, ledger: { kind: 'same', snapshotId }, records: [], rejected: [] } as const;
}

/** The part of an ETag that is equal for equal pages (RFC 9111, 4.3.4). */
function opaqueTag(etag: string): string {
  return etag.replace(/^W\//, '');
}
