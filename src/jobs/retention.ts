import type { Database } from '../db/connection/database.js';
import { removeOldAuditEntries } from '../db/tables/audit.js';
import { removeOldBarriers } from '../db/tables/barriers.js';
import { removeOldCertificates } from '../db/tables/certificates.js';
import { deleteExpiredErasureNotices } from '../db/tables/change-erasure.js';
import { removeOldConnectLinks } from '../db/tables/connect-links.js';
import { removeOldHolds } from '../db/tables/holds.js';
import { removeOldKeys } from '../db/tables/idempotency-keys.js';
import { removeOldIssues } from '../db/tables/issues.js';
import { removeOldNamedTokens } from '../db/tables/named-tokens.js';
import { removeOldNights } from '../db/tables/nights.js';
import { removeOldRejectedRecords } from '../db/tables/rejected-records.js';
import { removeOldRuns } from '../db/tables/runs.js';

/** Days that a record stays for a look. docs/retention.md says of every table what stays. */
export interface Retention {
  readonly runDays: number;
  readonly auditDays: number;
}

/** Rows that one transaction removes, so that none is long and nobody waits behind it. A run takes its walks and their pages along. */
const RUNS_AT_ONCE = 100;
const ROWS_AT_ONCE = 1_000;

/** Where a list rejects the same records every night, only those of the newest walk are shown. */
const REJECTED_DAYS = 14;

/** Readers of the feed learn of a forgotten record by its id: a month is long enough to read on. */
const FAREWELL_DAYS = 30;

/** An expired link is remembered, so that its page can say so. */
const CONNECT_LINK_DAYS = 90;

/** Removes what is older than it need be: of everything that grows with every night or every call, and of nothing that is in use. */
export async function removeOldRecords(db: Database, { runDays, auditDays }: Retention): Promise<void> {
  await whileFull(RUNS_AT_ONCE, (limit) => removeOldRuns(db, { days: runDays, limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldBarriers(db, { days: runDays, limit, which: 'repeated' }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldHolds(db, { limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldRejectedRecords(db, { days: Math.min(REJECTED_DAYS, runDays), limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldIssues(db, { days: runDays, limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldConnectLinks(db, { days: CONNECT_LINK_DAYS, limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldAuditEntries(db, { days: auditDays, limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldCertificates(db, { days: auditDays, limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldNamedTokens(db, { days: auditDays, limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldKeys(db, { limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => deleteExpiredErasureNotices(db, { days: FAREWELL_DAYS, limit }));
  await whileFull(ROWS_AT_ONCE, (limit) => removeOldNights(db, { limit }));
}

async function whileFull(limit: number, remove: (limit: number) => Promise<number>): Promise<void> {
  while ((await remove(limit)) === limit);
}
