import type { AuditEntryModel } from './audit-model.js';
import { csvOf } from './csv.js';

export function auditCsv(entries: readonly AuditEntryModel[]): string {
  return csvOf(
    entries.map(({ details, ...entry }) => ({ ...entry, details: JSON.stringify(details) })),
    COLUMNS,
  );
}

const COLUMNS = ['id', 'at', 'actor', 'role', 'action', 'environment', 'company_id', 'details'];
