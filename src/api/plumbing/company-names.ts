import { z } from 'zod';
import { type Environment, keyText } from '../../core/company.js';
import type { Database } from '../../db/connection/database.js';
import { findCompanyNames } from '../../db/tables/companies.js';
import { findCompaniesLike } from '../../db/tables/connection-list.js';
import type { PresentedPage } from './models.js';

/** The company's name, for people. */
export const CompanyName = z
  .string()
  .optional()
  .describe('What the service calls the company; absent where it has not said so, or the company was removed.');

/** An item that may concern a company; null and absent mean none. */
interface OfCompany {
  readonly environment?: string | undefined;
  readonly company_id?: string | null | undefined;
}

/** Adds the names of the companies to the items, by one statement. */
export async function withCompanyNames<T extends OfCompany>(
  db: Database,
  items: readonly T[],
): Promise<(T & { company_name?: string })[]> {
  const keyOf = ({ environment, company_id }: OfCompany) =>
    environment && company_id ? { environment: environment as Environment, companyId: company_id } : undefined;
  const names = await findCompanyNames(
    db,
    items.flatMap((item) => keyOf(item) ?? []),
  );
  return items.map((item) => {
    const key = keyOf(item);
    const company_name = key && names.get(keyText(key));
    return company_name === undefined ? item : { ...item, company_name };
  });
}

export async function namedPage<T extends OfCompany>(
  db: Database,
  page: PresentedPage<T>,
): Promise<PresentedPage<T & { company_name?: string }>> {
  return { ...page, data: await withCompanyNames(db, page.data) };
}

interface CompanyQuery {
  readonly environment?: Environment;
  readonly company_id?: string;
  readonly company?: string;
}

/** The filter of a list as the database takes it, with the companies that `company` finds. */
export async function companyFilterOf<T extends CompanyQuery>(db: Database, query: T) {
  const { company, company_id: companyId, ...filter } = query;
  const { environment } = query;
  const found = company !== undefined && {
    companies: await findCompaniesLike(db, { search: company, ...(environment && { environment }) }),
  };
  return { ...filter, ...(companyId !== undefined && { companyId }), ...found };
}
