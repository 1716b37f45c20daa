// muster.audit: who did what. Rows are only ever added, and outlive the company that they are about. No other lock is taken after one.
import type { CompanyKey } from '../../core/company.js';
import type { Transaction } from '../transaction.js';

export interface NewAuditEntry {
  readonly actor: string;
  readonly action: string;
  readonly company?: CompanyKey | undefined;
  /** Plain JSON, nothing secret. */
  readonly details: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
}

export async function insertAuditEntry(tx: Transaction, { actor, action, company, details }: NewAuditEntry): Promise<void> {
  await tx.auditEntry.create({ data: { actor, action, ...company, details: JSON.parse(JSON.stringify(details)) } });
}
