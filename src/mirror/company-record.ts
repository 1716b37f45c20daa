import type { CompanyKey } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { sqlState } from '../db/connection/sql-state.js';
import { runStep } from '../db/connection/step.js';
import { lockedRun, type RunClaim } from '../db/tables/runs.js';
import { Prisma } from '../generated/prisma/client.js';

/** Members of the company's record that may hold its name; the service does not specify which. */
const NAME_MEMBERS = ['name', 'companyName', 'displayName', 'company_name'];

/**
 * Stores the company's own record, as the text that the service sent, when it differs from the stored one. Does nothing when the claim has ended: a worker
 * that was frozen would overwrite its successor's record, or bring a removed company back. Throws `malformed_response` for a text that is no record.
 */
export async function writeCompanyRecord(
  db: Pick<Database, 'steps'>,
  { run, company }: { readonly run: RunClaim; readonly company: CompanyKey },
  text: string,
): Promise<void> {
  const record = parseRecord(text);
  const step = Prisma.sql`
    WITH run AS (${lockedRun(run)})
    UPDATE mirror.companies SET data = ${text}::jsonb, name = ${companyName(record)}, changed_at = now(), deleted_at = NULL FROM run
    WHERE environment = ${company.environment} AND company_id = ${company.companyId}::uuid AND data IS DISTINCT FROM ${text}::jsonb`;
  await runStep(db, step).catch((error: unknown) => {
    if (sqlState(error)?.startsWith('22')) throw unusable('holds what PostgreSQL cannot', text);
    throw error;
  });
}

function parseRecord(text: string): Readonly<Record<string, unknown>> {
  const record = parsed(text);
  if (typeof record === 'object' && record !== null && !Array.isArray(record)) return record as Record<string, unknown>;
  // A parser's message would quote the body.
  throw unusable('is not a JSON object', text);
}

function unusable(problem: string, { length }: string): MusterError {
  return new MusterError('malformed_response', `The company's own record ${problem} (${length} characters).`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function companyName(record: Readonly<Record<string, unknown>>): string | null {
  const name = NAME_MEMBERS.map((member) => record[member]).find((value) => typeof value === 'string' && value !== '');
  return (name as string | undefined) ?? null;
}
