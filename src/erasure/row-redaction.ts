import type { Transaction } from '../db/connection/transaction.js';
import { purgeChanges } from '../db/tables/change-batches.js';
import { appendToFeed } from '../db/tables/feed-append.js';
import type { ListKey } from '../db/tables/lists.js';
import { Prisma } from '../generated/prisma/client.js';
import { mirrorTable } from '../mirror/mirror-table.js';
import { redactRecord } from '../privacy/redact.js';
import type { Privacy } from '../privacy/rules.js';

const ROWS_AT_ONCE = 500;

/**
 * Redacts the rows of a list, deleted ones included, and takes the data out of their changes. Readers of the feed learn of each living row that has
 * changed by an update. Returns how many rows have changed.
 */
export async function redactRows(tx: Transaction, list: ListKey, rules: Privacy): Promise<number> {
  const { environment, companyId, resource } = list;
  const select = `
    SELECT id, data::text AS text FROM ${mirrorTable(resource)}
    WHERE environment = $1 AND company_id = $2::uuid AND id > $3 ORDER BY id LIMIT ${ROWS_AT_ONCE}`;
  await purgeChanges(tx, list);
  let changed = 0;
  for (let after = ''; ; ) {
    const rows = await tx.$queryRawUnsafe<{ id: string; text: string }[]>(select, environment, companyId, after);
    const treated = rows.map(({ id, text }) => ({ id, before: text, text: redactRecord(text, rules) }));
    const others = treated.filter(({ before, text }) => before !== text);
    if (others.length > 0) {
      // Readers of the feed have heard of the end of deleted rows: those have no more changes.
      await tx.$executeRaw`
        WITH written AS (
          UPDATE ${Prisma.raw(mirrorTable(resource))} t SET data = n.text::jsonb, changed_at = now()
          FROM unnest(${others.map(({ id }) => id)}::text[], ${others.map(({ text }) => text)}::text[]) AS n(id, text)
          WHERE t.environment = ${environment} AND t.company_id = ${companyId}::uuid AND t.id = n.id COLLATE "C"
          RETURNING t.id, t.data, t.deleted_at IS NULL AS is_living
        ), changed AS (
          SELECT id, data FROM written WHERE is_living
        ), ${appendToFeed(list, { op: 'update' })}
        SELECT`;
    }
    changed += others.length;
    if (rows.length < ROWS_AT_ONCE) return changed;
    after = rows.at(-1)!.id;
  }
}
