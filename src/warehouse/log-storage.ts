import type { Catalogue } from '../catalogue/endpoint.js';
import type { Transaction } from '../db/connection/transaction.js';
import { addArrays, readArrays, removeArrays, takenViewNames } from '../db/tables/schema-arrays.js';
import { askForRebuild, readKeys, recordKeysLeftOut, removeKeys, writeKeys } from '../db/tables/schema-columns.js';
import type { Sighting } from '../db/tables/schema-sightings.js';
import { ResourceLog } from './resource-log.js';

/** The logs of these resources, in this order, with room for what was sighted. The caller has locked the log. */
export async function openLogs(
  tx: Transaction,
  catalogue: Catalogue,
  resources: readonly string[],
  sightings: readonly Sighting[],
): Promise<ResourceLog[]> {
  const keys = await readKeys(tx, resources);
  const arrays = await readArrays(tx, resources);
  const taken = sightings.some(({ view }) => view === null) ? await takenViewNames(tx) : [];
  return resources.map(
    (resource) =>
      new ResourceLog({
        resource,
        keys: keys.filter((key) => key.resource === resource),
        arrays: arrays.filter((array) => array.resource === resource),
        taken,
        endpoint: catalogue.get(resource),
      }),
  );
}

/** Writes what the log of a resource has learned. */
export async function writeLog(tx: Transaction, resource: string, columns: ResourceLog): Promise<void> {
  await addArrays(tx, columns.newArrays);
  await removeKeys(tx, columns.removed);
  await removeArrays(tx, columns.removedArrays);
  await writeKeys(tx, columns.changed);
  if (columns.wantsRebuild) await askForRebuild(tx, [resource]);
  if (columns.hasLeftOut) await recordKeysLeftOut(tx, { resource });
}
