import type { Transaction } from '../db/connection/transaction.js';
import type { ListKey } from '../db/tables/lists.js';
import { newPerson, placeholder } from '../privacy/suppressions.js';
import { HOLDERS } from './holders.js';
import { addPlaceholders, type RecordErasure, type RecordsToErase } from './record-holders.js';

/** Rows of the mirror that went, and whether anything of the records was found. */
export type Erased = Pick<RecordErasure, 'rows' | 'isFound'>;

/**
 * Takes records out of all that is kept of a list. Readers of the feed are told of each that it had. The caller has
 * locked the list, and fenced the walks of it.
 */
export async function eraseRecords(tx: Transaction, list: ListKey, records: RecordsToErase): Promise<Erased> {
  const erasure: RecordErasure = { ...records, list, placeholders: new Map(), rows: 0, isFound: false };
  addPlaceholders(erasure, records.ids);
  const findersFirst = HOLDERS.toSorted((a, b) => Number(b.findsIds ?? false) - Number(a.findsIds ?? false));
  for (const { byRecord } of findersFirst) await byRecord?.(tx, erasure);
  return { rows: erasure.rows, isFound: erasure.isFound };
}

/** For a record that belongs to a person without being one. */
export function newPlaceholder(): string {
  return placeholder(newPerson());
}
