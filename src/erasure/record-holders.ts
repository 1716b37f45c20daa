import type { Transaction } from '../db/connection/transaction.js';
import { eraseFromLedger, findLedgerKeys } from '../db/tables/ledger-erasure.js';
import type { ListKey } from '../db/tables/lists.js';
import { deleteRejected, findRejected, isCut } from '../db/tables/rejected-records.js';
import { KeyHashes } from '../pagers/key-hashes.js';
import { idValues, rejectedKey } from '../pagers/read-page.js';

/** Records of a list. */
export interface RecordsToErase {
  readonly ids: readonly string[];
  /** Members that identify rejected records. Absent: all rejects of the list are deleted, since nothing says whose they are. */
  readonly members?: readonly string[];
  /** The beginning of the ids of further records, which ends with a slash. */
  readonly prefix?: string;
  /** The parent of these records, which checkpoints of the list and paths in its errors may name. */
  readonly parent?: string;
  readonly placeholderOf: (id: string) => string;
}

/** Records that are being erased: each holder adds what it finds. */
export interface RecordErasure extends RecordsToErase {
  readonly list: ListKey;
  /** The ids and ledger keys that are known by now, each with what replaces it. */
  readonly placeholders: Map<string, string>;
  /** Rows of the mirror that went. */
  rows: number;
  /** Whether mirror, feed or rejected records had any of these records. */
  isFound: boolean;
}

export function addPlaceholders({ placeholders, placeholderOf }: RecordErasure, keys: readonly string[]): void {
  for (const key of keys) if (!placeholders.has(key)) placeholders.set(key, placeholderOf(key));
}

/** Removes what the list has rejected of these records. */
export async function eraseRejected(tx: Transaction, erasure: RecordErasure): Promise<void> {
  const { list, ids, members } = erasure;
  const erased = (await findRejected(tx, list)).flatMap(({ id, text }) => {
    const source = Buffer.from(text, 'base64');
    // A text that was cut does not tell whose it is. Its key in the ledger is a hash of a text that is not known any more, and stays.
    const values = members && !isCut(source) && idValues({ source, start: 0, end: source.length }, members);
    // A rejected record does not tell whose child it is, so it goes with every child of its id.
    const isErased =
      !values || [...values.values()].some((value) => ids.some((each) => each === value || each.endsWith(`/${value}`)));
    return isErased ? [{ id, key: rejectedKey(source) }] : [];
  });
  await deleteRejected(tx, erased);
  // Rejects that belong to no known record are deleted with any record, so they do not show that this one was known.
  if (members && erased.length > 0) erasure.isFound = true;
  const keys = erased.map(({ key }) => key);
  if (members) addPlaceholders(erasure, keys);
}

/** Replaces the records' keys in the ledger. */
export async function eraseLedgerKeys(tx: Transaction, erasure: RecordErasure): Promise<void> {
  const { list, prefix, placeholders } = erasure;
  if (prefix !== undefined) addPlaceholders(erasure, await findLedgerKeys(tx, list, { prefix }));
  await eraseFromLedger(tx, list, { placeholders, hashOf: (key) => KeyHashes.of([key]).words });
}
