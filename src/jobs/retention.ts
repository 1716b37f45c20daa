import type { Database } from '../db/connection/database.js';
import { removeOldKeys } from '../db/tables/idempotency-keys.js';
import { removeOldNamedTokens } from '../db/tables/named-tokens.js';
import { removeOldNights } from '../db/tables/nights.js';
import { HOLDERS, type Retention } from '../erasure/holders.js';

/** Rows that one transaction removes, so that none is long and no other process waits for it. */
const ROWS_AT_ONCE = 1_000;

/** Removes old rows from every table that grows with each night or call, and none that is in use. */
export async function removeOldRecords(db: Database, retention: Retention): Promise<void> {
  for (const { byAge, rowsAtOnce = ROWS_AT_ONCE } of HOLDERS)
    if (byAge) await whileFull(rowsAtOnce, (limit) => byAge(db, retention, limit));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldNamedTokens(db, { days: retention.auditDays, limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldKeys(db, { limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldNights(db, { limit }));
}

async function whileFull(limit: number, remove: (limit: number) => Promise<number>): Promise<void> {
  while ((await remove(limit)) === limit);
}
