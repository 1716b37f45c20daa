import type { CompanyKey } from '../../core/company.js';
import { isMusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import type { Transaction } from '../../db/connection/transaction.js';
import { insertAuditEntry, type NewAuditEntry } from '../../db/tables/audit.js';

/**
 * The names of what can be done. A removal that succeeds writes its own entry, in the transaction that removes. The table keeps the names
 * for good: rename none.
 */
export type AuditAction =
  | 'company.onboard'
  | 'company.sync'
  | 'company.verify'
  | 'company.try'
  | 'company.pause'
  | 'company.resume'
  | 'company.remove'
  | 'companies.sync'
  | 'connect_link.create'
  | 'connect_links.create'
  | 'list.rekey'
  | 'record.forget'
  | 'record.lift'
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
  | 'held_tokens.release';

interface AuditEntry extends Pick<NewAuditEntry, 'by' | 'company' | 'environment'> {
  readonly action: AuditAction;
  readonly details?: NewAuditEntry['details'];
}

/**
 * Does the work, and writes down who asked for it and how it ended. A refusal is written down too, for it may have spent a token. `companyOf` names
 * the company where the result alone tells it.
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

/** Writes down that the work was done: in the work's own transaction, or for a caller that must tell this failure from one of the work. */
export function recordDone(tx: Transaction, entry: AuditEntry): Promise<void> {
  return write(tx, entry, 'done');
}

/** Does work that writes its own entry when it succeeds, and writes down its refusal. */
export async function auditedRefusal<T>(db: Database, entry: AuditEntry, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // The refusal is what the caller must hear, whatever becomes of its entry: it may say where a token is.
    if (isMusterError(error)) await write(db.prisma, entry, error.code).catch(() => undefined);
    throw error;
  }
}

function write(tx: Transaction, { details, ...entry }: AuditEntry, outcome: string): Promise<void> {
  return insertAuditEntry(tx, { ...entry, details: { ...details, outcome } });
}

/** The key alone: rows have more members. */
export function keyOf({ environment, companyId }: CompanyKey): CompanyKey {
  return { environment, companyId };
}
