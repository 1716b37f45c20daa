import { isMusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';
import { insertAuditEntry, type NewAuditEntry } from '../db/tables/audit.js';

/** The name of whoever calls with the admin token. */
export const ACTOR = 'admin';

/**
 * The names of what can be done. A removal that succeeds writes its own entry, in the transaction that removes. The table keeps the names
 * for good: rename none.
 */
type AuditAction =
  | 'company.onboard'
  | 'company.sync'
  | 'company.pause'
  | 'company.resume'
  | 'company.remove'
  | 'companies.sync'
  | 'connect_link.create'
  | 'list.rekey'
  | 'run.cancel'
  | 'hold.approve'
  | 'hold.reject'
  | 'notification.redeliver';

interface AuditEntry extends Pick<NewAuditEntry, 'company'> {
  readonly action: AuditAction;
  readonly details?: NewAuditEntry['details'];
}

/** Does the work, and writes down who asked for it and how it ended. A refusal is written down too, for it may have spent a token. */
export async function audited<T>(db: Database, entry: AuditEntry, work: () => Promise<T>): Promise<T> {
  const result = await auditedRefusal(db, entry, work);
  await write(db, entry, 'done');
  return result;
}

/** Does work that writes its own entry when it succeeds, and writes down its refusal. */
export async function auditedRefusal<T>(db: Database, entry: AuditEntry, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isMusterError(error)) await write(db, entry, error.code);
    throw error;
  }
}

function write(db: Database, { details, ...entry }: AuditEntry, outcome: string): Promise<void> {
  return insertAuditEntry(db.prisma, { actor: ACTOR, ...entry, details: { ...details, outcome } });
}
