import { Readable } from 'node:stream';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import type { HoldRow } from '../../db/tables/holds.js';
import { readRowsOfHold } from '../../mirror/holds.js';
import { labelKey, labelRecords } from '../../mirror/record-labels.js';
import { keyOf } from '../plumbing/audit.js';
import { type Caller, mayAct } from '../plumbing/caller.js';
import { csvOf } from '../plumbing/csv.js';
import { DECIDES } from './hold-model.js';

export const RowOfHold = z
  .object({
    id: z.string(),
    label: z.string().optional().describe('For callers who may decide: a label from the record, for example its name.'),
  })
  .meta({ id: 'RowOfHold', description: 'A row that would be marked deleted.' });
export type RowOfHoldModel = z.output<typeof RowOfHold>;

/** The form of an id in a cursor: PostgreSQL refuses NUL. */
export const ID_OF_ROW = /^[^\0]+$/;

/** Rows of one read for the file. Each read goes through the whole list, so it takes many rows. */
const PORTION = 5_000;

/** Labels may name people, so only a caller who may decide gets them. */
export async function labelRows(db: Database, hold: HoldRow, ids: readonly string[], caller: Caller): Promise<RowOfHoldModel[]> {
  if (!mayAct(caller, DECIDES)) return ids.map((id) => ({ id }));
  const recordOf = (id: string) => ({ ...keyOf(hold), resource: hold.resource, id });
  const labels = await labelRecords(db, ids.map(recordOf));
  return ids.map((id) => {
    const label = labels.get(labelKey(recordOf(id)));
    return { id, ...(label !== undefined && { label }) };
  });
}

/**
 * All rows as CSV. Throws what readRowsOfHold throws, before the first line; a hold that is decided in between ends the stream with an error, so
 * that no reader takes a part for the whole.
 */
export async function holdRowsCsv(db: Database, id: string, caller: Caller): Promise<Readable> {
  const columns = mayAct(caller, DECIDES) ? ['id', 'label'] : ['id'];
  const read = (after: string | undefined) => readRowsOfHold(db, { id, after, limit: PORTION });
  const textOf = async ({ hold, ids }: Awaited<ReturnType<typeof read>>, header: boolean) =>
    csvOf(await labelRows(db, hold, ids, caller), columns, { header });
  const first = await read(undefined);
  async function* lines(): AsyncGenerator<string> {
    yield await textOf(first, true);
    for (let part = first; part.ids.length === PORTION; ) {
      part = await read(part.ids.at(-1));
      if (part.ids.length > 0) yield await textOf(part, false);
    }
  }
  return Readable.from(lines());
}
