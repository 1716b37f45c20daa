import { z } from 'zod';
import type { AuditRow } from '../../db/tables/audit.js';
import { ROLES, type Role } from '../../db/tables/named-tokens.js';
import { ADMIN } from '../plumbing/caller.js';
import { CompanyName } from '../plumbing/company-names.js';
import { Time } from '../plumbing/models.js';

export const AuditEntry = z
  .object({
    id: z.string(),
    at: Time,
    actor: z.string(),
    role: z.enum(ROLES).nullable().describe('null where no token was used: a connect link.'),
    action: z.string(),
    environment: z.string().optional(),
    company_id: z.string().optional(),
    company_name: CompanyName,
    details: z.record(z.string(), z.unknown()).describe('`outcome` is `done`, or why nothing was done.'),
  })
  .meta({ id: 'AuditEntry', description: 'Who did what, and how it ended. Entries are only ever added.' });
export type AuditEntryModel = z.output<typeof AuditEntry>;

export function presentEntry({ id, at, actor, role, action, environment, companyId, details }: AuditRow): AuditEntryModel {
  return {
    id: String(id),
    at: at.toISOString(),
    actor,
    role: (role as Role | null) ?? (actor === ADMIN.name ? ADMIN.role : null),
    action,
    ...(environment !== null && { environment }),
    ...(companyId !== null && { company_id: companyId }),
    details: details as Record<string, unknown>,
  };
}
