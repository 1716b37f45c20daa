import type { CompanyKey } from '../../core/company.js';
import { isMusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import type { Transaction } from '../../db/connection/transaction.js';
import { insertAuditEntry, type NewAuditEntry } from '../../db/tables/audit.js';

/**
 * The names of all audited actions. A removal that succeeds writes its own entry, in its transaction. The table keeps the names permanently: rename none.
 */
export type AuditAction =
  | 'company.onboard'
  | 'company.sync'
  | 'company.verify'
  | 'company.try'
  | 'company.pause'
  | 'company.resume'
  | 'company.quiet_hours'
  | 'company.remove'
  | 'companies.sync'
  | 'connect_link.create'
  | 'connect_links.create'
  | 'list.rekey'
  | 'record.forget'
  | 'record.lift'
  | 'record.read'
  | 'record.search'
  | 'run.cancel'
  | 'hold.approve'
  | 'hold.reject'
  | 'notification.redeliver'
  | 'notifications.redeliver'
  | 'notification.test'
  | 'quarantined_token.delete'
  | 'schema.rebuild'
  | 'token.create'
  | 'token.delete'
  | 'session.begin'
  | 'installation.adopt'
  | 'installation.detach'
  | 'held_tokens.release'
  | 'issue.snooze'
  | 'issue.unsnooze';

interface AuditEntry extends Pick<NewAuditEntry, 'by' | 'company' | 'environment'> {
  readonly action: AuditAction;
  readonly details?: NewAuditEntry['details'];
}

/**
 * Does the work, and records the caller and the outcome. A refusal is recorded, too, since it may have spent a token. `companyOf` names the company
 * where only the result has it.
 */
export async function audited<T>(
  db: Database,
  entry: AuditEntry,
  work: () => Promise<T>,
  companyOf: (result: T) => CompanyKey | undefined = () => undefined,
): Promise<T> {
  const result = await auditedRefusal(db, entry, work);
  const company = entry.company ?? companyOf(result);
  await recordDone(db.prisma, { ...entry, ...(company && { company: keyOf(company) }) });
  return result;
}

/** Records that the work was done: in the work's own transaction, or for a caller that must distinguish its failure from one of the work. */
export function recordDone(tx: Transaction, entry: AuditEntry): Promise<void> {
  return write(tx, entry, 'done');
}

/** Does work that records its own success, and records its refusal. */
export async function auditedRefusal<T>(db: Database, entry: AuditEntry, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // The caller must get the refusal even if its entry fails: it may say where a token is.
    if (isMusterError(error)) await write(db.prisma, entry, error.code).catch(() => undefined);
    throw error;
  }
}

function write(tx: Transaction, { details, ...entry }: AuditEntry, outcome: string): Promise<void> {
  return insertAuditEntry(tx, { ...entry, details: { ...details, outcome } });
}

/** Drops the other members of a row. */
export function keyOf({ environment, companyId }: CompanyKey): CompanyKey {
  return { environment, companyId };
}
