import { childPrefix } from '../mirror/mirror-table.js';
import { KeyHashes } from '../pagers/key-hashes.js';
import { isUsableId, type ReceivedRecord, type RejectedRecord } from '../pagers/read-page.js';
import type { ReceivedPage } from './received-page.js';

/**
 * The page with ids that are unique over all parents: `<parent's id>/<id>`, the parent's encoded as in a path, so that no
 * two pairs give the same id. Two parents may well have a child 1 each, and one row would then hide the other. In portions.
 */
export function* childPage(parent: string, page: ReceivedPage): Generator<void, ReceivedPage> {
  // Child lists are never compared by a baseline: every page of theirs is read in full.
  if (page.ledger.kind !== 'new') throw new TypeError('a page of a child list was not read in full');
  const prefix = childPrefix(parent);
  const isTooLong = ({ id }: ReceivedRecord) => !isUsableId(prefix + id);
  const unusable: RejectedRecord[] = page.records
    .filter(isTooLong)
    .map(({ source, start, end, position }) => ({ source, start, end, position, reason: 'unusable_id' }));
  const ids = page.ledger.ids.map((key) => prefix + key);
  const keys = yield* KeyHashes.inPortions(ids);
  return {
    ...page,
    keys,
    ledger: { kind: 'new', ids, keys: keys.words },
    records: page.records.filter((record) => !isTooLong(record)).map((record) => ({ ...record, id: prefix + record.id })),
    rejected: [...page.rejected, ...unusable],
  };
}
