import { csvOf } from '../plumbing/csv.js';
import type { CompanyModel } from './company-model.js';

interface ChosenLists {
  readonly resource?: string | undefined;
  readonly state?: string | undefined;
}

/** A line for each list of the companies, of that resource and in that state where they are given: which companies lack a list, and why. */
export function companiesCsv(companies: readonly CompanyModel[], { resource, state }: ChosenLists): string {
  const rows = companies.flatMap(({ environment, company_id, name, status, resources }) =>
    resources
      .filter((list) => (resource === undefined || list.resource === resource) && (state === undefined || list.state === state))
      .map((list) => ({ environment, company_id, name, status, ...list })),
  );
  return csvOf(rows, COLUMNS);
}

const COLUMNS = [
  'environment',
  'company_id',
  'name',
  'status',
  'resource',
  'state',
  'since',
  'reason',
  'service_says',
  'records',
  'last_verified_at',
  'last_run_id',
];
