import { isUsableId, type ReadPage, type ReceivedRecord, type RejectedRecord } from '../pagers/envelope.js';
import { KeyHashes } from '../pagers/hashes.js';

/**
 * The page with ids that are unique over all parents: `<parent's id>/<id>`, the parent's encoded as in a path, so that no
 * two pairs give the same id. Two parents may well have a child 1 each, and one row would then hide the other.
 */
export function childPage(parent: string, page: ReadPage): ReadPage {
  const prefix = `${encodeURIComponent(parent)}/`;
  const isTooLong = ({ id }: ReceivedRecord) => !isUsableId(prefix + id);
  const unusable: RejectedRecord[] = page.records
    .filter(isTooLong)
    .map(({ source, start, end, position }) => ({ source, start, end, position, reason: 'unusable_id' }));
  const ids = page.ids.map((key) => prefix + key);
  return {
    ...page,
    ids,
    keys: KeyHashes.of(ids),
    records: page.records.filter((record) => !isTooLong(record)).map((record) => ({ ...record, id: prefix + record.id })),
    rejected: [...page.rejected, ...unusable],
  };
}
