// The companies that have the trouble of an issue now. The sweep keeps only their number and a sample (issues.ts). Reads only, and locks nothing.
import type { CompanyKey } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { readByIndex } from '../statements/by-index.js';
import { type Page, type PageQuery, pageOf, readCursor } from '../statements/cursor.js';
import { eachCompanyWithTrouble, type IssueSearch } from './issue-search.js';
import type { IssueRow } from './issues.js';

type IssueOf = Pick<IssueRow, 'cause' | 'environment' | 'resource'>;

/** SQL: the onboarded companies that have the trouble, found as the sweep finds them. */
function companiesOf({ cause, environment, resource }: IssueOf, search: IssueSearch): Prisma.Sql {
  // Only a process without workers can find that none lives; for any other issue that would only hide lists that are late.
  const asSwept = { ...search, isWorker: cause !== 'no_worker' };
  return Prisma.sql`
    WITH ${eachCompanyWithTrouble(asSwept)}
    SELECT environment, company_id::text AS "companyId" FROM muster.connections c
    WHERE environment = ${environment} AND company_id IN (
      SELECT company_id FROM each
      WHERE cause = ${cause} AND environment = ${environment} AND resource IS NOT DISTINCT FROM ${resource}::text)`;
}

/** All of them, by id. */
export function findIssueCompanies(db: Pick<Database, 'prisma'>, issue: IssueOf, search: IssueSearch): Promise<CompanyKey[]> {
  return readByIndex(db, (tx) => tx.$queryRaw<CompanyKey[]>`${companiesOf(issue, search)} ORDER BY company_id`);
}

/** A page of them, by id. */
export async function listIssueCompanies(
  db: Pick<Database, 'prisma'>,
  issue: IssueOf,
  { limit, cursor, ...search }: IssueSearch & PageQuery,
): Promise<Page<CompanyKey>> {
  const after = cursor === undefined ? null : readCursor(cursor, /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const rows = await readByIndex(
    db,
    (tx) => tx.$queryRaw<CompanyKey[]>`
      ${companiesOf(issue, search)} AND (${after}::uuid IS NULL OR company_id > ${after}::uuid) ORDER BY company_id LIMIT ${limit + 1}::int`,
  );
  return pageOf(rows, limit, ({ companyId }) => companyId);
}
