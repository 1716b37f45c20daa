import { type Column, column } from './data-table.js';
import { CompanyLink, Environment, numberText } from './shown-values.js';

interface OfCompany {
  readonly environment: string;
  readonly company_id: string;
  readonly company_name?: string | null | undefined;
}

export const COMPANY: Column<OfCompany> = column('Company', ({ environment, company_id, company_name }) => (
  <CompanyLink environment={environment} companyId={company_id} name={company_name} />
));

export const ENVIRONMENT: Column<{ readonly environment: string }> = column('Environment', ({ environment }) => (
  <Environment name={environment} />
));

/** A column of counts, aligned to the right. */
export function counts<Row>(label: string, count: (row: Row) => number): Column<Row> {
  return column(label, (row) => numberText(count(row)), { numeric: true });
}
