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
import { isRead, type ReceivedPage } from './received-page.js';

/**
 * The page without the records of forgotten persons: they are neither written nor rejected, and not a byte of their texts is left in the page's memory. They still
 * count: their key is a placeholder, the same on every page, so that pages join and totals agree as before. Suppressions that a person turns out to lack are stored
 * first: under a changed catalogue, the next walk may know the person by nothing else. Throws `fenced`.
 */
export async function leaveOut(
  db: Database,
  walk: OpenWalk,
  endpoint: Endpoint,
  parent: string | undefined,
  page: ReceivedPage,
): Promise<ReceivedPage> {
  const { list, epoch, suppressions } = walk;
  // The records of a page that was not read are the baseline's, without forgotten persons.
  if (!suppressions || !isRead(page)) return page;
  const { persons, added } = await inTurns(recognize(walk, suppressions, endpoint, parent, page));
  if (added.length > 0) {
    await inTransaction(db, async (tx) => {
      await lockList(tx, list, epoch);
      await insertSuppressions(tx, list, added);
    });
  }
  return persons.size === 0 ? page : inTurns(without(page, persons, walk));
}

/** Finds the persons of the records, by position, in portions. */
function* recognize(
  { idField }: OpenWalk,
  suppressions: ListSuppressions,
  endpoint: Endpoint,
  parent: string | undefined,
  page: ReceivedPage,
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
  page: ReceivedPage,
  persons: ReadonlyMap<number, string>,
  { comparison }: OpenWalk,
): Generator<void, ReceivedPage> {
  const isLeft = ({ position }: { readonly position: number }) => !persons.has(position);
  for (const { source, start, end, position } of [...page.records, ...page.rejected]) {
    // A short text may be taken along between two others that are written (mirror/joined-texts.ts).
    if (persons.has(position)) source.fill(' ', start, end);
  }
  const left = { ...page, records: page.records.filter(isLeft), rejected: page.rejected.filter(isLeft) };
  // A page with the keys of the baseline has placeholders already.
  if (page.ledger.kind !== 'new') return left;
  const { rowHashes } = page.ledger;
  if (rowHashes) comparison.blank(rowHashes, [...persons.keys()]);
  const ids = page.ledger.ids.map((id, n) => (persons.has(n) ? placeholder(persons.get(n)!) : id));
  const keys = yield* KeyHashes.inPortions(ids);
  return { ...left, keys, ledger: { ...page.ledger, ids, keys: keys.words } };
}
