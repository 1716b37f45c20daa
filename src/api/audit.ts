import type { CompanyKey } from '../core/company.js';
import { isMusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';

/** Who calls with the admin token. */
export const ACTOR = 'admin';

/**
 * What was done. Removals that succeed write their own entry, in the transaction that removes. The names are kept for good: rename
 * none.
 */
export type AuditAction =
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

export interface AuditEntry {
  readonly action: AuditAction;
  readonly company?: CompanyKey;
  /** Plain JSON, nothing secret. */
  readonly details?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
}

/** Does the work and writes down who asked for what and how it ended; refusals too, for they may have spent a token. */
export async function audited<T>(db: Database, entry: AuditEntry, work: () => Promise<T>): Promise<T> {
  const result = await auditedRefusal(db, entry, work);
  await write(db, entry, 'done');
  return result;
}

/** The same for work that writes its own entry when it succeeds. */
export async function auditedRefusal<T>(db: Database, entry: AuditEntry, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isMusterError(error)) await write(db, entry, error.code);
    throw error;
  }
}

async function write(db: Database, { action, company, details }: AuditEntry, outcome: string): Promise<void> {
  await db.prisma.auditEntry.create({
    data: { actor: ACTOR, action, ...company, details: JSON.parse(JSON.stringify({ ...details, outcome })) },
  });
}
