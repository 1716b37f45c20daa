import { csvOf } from '../plumbing/csv.js';
import type { AuditEntryModel } from './audit-model.js';

export function auditCsv(entries: readonly AuditEntryModel[]): string {
  return csvOf(
    entries.map(({ details, ...entry }) => ({ ...entry, details: JSON.stringify(details) })),
    COLUMNS,
  );
}

const COLUMNS = ['id', 'at', 'actor', 'role', 'action', 'environment', 'company_id', 'details'];
