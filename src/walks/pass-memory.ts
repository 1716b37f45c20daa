import { createHash } from 'node:crypto';
import type { KeyHashes, PageHashes } from '../pagers/hashes.js';
import type { PassMemory } from '../pagers/pager.js';
import { KeyTable, type Receipt } from './key-table.js';
import type { Trail, TrailPage } from './trail.js';

/**
 * The records and page tokens that one pass has received. As long as it receives the pages of its trail, one after the other, it
 * only counts them; keys are looked at once it has left the trail. Of a page that comes next, `isOnTrail` is asked first.
 */
export class ReceivedKeys implements PassMemory {
  readonly #table = new KeyTable();
  readonly #tokens = new Set<string>();
  #isSteady = true;
  /** Undefined once left. */
  #trail: Trail | undefined;
  /** The pages of the trail that came, with the texts that they came with. */
  #followed: PageHashes[] = [];
  #followedSize = 0;

  constructor(trail?: Trail) {
    this.#trail = trail;
  }

  get size(): number {
    return this.#trail ? this.#followedSize : this.#table.size;
  }

  /** The same for the same set of keys, in whatever order they came. Once the last page has come. */
  get digest(): string {
    this.#nextOnTrail(undefined);
    return this.#trail?.keysDigest ?? this.#table.digest;
  }

  /** Whether every record that came more than once came with the same text. */
  get isSteady(): boolean {
    return this.#isSteady;
  }

  /** Whether the trail goes on with this page, or, without one, ends here. If not, it must be left. */
  isOnTrail(page: PageHashes | undefined): boolean {
    return this.#trail !== undefined && this.#trail.pages[this.#followed.length]?.keys === page?.keys;
  }

  /** From here on keys are looked at. All pages that came must have their hashes. */
  leaveTrail(): void {
    this.#trail = undefined;
    for (const page of this.#followed) for (let n = 0; n < page.keys.length; n += 1) this.#table.add(page, n);
    this.#followed = [];
  }

  /** Adds the next page of the trail: how many of its records, from the first, came before, 0 or 1. Undefined off the trail. */
  follow(page: PageHashes): number | undefined {
    const next = this.#nextOnTrail(page.keys);
    if (!next) return undefined;
    this.agreesWith(page);
    this.#followed.push({ keys: page.keys, texts: page.texts });
    this.#followedSize += page.keys.length - next.joined;
    return next.joined;
  }

  /** Adds record `n` of a page off the trail. */
  add(page: PageHashes, n: number): Receipt {
    const receipt = this.#table.add(page, n);
    if (receipt === 'differs') this.#isSteady = false;
    return receipt;
  }

  hasAny(keys: KeyHashes): boolean {
    const next = this.#nextOnTrail(keys);
    if (next) return next.joined > 0;
    for (let n = 0; n < keys.length; n += 1) if (this.#table.has(keys, n)) return true;
    return false;
  }

  hasAll(keys: KeyHashes): boolean {
    const next = this.#nextOnTrail(keys);
    if (next) return next.joined === keys.length;
    for (let n = 0; n < keys.length; n += 1) if (!this.#table.has(keys, n)) return false;
    return true;
  }

  hasToken(token: string): boolean {
    return this.#tokens.has(digestToken(token));
  }

  /** Whether every record so far came with one text, also if this page comes next. */
  agreesWith(page: PageHashes): boolean {
    const next = this.#nextOnTrail(page.keys);
    if (next) this.#isSteady &&= this.#joinsSteadily(page, next);
    else for (let n = 0; n < page.keys.length && this.#isSteady; n += 1) this.#isSteady = this.#table.agreesWith(page, n);
    return this.#isSteady;
  }

  /** How many records there may be in all. Nobody has proved it: it only says how far to grow. */
  expect(records: number): void {
    this.#table.expect(records);
  }

  addTokenDigest(digest: string): void {
    this.#tokens.add(digest);
  }

  /** The page of the trail that has these keys, or, without any, its end: undefined, as it is off the trail. */
  #nextOnTrail(keys: KeyHashes | undefined): TrailPage | undefined {
    const next = this.#trail?.pages[this.#followed.length];
    if (this.#trail && next?.keys !== keys) throw new Error('This is not on the trail.');
    return next;
  }

  /** Whether the record that joins the page to the one before came twice with one text, as it does where neither has changed. */
  #joinsSteadily({ texts }: PageHashes, next: TrailPage): boolean {
    if (next.joined === 0) return true;
    const before = this.#followed.at(-1)!;
    const areUnchanged = texts === next.texts && before.texts === this.#trail!.pages[this.#followed.length - 1]!.texts;
    return areUnchanged || before.texts.markOf(before.texts.length - 1) === texts.markOf(0);
  }
}

/** What the ledger keeps of a page token: enough to see it again, short whatever the token's length. */
export function digestToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url').slice(0, 16);
}
