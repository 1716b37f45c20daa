import { type CompanyKey, describeCompany } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { findToken, type StoredToken } from '../db/tables/tokens.js';
import { reauthorizationRequired } from './connections.js';
import { requireOurs } from './installation.js';

/** Throws `company_not_found`, `reauthorization_required`. */
export async function readToken(db: Database, company: CompanyKey): Promise<StoredToken> {
  const state = await findToken(db.prisma, company);
  if (!state.isOurs) await requireOurs(db);
  if (state.reauthorizationReason !== null) throw reauthorizationRequired(company, state.reauthorizationReason);
  return state;
}

export function tokenBusy(company: CompanyKey): MusterError {
  return new MusterError('token_busy', `The token of ${describeCompany(company)} is being refreshed elsewhere; try again`);
}
