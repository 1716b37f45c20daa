// One record of the mirror as it is stored, living or deleted, and what belongs to it. Reads only.
import type { Database } from '../db/connection/database.js';
import { readByIndex } from '../db/statements/by-index.js';
import { isOf } from '../db/tables/connections.js';
import type { ListKey } from '../db/tables/lists.js';
import { childPrefix, tableOf } from './mirror-table.js';

export interface StoredRecord {
  /** JSON as text, with every digit, in one line. */
  readonly data: string;
  /** This JSON with a line for each member. */
  readonly pretty: string;
  readonly firstSeenAt: Date;
  readonly changedAt: Date;
  readonly deletedAt: Date | null;
}

/** Undefined where the mirror has no such row. */
export async function readStoredRecord(
  { prisma }: Pick<Database, 'prisma'>,
  list: ListKey,
  id: string,
): Promise<StoredRecord | undefined> {
  const [row] = await prisma.$queryRaw<StoredRecord[]>`
    SELECT data::text AS data, jsonb_pretty(data) AS pretty, first_seen_at AS "firstSeenAt", changed_at AS "changedAt", deleted_at AS "deletedAt"
    FROM ${tableOf(list)} WHERE ${isOf(list)} AND id = ${id}`;
  return row;
}

/** Rows of a child list that are of a parent, deleted ones included. */
export async function countChildren(db: Pick<Database, 'prisma'>, child: ListKey, parent: string): Promise<number> {
  const prefix = childPrefix(parent);
  // A range of ids, for which there is an index: what follows a slash in the order of bytes is 0.
  const end = `${prefix.slice(0, -1)}0`;
  const [row] = await readByIndex(
    db,
    (tx) => tx.$queryRaw<[{ count: number }]>`
      SELECT count(*)::float8 AS count FROM ${tableOf(child)} WHERE ${isOf(child)} AND id >= ${prefix} AND id < ${end}`,
  );
  return row.count;
}

const MOST_SIMILAR = 5;

/** Ids of the list that differ from this one in nothing but letter case and the spaces around it. Reads all ids of the list. */
export async function findSimilarIds(db: Pick<Database, 'prisma'>, list: ListKey, id: string): Promise<string[]> {
  const rows = await readByIndex(
    db,
    (tx) => tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM ${tableOf(list)} WHERE ${isOf(list)} AND lower(btrim(id)) = lower(${id.trim()}) AND id <> ${id}
      ORDER BY id LIMIT ${MOST_SIMILAR}::int`,
  );
  return rows.map((row) => row.id);
}
