// muster.run_requests and muster.run_request_lists: companies for which a run was requested together with many others, and is not made yet. A row of the
// first requests a run of every list, and contains the rows of the second, each of which requests a run of one list. Requests insert rows; the
// transaction that makes a company's run, or finds that it cannot be made, deletes the company's rows. No foreign key: it would lock every connection for
// the length of the request, and delay the opening of walks. Lock order: connections, run_requests, run_request_lists.
//
// The lists have a table of their own since an older process, which knows only the first table, must not make a run of more than was requested.
import type { CompanyKey, Environment } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { readByIndex } from '../statements/by-index.js';
import { isOnSchedule } from './active-runs.js';
import { rowsOf } from './connections.js';
import { ofLastSync } from './last-syncs.js';

/** The companies of a request: exactly these, or every company with these properties. */
export interface RunRequestFilter {
  readonly environment?: Environment | undefined;
  /** The status of the company's last sync. */
  readonly lastRun?: string | undefined;
  readonly companies?: readonly CompanyKey[] | undefined;
}

/** A company of a request that cannot be synced now. */
export interface SkippedCompany extends CompanyKey {
  readonly status: 'paused' | 'reauthorization_required';
}

export interface ChosenCompanies {
  /** Active companies, including those with an earlier request. */
  readonly count: number;
  readonly skippedCount: number;
  /** The first skipped companies in the order of their keys, `MOST_SKIPPED` at most. */
  readonly skipped: readonly SkippedCompany[];
}

export const MOST_SKIPPED = 100;

/** SQL: the CTEs `asked_for`, and among them the active companies `chosen` and the first `skipped` ones. By the order, an index can be read. */
function choose({ environment = null as never, lastRun = null as never, companies }: RunRequestFilter): Prisma.Sql {
  const among = companies ? Prisma.sql`JOIN ${rowsOf(companies)} USING (environment, company_id)` : Prisma.empty;
  return Prisma.sql`asked_for AS (
      SELECT environment, company_id, c.status FROM muster.connections c ${among}
      WHERE (${environment}::text IS NULL OR environment = ${environment})
        AND (${lastRun}::text IS NULL OR ${lastRun} = ${ofLastSync(Prisma.sql`r.status`)})
      ORDER BY environment, company_id
    ), chosen AS (
      SELECT environment, company_id FROM asked_for WHERE status = 'active'
    ), skipped AS (
      SELECT environment, company_id AS "companyId", status FROM asked_for WHERE status <> 'active'
      ORDER BY environment, company_id LIMIT ${MOST_SKIPPED}::int
    )`;
}

const COUNTS = Prisma.sql`(SELECT count(*)::int FROM chosen) AS count,
  (SELECT count(*)::int FROM asked_for WHERE status <> 'active') AS "skippedCount",
  (SELECT COALESCE(jsonb_agg(skipped), '[]') FROM skipped) AS skipped`;

/**
 * Requests a run for each active company of the filter: of these lists, or of every list. Inserts in key order: otherwise two requests at once
 * could wait for each other.
 */
export async function insertRunRequests(
  db: Database,
  { resources, ...filter }: RunRequestFilter & { readonly resources?: readonly string[] | undefined },
): Promise<ChosenCompanies> {
  const insertion = resources
    ? Prisma.sql`INSERT INTO muster.run_request_lists (environment, company_id, resource)
        SELECT environment, company_id, resource FROM chosen CROSS JOIN unnest(${resources}::text[]) AS named(resource)
        ORDER BY environment, company_id, resource`
    : Prisma.sql`INSERT INTO muster.run_requests (environment, company_id)
        SELECT environment, company_id FROM chosen ORDER BY environment, company_id`;
  const [row] = await db.prisma.$queryRaw<[ChosenCompanies]>`
    WITH ${choose(filter)}, added AS (${insertion} ON CONFLICT DO NOTHING)
    SELECT ${COUNTS}`;
  return row;
}

/** The companies that `insertRunRequests` would choose, with the keys of the first `sample` ones. It writes nothing. */
export async function previewRunRequests(
  db: Database,
  { sample, ...filter }: RunRequestFilter & { readonly sample: number },
): Promise<ChosenCompanies & { readonly first: readonly CompanyKey[] }> {
  return readByIndex(db, async (tx) => {
    const [row] = await tx.$queryRaw<[ChosenCompanies & { first: CompanyKey[] }]>`
      WITH ${choose(filter)}, first AS (
        SELECT environment, company_id AS "companyId" FROM chosen ORDER BY environment, company_id LIMIT ${sample}::int
      )
      SELECT ${COUNTS}, (SELECT COALESCE(jsonb_agg(first), '[]') FROM first) AS first`;
    return row;
  });
}

/** Companies among these that are not onboarded. */
export function findUnknownCompanies(db: Pick<Database, 'prisma'>, companies: readonly CompanyKey[]): Promise<CompanyKey[]> {
  return db.prisma.$queryRaw`
    SELECT environment, company_id::text AS "companyId" FROM ${rowsOf(companies)}
    WHERE NOT EXISTS (
      SELECT FROM muster.connections c WHERE c.environment = asked.environment AND c.company_id = asked.company_id)`;
}

/** Companies for which requests wait, in the order of their keys, without those of which a run by the schedules of lists is under way: requests follow it. */
export function findRunRequests(db: Database, { limit }: { limit: number }): Promise<CompanyKey[]> {
  return db.prisma.$queryRaw`
    (SELECT environment, company_id AS "companyId" FROM muster.run_requests q WHERE NOT ${isOnSchedule(Prisma.sql`q`)}
     ORDER BY environment, company_id LIMIT ${limit}::int)
    UNION
    (SELECT DISTINCT environment, company_id FROM muster.run_request_lists q WHERE NOT ${isOnSchedule(Prisma.sql`q`)}
     ORDER BY environment, company_id LIMIT ${limit}::int)
    ORDER BY 1, 2 LIMIT ${limit}::int`;
}

/** A company's taken request. `resources`: null = every list. */
export type TakenRequest = CompanyKey & { readonly resources: readonly string[] | null };

/**
 * Deletes the requests for these companies, and returns them, one a company. `unlocked`: companies whose connections the caller could not
 * lock. Their requests are deleted only if the company is gone.
 */
export function takeRunRequests(
  tx: Transaction,
  { companies, unlocked }: { companies: readonly CompanyKey[]; unlocked: readonly CompanyKey[] },
): Promise<TakenRequest[]> {
  const isTaken = Prisma.sql`r.environment = asked.environment AND r.company_id = asked.company_id AND NOT EXISTS (
      SELECT FROM muster.connections c JOIN ${rowsOf(unlocked)} USING (environment, company_id)
      WHERE c.environment = r.environment AND c.company_id = r.company_id)`;
  return tx.$queryRaw`
    WITH of_all AS (
      DELETE FROM muster.run_requests r USING ${rowsOf(companies)} WHERE ${isTaken} RETURNING r.environment, r.company_id
    ), of_some AS (
      DELETE FROM muster.run_request_lists r USING ${rowsOf(companies)} WHERE ${isTaken} RETURNING r.environment, r.company_id, r.resource
    )
    SELECT environment, company_id AS "companyId", CASE WHEN bool_and(resource IS NOT NULL) THEN array_agg(resource) END AS resources
    FROM (SELECT environment, company_id, NULL AS resource FROM of_all UNION ALL SELECT * FROM of_some) taken
    GROUP BY environment, company_id`;
}
