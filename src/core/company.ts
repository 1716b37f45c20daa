import { MusterError } from './errors.js';

/** The two environments of the service; each has its own data and its own authorization. */
export const ENVIRONMENTS = ['production', 'test'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** Names one company everywhere: the same company_id may exist in both environments. */
export interface CompanyKey {
  readonly environment: Environment;
  /** GUID in lower case. */
  readonly companyId: string;
}

const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The canonical form of a company_id, or undefined when the text is no GUID. GUIDs compare case-insensitively. */
export function parseCompanyId(text: string): string | undefined {
  const lower = text.trim().toLowerCase();
  return GUID.test(lower) ? lower : undefined;
}

export function describeCompany({ environment, companyId }: CompanyKey): string {
  return `company ${companyId} (${environment})`;
}

/** One text per company: the key of a Map, and the job id, so that a queue drops duplicates. */
export function keyText({ environment, companyId }: { readonly environment: string; readonly companyId: string }): string {
  return `${environment}/${companyId}`;
}

/** The fields that name a company in every log line. */
export function logFieldsOf({ environment, companyId }: CompanyKey): { environment: Environment; company_id: string } {
  return { environment, company_id: companyId };
}

export function companyNotFound(company: CompanyKey): MusterError {
  return new MusterError('company_not_found', `There is no ${describeCompany(company)}: onboard it first (POST /api/companies).`);
}
