// The companies that have the trouble of an issue now. The sweep keeps only their number and a sample (issues.ts). Reads only, and locks nothing.
import type { CompanyKey } from '../../core/company.js';
import type { Database } from '../connection/database.js';
import { readByIndex } from '../statements/by-index.js';
import { foundBy, type IssueRow, type IssueSearch, listsOf } from './issues.js';

/**
 * The onboarded companies that have the trouble now, found as the sweep finds them, in the order of their keys. A warning of a night that is too short
 * names the companies whose runs are under way.
 */
export function findIssueCompanies(
  db: Pick<Database, 'prisma'>,
  { cause, environment, resource }: Pick<IssueRow, 'cause' | 'environment' | 'resource'>,
  { resources, staleAfterHours }: Pick<IssueSearch, 'resources' | 'staleAfterHours'>,
): Promise<CompanyKey[]> {
  const search: IssueSearch = {
    resources: resource === null ? resources : [resource],
    exported: resource === null ? [] : [resource],
    staleAfterHours,
    environments: [environment],
    hasWebhook: true,
    isWorker: false,
    secondsLeft: 0,
    isNightYoung: false,
  };
  return readByIndex(
    db,
    (tx) => tx.$queryRaw<CompanyKey[]>`
      WITH list AS (${listsOf(search)}), short AS (SELECT ${environment}::text AS environment)
      SELECT environment, company_id::text AS "companyId" FROM muster.connections c
      WHERE environment = ${environment} AND company_id IN (
        SELECT company_id FROM (${foundBy(search)}) found
        WHERE cause = ${cause} AND environment = ${environment} AND resource IS NOT DISTINCT FROM ${resource}::text)
      ORDER BY company_id`,
  );
}
