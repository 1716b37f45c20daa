import type { Endpoint } from '../catalogue/endpoint.js';
import type { TextSlice } from '../core/text-slice.js';
import { eachInPortions, inTurns } from '../core/turns.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction } from '../db/connection/transaction.js';
import { lockList } from '../db/tables/lists.js';
import { insertMarks, type MarkRow } from '../db/tables/marks.js';
import { childPrefix } from '../mirror/mirror-table.js';
import { KeyHashes } from '../pagers/key-hashes.js';
import { idValues } from '../pagers/read-page.js';
import { type ListMarks, placeholder, withPrefix } from '../privacy/marks.js';
import type { OpenWalk } from './open-walk.js';
import type { ReceivedPage } from './received-page.js';

/** A page as it was read, of the list or of one parent's. */
interface ReadPage {
  readonly endpoint: Endpoint;
  readonly parent: string | undefined;
  readonly page: ReceivedPage;
}

/**
 * The page without the records of who was forgotten: neither written nor rejected, and not a byte of their texts is left in the page's memory. They still
 * count: a stand-in is their key, the same on every page, so that pages join and totals agree as before. Marks that a person turns out to lack are kept
 * first: with the catalogue as it is by then, the next walk may know the person by nothing else. Throws `fenced`.
 */
export async function leaveOut(db: Database, walk: OpenWalk, { page, ...read }: ReadPage): Promise<ReceivedPage> {
  const { list, epoch, marks } = walk;
  // A page that is known by its baseline was read without them.
  if (!marks || !('records' in page)) return page;
  const { persons, added } = await inTurns(recognize(walk, marks, { page, ...read }));
  if (added.length > 0) {
    await inTransaction(db, async (tx) => {
      await lockList(tx, list, epoch);
      await insertMarks(tx, list, added);
    });
  }
  return persons.size === 0 ? page : inTurns(without(page, persons, walk));
}

type PageWithRecords = Extract<ReceivedPage, { readonly records: unknown }>;

/** Which persons the records are of, by their positions; looked up in portions. */
function* recognize(
  { idField }: OpenWalk,
  marks: ListMarks,
  { endpoint, parent, page }: ReadPage & { page: PageWithRecords },
): Generator<void, { persons: Map<number, string>; added: MarkRow[] }> {
  const members = [...new Set([...endpoint.id, ...marks.members])];
  const prefix = parent === undefined ? '' : childPrefix(parent);
  const persons = new Map<number, string>();
  const added: MarkRow[] = [];
  const recognizeOne = (record: TextSlice & { readonly position: number }) => {
    const values = withPrefix(idValues(record, members), prefix);
    const person = marks.personOf(values, idField ?? page.idField);
    if (person === undefined) return;
    persons.set(record.position, person);
    added.push(...marks.add(person, values));
  };
  yield* eachInPortions([...page.records, ...page.rejected], recognizeOne, sizeOf);
  return { persons, added };
}

function sizeOf({ start, end }: TextSlice): number {
  return end - start;
}

function* without(
  page: PageWithRecords,
  persons: ReadonlyMap<number, string>,
  { comparison }: OpenWalk,
): Generator<void, ReceivedPage> {
  const isLeft = ({ position }: { readonly position: number }) => !persons.has(position);
  for (const { source, start, end, position } of [...page.records, ...page.rejected]) {
    // A short text may be taken along between two others that are written (mirror/joined-texts.ts).
    if (persons.has(position)) source.fill(' ', start, end);
  }
  const left = { ...page, records: page.records.filter(isLeft), rejected: page.rejected.filter(isLeft) };
  // The keys of a page that has those of the baseline are stand-ins already.
  if (page.ledger.kind !== 'new') return left;
  const { rowHashes } = page.ledger;
  if (rowHashes) comparison.blank(rowHashes, [...persons.keys()]);
  const ids = page.ledger.ids.map((id, n) => (persons.has(n) ? placeholder(persons.get(n)!) : id));
  const keys = yield* KeyHashes.inPortions(ids);
  return { ...left, keys, ledger: { ...page.ledger, ids, keys: keys.words } };
}
