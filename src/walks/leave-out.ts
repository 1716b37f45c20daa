import type { Endpoint } from '../catalogue/endpoint.js';
import type { TextSlice } from '../core/text-slice.js';
import { eachInPortions, inTurns } from '../core/turns.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction } from '../db/connection/transaction.js';
import { lockList } from '../db/tables/lists.js';
import { insertSuppressions, type SuppressionRow } from '../db/tables/marks.js';
import { childPrefix } from '../mirror/mirror-table.js';
import { KeyHashes } from '../pagers/key-hashes.js';
import { idValues } from '../pagers/read-page.js';
import { type ListSuppressions, placeholder, withPrefix } from '../privacy/suppressions.js';
import type { OpenWalk } from './open-walk.js';
import type { ReceivedPage } from './received-page.js';

/** A page as it was read, of the list or of one parent's. */
interface ReadPage {
  readonly endpoint: Endpoint;
  readonly parent: string | undefined;
  readonly page: ReceivedPage;
}

/**
 * The page without the forgotten records: they are neither written nor rejected, and not a byte of their texts is left in the page's memory. They still
 * count: a placeholder is their key, the same on every page, so that pages join and totals agree as before. Suppressions that a person turns out to lack
 * are stored first: with the catalogue as it is by then, the next walk may know the person by nothing else. Throws `fenced`.
 */
export async function leaveOut(db: Database, walk: OpenWalk, { page, ...read }: ReadPage): Promise<ReceivedPage> {
  const { list, epoch, suppressions } = walk;
  // A page that is known by its baseline was read without them.
  if (!suppressions || !('records' in page)) return page;
  const { persons, added } = await inTurns(recognize(walk, suppressions, { page, ...read }));
  if (added.length > 0) {
    await inTransaction(db, async (tx) => {
      await lockList(tx, list, epoch);
      await insertSuppressions(tx, list, added);
    });
  }
  return persons.size === 0 ? page : inTurns(without(page, persons, walk));
}

type PageWithRecords = Extract<ReceivedPage, { readonly records: unknown }>;

/** Which persons the records are of, by their positions; looked up in portions. */
function* recognize(
  { idField }: OpenWalk,
  suppressions: ListSuppressions,
  { endpoint, parent, page }: ReadPage & { page: PageWithRecords },
): Generator<void, { persons: Map<number, string>; added: SuppressionRow[] }> {
  const members = [...new Set([...endpoint.id, ...suppressions.members])];
  const prefix = parent === undefined ? '' : childPrefix(parent);
  const persons = new Map<number, string>();
  const added: SuppressionRow[] = [];
  const recognizeOne = (record: TextSlice & { readonly position: number }) => {
    const values = withPrefix(idValues(record, members), prefix);
    const person = suppressions.personOf(values, idField ?? page.idField);
    if (person === undefined) return;
    persons.set(record.position, person);
    added.push(...suppressions.add(person, values));
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
  // The keys of a page that has those of the baseline are placeholders already.
  if (page.ledger.kind !== 'new') return left;
  const { rowHashes } = page.ledger;
  if (rowHashes) comparison.blank(rowHashes, [...persons.keys()]);
  const ids = page.ledger.ids.map((id, n) => (persons.has(n) ? placeholder(persons.get(n)!) : id));
  const keys = yield* KeyHashes.inPortions(ids);
  return { ...left, keys, ledger: { ...page.ledger, ids, keys: keys.words } };
}
