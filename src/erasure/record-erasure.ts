import type { Transaction } from '../db/connection/transaction.js';
import { eraseChanges, findChangedIds, publishErasure } from '../db/tables/change-erasure.js';
import { eraseHeldRows } from '../db/tables/held-rows.js';
import { eraseFromSamples } from '../db/tables/holds.js';
import { dropCheckpointsNaming, eraseFromErrors, eraseFromLedger, findLedgerKeys } from '../db/tables/ledger-erasure.js';
import { type ListKey, subtractRecords } from '../db/tables/lists.js';
import { deleteRejected, findRejected, isCut } from '../db/tables/rejected-records.js';
import { eraseFromReadings } from '../db/tables/second-readings.js';
import { mirrorTable } from '../mirror/mirror-table.js';
import { KeyHashes } from '../pagers/key-hashes.js';
import { idValues, rejectedKey } from '../pagers/read-page.js';
import { newPerson, placeholder } from '../privacy/marks.js';

/** Records of a list. */
export interface RecordsToErase {
  readonly ids: readonly string[];
  /** Members by which rejected records are recognized. Absent: all that the list has rejected goes, since nothing says whose it is. */
  readonly members?: readonly string[];
  /** What the ids of further ones begin with. */
  readonly prefix?: string;
  /** What walks of the list may name in their checkpoints, and errors of theirs in the paths of requests: their parent. */
  readonly parent?: string;
  readonly placeholderOf: (id: string) => string;
}

/**
 * Takes records out of all that is kept of a list: the mirror, the feed, what was rejected, the ledger, checkpoints and holds. Readers of the feed are told
 * of each that it had. Returns how many rows of the mirror went. The caller has locked the list, and fenced whoever walks it.
 */
export async function eraseRecords(tx: Transaction, list: ListKey, records: RecordsToErase): Promise<number> {
  const { ids, prefix, parent, placeholderOf } = records;
  const gone = await deleteRows(tx, list, records);
  const changed = await findChangedIds(tx, list, { ids, prefix });
  const known = new Set([...ids, ...gone.map(({ id }) => id), ...changed]);
  const placeholders = new Map([...known].map((id) => [id, placeholderOf(id)]));
  await eraseChanges(tx, list, placeholders);
  await publishErasure(tx, list, [...new Set([...gone.map(({ id }) => id), ...changed])]);
  await subtractRecords(tx, list, gone.filter(({ living }) => living).length);
  const rejected = await eraseRejected(tx, list, records);
  const keys = [...rejected, ...(prefix === undefined ? [] : await findLedgerKeys(tx, list, { prefix }))];
  for (const key of keys) if (!placeholders.has(key)) placeholders.set(key, placeholderOf(key));
  await eraseFromLedger(tx, list, { placeholders, hashOf: (key) => KeyHashes.of([key]).words });
  await dropCheckpointsNaming(tx, list, parent === undefined ? ids : [parent]);
  await eraseHeldRows(tx, list, { ids: [...known], prefix });
  await eraseFromSamples(tx, list, [...known]);
  await eraseFromReadings(tx, list, { ids: [...known], prefix });
  if (parent !== undefined) await eraseFromErrors(tx, list, parent);
  return gone.length;
}

/** For a record that belongs to a person without being one. */
export function newPlaceholder(): string {
  return placeholder(newPerson());
}

function deleteRows(tx: Transaction, { environment, companyId, resource }: ListKey, { ids, prefix }: RecordsToErase) {
  // As a range, for which there is an index: what follows a slash in the order of bytes is 0.
  const end = prefix === undefined ? null : `${prefix.slice(0, -1)}0`;
  return tx.$queryRawUnsafe<{ id: string; living: boolean }[]>(
    `DELETE FROM ${mirrorTable(resource)} WHERE environment = $1 AND company_id = $2::uuid
       AND (id = ANY($3::text[]) OR (id >= $4::text AND id < $5::text))
     RETURNING id, deleted_at IS NULL AS living`,
    environment,
    companyId,
    ids,
    prefix ?? null,
    end,
  );
}

/** Removes what the list has rejected of these records. Returns the keys by which the ledger has them. */
async function eraseRejected(tx: Transaction, list: ListKey, { ids, members }: RecordsToErase): Promise<string[]> {
  const rows = await findRejected(tx, list);
  const erased = rows.flatMap(({ id, text }) => {
    const source = Buffer.from(text, 'base64');
    // Of a text that was cut nobody can say whose it is. Its key in the ledger is a hash of what is not known any more, and stays.
    const values = members && !isCut(source) && idValues({ source, start: 0, end: source.length }, members);
    // Whose child a rejected record is, is not kept: so it goes with every child of its id.
    const isErased =
      !values || [...values.values()].some((value) => ids.some((each) => each === value || each.endsWith(`/${value}`)));
    return isErased ? [{ id, key: rejectedKey(source) }] : [];
  });
  await deleteRejected(
    tx,
    erased.map(({ id }) => id),
  );
  return members ? erased.map(({ key }) => key) : [];
}
