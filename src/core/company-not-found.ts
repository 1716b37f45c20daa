import { type CompanyKey, describeCompany } from './company.js';
import { MusterError } from './errors.js';

export function companyNotFound(company: CompanyKey): MusterError {
  return new MusterError('company_not_found', `There is no ${describeCompany(company)}: onboard it first (POST /api/companies).`);
}
