import type { TextSlice } from '../core/text-slice.js';
import { eachInPortions } from '../core/turns.js';
import type { LedgerEntry } from './ledger-entry.js';

interface WrittenRecord extends TextSlice {
  readonly id: string;
  /** Index in its page. */
  readonly position: number;
}

/** A page of a walk, and its entry in the ledger. */
export interface PageToWrite {
  /** Number of the page within its pass, from 0. */
  readonly number: number;
  /** Digest of the token of the next page, for lists whose pages name each other. */
  readonly tokenDigest?: string | undefined;
  /** All records from this position are new to the mirror. */
  readonly newFrom?: number | undefined;
  /** The records to compare: their ids, and their JSON texts as received. */
  readonly records: readonly WrittenRecord[];
  /** The records that cannot be kept, and why. */
  readonly rejected: readonly (TextSlice & { readonly position: number; readonly reason: string })[];
  readonly ledger: LedgerEntry;
  /** How to ask whether the page has changed, where the service allows it. */
  readonly answer?: object | undefined;
}

/** The records, each id once and with its last text, and how many of them, from the first, may be in the mirror. Made in portions. */
export function* recordsOf(
  pages: readonly PageToWrite[],
): Generator<void, { readonly records: readonly WrittenRecord[]; readonly lookUps: number }> {
  const records: (WrittenRecord | undefined)[] = [];
  const mayStand: boolean[] = [];
  const places = new Map<string, number>();
  for (const { newFrom = Infinity, ...page } of pages) {
    const add = (record: WrittenRecord) => {
      const earlier = places.get(record.id);
      mayStand.push(record.position < newFrom && (earlier === undefined || mayStand[earlier]!));
      if (earlier !== undefined) {
        records[earlier] = undefined;
        mayStand[earlier] = false;
      }
      places.set(record.id, records.push(record) - 1);
    };
    yield* eachInPortions(page.records, add);
  }
  const lookUps = mayStand.lastIndexOf(true) + 1;
  const kept = records.filter((record) => record !== undefined);
  return { records: kept, lookUps: Math.min(lookUps, kept.length) };
}
