import { z } from 'zod';
import { type Environment, keyText } from '../../core/company.js';
import type { Database } from '../../db/connection/database.js';
import { findCompanyNames } from '../../db/tables/companies.js';

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
  page: { readonly data: readonly T[]; readonly next_cursor: string | null },
): Promise<{ data: (T & { company_name?: string })[]; next_cursor: string | null }> {
  return { ...page, data: await withCompanyNames(db, page.data) };
}
