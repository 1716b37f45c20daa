import type { Database } from '../../src/db/connection/database.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';

export interface ReplayedRow {
  readonly id: string;
  readonly data: string;
  readonly deleted: boolean;
}

/**
 * The rows that a consumer of the change feed has of a list, by id, who holds every change against those before: throws at a change that
 * comes twice, or without the one before it.
 */
export async function replayedRows(db: Database, resource: string, companyId: string): Promise<ReplayedRow[]> {
  await stampChanges(db);
  const { rows } = await db.pool.query<{ id: string; op: string; data: string }>(
    'SELECT id, op, data::text FROM mirror.changes WHERE resource = $1 AND company_id = $2 ORDER BY seq',
    [resource, companyId],
  );
  const copy = new Map<string, ReplayedRow>();
  for (const { id, op, data } of rows) {
    const before = copy.get(id);
    const isDue = before?.deleted ? op === 'restore' : before ? op === 'update' || op === 'delete' : op === 'insert';
    if (!isDue || (op === 'update' && data === before?.data)) throw new Error(`${op} of ${id} behind ${JSON.stringify(before)}`);
    copy.set(id, { id, data, deleted: op === 'delete' });
  }
  return [...copy.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
