import type { CompanyKey } from '../core/company.js';
import type { Database } from '../db/database.js';

/** Members of the company's record that may hold its name: which one does is not specified. */
const NAME_MEMBERS = ['name', 'companyName', 'displayName', 'company_name'];

/** Keeps the company's own record, as the text that the service sent, when it differs from what is kept. */
export async function writeCompanyRecord(db: Database, company: CompanyKey, text: string): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE mirror.companies SET data = ${text}::jsonb, name = ${companyName(text)}, changed_at = now(), deleted_at = NULL
    WHERE environment = ${company.environment} AND company_id = ${company.companyId}::uuid AND data IS DISTINCT FROM ${text}::jsonb`;
}

function companyName(text: string): string | null {
  const record: unknown = JSON.parse(text);
  if (typeof record !== 'object' || record === null) return null;
  const members = record as Record<string, unknown>;
  const name = NAME_MEMBERS.map((member) => members[member]).find((value) => typeof value === 'string' && value !== '');
  return (name as string | undefined) ?? null;
}
