import { bytesOf } from '../core/text-slice.js';
import { numberArray, numberArrayInPortions, textArray, textArrayInPortions } from '../db/statements/array-literals.js';
import type { ListKey } from '../db/tables/lists.js';
import { keptText, MOST_KEPT } from '../db/tables/rejected-records.js';
import { joinTexts } from './joined-texts.js';
import { ledgerColumns } from './ledger-entry.js';
import { type PageToWrite, recordsOf } from './page-values.js';

/** A walk that writes, and its state after the write. */
export interface WalkWrite {
  readonly list: ListKey;
  /** The list's epoch under which the walk was opened. */
  readonly epoch: bigint;
  readonly runId: string;
  readonly walkId: string;
  /** Pages that the walk has committed, as the writer knows: fewer in the database mean that it has lost some. */
  readonly pagesBefore: number;
  readonly pass: number;
  /** totalRecords, where it counts the whole walk. */
  readonly total?: number;
  /** The record member that is the id, where these pages are the first to show it. It stays the id, whichever other members records have. */
  readonly idField?: string | undefined;
  /** The walk's state. */
  readonly checkpoint: object;
  readonly received: number;
  readonly duplicates: number;
}

/** The largest number of the column. Some services send a larger one where they do not know their total. */
const MOST_RECORDS = 2 ** 31 - 1;

/** The parameters of the statement that writes the pages, made in portions: a page has up to 200,000 records. */
export function* pageParameters({ list, checkpoint, total, idField, ...write }: WalkWrite, pages: readonly PageToWrite[]) {
  const { records, lookUps } = yield* recordsOf(pages);
  const rejected = pages.flatMap((page) => page.rejected.slice(0, MOST_KEPT).map((record) => ({ page: page.number, ...record })));
  const { bytes, starts, lengths } = yield* joinTexts(records);
  const ids = records.map(({ id }) => id);
  const ledger = ledgerColumns(pages.map((page) => page.ledger));
  return {
    ...list,
    ...write,
    checkpoint: JSON.stringify(checkpoint),
    total: total === undefined ? null : Math.min(total, MOST_RECORDS),
    idField: idField ?? null,
    ids: yield* textArrayInPortions(ids),
    texts: bytes,
    starts: yield* numberArrayInPortions(starts),
    lengths: yield* numberArrayInPortions(lengths),
    lookUps,
    pages: pages.map(({ number }) => number),
    tokenDigests: pages.map(({ tokenDigest }) => tokenDigest ?? null),
    answers: pages.map(({ answer }) => (answer ? JSON.stringify(answer) : null)),
    ...ledger,
    // The ledger's keys are the records' ids where every record is compared, and need not be sent twice.
    keys: isSame(ledger.keys, ids) ? null : yield* textArrayInPortions(ledger.keys),
    rejected: pages.reduce((count, page) => count + page.rejected.length, 0),
    rejectedPages: numberArray(rejected.map(({ page }) => page)),
    rejectedPositions: numberArray(rejected.map(({ position }) => position)),
    rejectedReasons: textArray(rejected.map(({ reason }) => reason)),
    rejectedTexts: textArray(rejected.map((record) => keptText(bytesOf(record)))),
  };
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((each, n) => each === others[n]);
}

type PageParameters = ReturnType<typeof pageParameters> extends Generator<unknown, infer Values> ? Values : never;
export type PageParameter = keyof PageParameters;
