import type { TextSlice } from '../core/text-slice.js';

interface WrittenRecord extends TextSlice {
  readonly id: string;
  /** Index in its page. */
  readonly position: number;
}

/** A page as the walk hands it over, and what the ledger says of it. */
export interface PageToWrite {
  /** Number of the page within its pass, from 0. */
  readonly number: number;
  /** Digest of the token that leads on, for token lists. */
  readonly tokenDigest?: string;
  /** Position from which on all of its records are new to the mirror. */
  readonly newFrom?: number | undefined;
  readonly page: {
    /** The records to compare: their ids, and their JSON texts as received. */
    readonly records: readonly WrittenRecord[];
    /** Those that cannot be kept, and why. */
    readonly rejected: readonly (TextSlice & { readonly position: number; readonly reason: string })[];
    /** Keys of all records of the page, in the order received; or the content of an earlier page that has the same. */
    readonly ids: readonly string[] | { readonly id: bigint };
    /** The content of an earlier page that is the same in everything. */
    readonly content?: { readonly id: bigint };
    /** Hashes of the keys, and of the records' texts. */
    readonly keys: { readonly words: Uint32Array };
    readonly texts: { readonly words: Uint32Array };
    /** Those of the texts' hashes that differ from the content `ids`, where the ledger is to keep no others. */
    readonly changes?: Uint32Array;
    /** How to ask whether the page is as it was, where the service lets us. */
    readonly answer?: object | undefined;
  };
}

/**
 * The keys of all pages that have some of their own, and where among them those of each page stand: from 1, the last one included.
 * A key with which one page ends and the next begins stands there once.
 */
export function idsOf(pages: readonly PageToWrite[]) {
  const ownIds: string[] = [];
  const spans = pages.map(({ page: { ids } }) => {
    if ('id' in ids) return { first: 1, last: 0 };
    const overlap = ownIds.length > 0 && ids[0] === ownIds.at(-1) ? 1 : 0;
    const first = ownIds.length + 1 - overlap;
    for (let n = overlap; n < ids.length; n += 1) ownIds.push(ids[n]!);
    return { first, last: ownIds.length };
  });
  return { ownIds, spans };
}

/** Where bytes stand, the first one at 1. */
interface Place {
  readonly at: number;
  /** null: there are none. */
  readonly size: number | null;
}

/**
 * The hashes that the pages have of their own, in one value: an array of values would be sent as hexadecimal digits. And where in it
 * those of each page stand.
 */
export function hashesOf(pages: readonly PageToWrite[]) {
  const parts: Buffer[] = [];
  let next = 1;
  const place = (words: Uint32Array | undefined): Place => {
    const at = next;
    if (!words) return { at, size: null };
    parts.push(asBuffer(words));
    next += words.byteLength;
    return { at, size: words.byteLength };
  };
  const keys = pages.map(({ page }) => place('id' in page.ids ? undefined : page.keys.words));
  const texts = pages.map(({ page }) => place(page.content ? undefined : (page.changes ?? page.texts.words)));
  return { hashes: Buffer.concat(parts), keys, texts };
}

export function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((each, n) => each === others[n]);
}

/** The records, each id once and with its last text, and how many of them, from the first, may stand in the mirror. */
export function recordsOf(pages: readonly PageToWrite[]) {
  const records: (WrittenRecord | undefined)[] = [];
  const mayStand: boolean[] = [];
  const places = new Map<string, number>();
  for (const { page, newFrom = Infinity } of pages) {
    for (const record of page.records) {
      const earlier = places.get(record.id);
      mayStand.push(record.position < newFrom && (earlier === undefined || mayStand[earlier]!));
      if (earlier !== undefined) {
        records[earlier] = undefined;
        mayStand[earlier] = false;
      }
      places.set(record.id, records.push(record) - 1);
    }
  }
  const lookUps = mayStand.lastIndexOf(true) + 1;
  const kept = records.filter((record) => record !== undefined);
  return { records: kept, lookUps: Math.min(lookUps, kept.length) };
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint32Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
