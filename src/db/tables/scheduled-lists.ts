// muster.scheduled_lists: when each list with a schedule of its own is walked next, a row for each company and list. The sweep for schedules
// (list-syncs.ts) inserts and moves rows, and requests for its runs set the next time; removing a company deletes its rows. `connections.lists_planned`
// says that a company has a row for each such list, so that the sweep finds new companies by an index. Lock order: the connection, then its rows here; a
// writer of several rows locks them in the order of their keys.
import type { CompanyKey } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { hasActiveRun } from './active-runs.js';
import { rowsOf } from './connections.js';

/** When a list of a company is walked next. */
export interface ListTime extends CompanyKey {
  readonly resource: string;
  readonly at: Date;
}

/** Rows of a FROM, `planned`: environment, company_id, resource and at. */
function rowsOfTimes(times: readonly ListTime[]): Prisma.Sql {
  const environments = times.map(({ environment }) => environment);
  const ids = times.map(({ companyId }) => companyId);
  return Prisma.sql`unnest(${environments}::text[], ${ids}::uuid[], ${times.map(({ resource }) => resource)}::text[],
    ${times.map(({ at }) => at)}::timestamptz[]) AS planned(environment, company_id, resource, at)`;
}

/** A company and the time by the clock of the database. */
type FoundCompany = CompanyKey & { readonly now: Date };

/**
 * Active companies of which one of these lists is due, and of which no run is queued or running: a list waits for the end of it. It waits for the night
 * that is due, too, which has to get its turn between lists that come often; without `hasNights` no process starts one, and a night that a process with the
 * former catalogue has planned is not waited for. Companies that are due longest come first.
 */
export function findDueLists(
  db: Pick<Database, 'prisma'>,
  { resources, hasNights, limit }: { readonly resources: readonly string[]; readonly hasNights: boolean; readonly limit: number },
): Promise<FoundCompany[]> {
  return db.prisma.$queryRaw`
    SELECT s.environment, s.company_id AS "companyId", now() AS now
    FROM muster.scheduled_lists s JOIN muster.connections c ON c.environment = s.environment AND c.company_id = s.company_id
    WHERE s.next_sync_at <= now() AND s.resource = ANY(${resources}::text[]) AND c.status = 'active'
      AND NOT (${hasNights} AND COALESCE(c.next_sync_at <= now(), FALSE)) AND NOT ${hasActiveRun(Prisma.sql`s`)}
    GROUP BY s.environment, s.company_id ORDER BY min(s.next_sync_at) LIMIT ${limit}::int`;
}

/**
 * Gives the lists among these that are due their next time, and returns them. The caller has locked their connections: of several callers, one gets a list.
 */
export function takeDueLists(tx: Transaction, times: readonly ListTime[]): Promise<Omit<ListTime, 'at'>[]> {
  return tx.$queryRaw`
    WITH due AS (
      SELECT environment, company_id, resource, planned.at
      FROM muster.scheduled_lists s JOIN ${rowsOfTimes(times)} USING (environment, company_id, resource)
      WHERE s.next_sync_at <= now() ORDER BY environment, company_id, resource FOR UPDATE OF s)
    UPDATE muster.scheduled_lists s SET next_sync_at = due.at FROM due
    WHERE s.environment = due.environment AND s.company_id = due.company_id AND s.resource = due.resource
    RETURNING s.environment, s.company_id AS "companyId", s.resource`;
}

/** The times that have not come yet by the database's clock `now`, in the order of their keys. */
export function findListTimes(db: Pick<Database, 'prisma'>): Promise<(ListTime & { readonly now: Date })[]> {
  return db.prisma.$queryRaw`
    SELECT environment, company_id AS "companyId", resource, next_sync_at AS at, now() AS now FROM muster.scheduled_lists
    WHERE next_sync_at > now() ORDER BY environment, company_id, resource`;
}

/** Moves lists that are not due; returns how many. */
export function moveListTimes(db: Pick<Database, 'prisma'>, times: readonly ListTime[]): Promise<number> {
  return db.prisma.$executeRaw`
    WITH moved AS (
      SELECT environment, company_id, resource, planned.at
      FROM muster.scheduled_lists s JOIN ${rowsOfTimes(times)} USING (environment, company_id, resource)
      WHERE s.next_sync_at > clock_timestamp() AND s.next_sync_at <> planned.at
      ORDER BY environment, company_id, resource FOR UPDATE OF s)
    UPDATE muster.scheduled_lists s SET next_sync_at = moved.at FROM moved
    WHERE s.environment = moved.environment AND s.company_id = moved.company_id AND s.resource = moved.resource`;
}

/** Deletes the rows of all lists but these. Returns how many. */
export function deleteOtherLists(
  db: Pick<Database, 'prisma'>,
  { resources }: { readonly resources: readonly string[] },
): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.scheduled_lists WHERE (environment, company_id, resource) IN (
      SELECT environment, company_id, resource FROM muster.scheduled_lists
      WHERE resource <> ALL(${resources}::text[]) ORDER BY environment, company_id, resource FOR UPDATE)`;
}

/** Lets the next look find companies that lack a row of one of these lists, at most `limit` of them. Returns how many. */
export function unplanLists(
  db: Pick<Database, 'prisma'>,
  { resources, limit }: { readonly resources: readonly string[]; readonly limit: number },
): Promise<number> {
  return db.prisma.$executeRaw`
    WITH lacking AS (
      SELECT environment, company_id FROM muster.connections c
      WHERE lists_planned AND (SELECT count(*) FROM muster.scheduled_lists s
        WHERE s.environment = c.environment AND s.company_id = c.company_id AND s.resource = ANY(${resources}::text[])) < ${resources.length}::int
      ORDER BY environment, company_id LIMIT ${limit}::int FOR UPDATE OF c)
    UPDATE muster.connections c SET lists_planned = FALSE FROM lacking
    WHERE c.environment = lacking.environment AND c.company_id = lacking.company_id`;
}

/** Companies whose lists are not planned yet. */
export function findUnplannedCompanies(
  db: Pick<Database, 'prisma'>,
  { limit }: { readonly limit: number },
): Promise<FoundCompany[]> {
  return db.prisma.$queryRaw`
    SELECT environment, company_id AS "companyId", now() AS now FROM muster.connections
    WHERE NOT lists_planned ORDER BY environment, company_id LIMIT ${limit}::int`;
}

/** Plans lists of these companies. Passes over companies that another transaction has locked, and over lists that are planned. Returns how many companies. */
export function planLists(
  db: Pick<Database, 'prisma'>,
  { companies, times }: { readonly companies: readonly CompanyKey[]; readonly times: readonly ListTime[] },
): Promise<number> {
  return db.prisma.$executeRaw`
    WITH free AS (
      SELECT environment, company_id FROM muster.connections c JOIN ${rowsOf(companies)} USING (environment, company_id)
      ORDER BY environment, company_id FOR NO KEY UPDATE OF c SKIP LOCKED
    ), added AS (
      INSERT INTO muster.scheduled_lists (environment, company_id, resource, next_sync_at)
      SELECT environment, company_id, resource, planned.at FROM ${rowsOfTimes(times)} JOIN free USING (environment, company_id)
      ORDER BY environment, company_id, resource ON CONFLICT DO NOTHING)
    UPDATE muster.connections c SET lists_planned = TRUE FROM free
    WHERE c.environment = free.environment AND c.company_id = free.company_id`;
}

/** When the lists of these companies are walked next, in both environments. */
export function findListTimesOf(
  db: Pick<Database, 'prisma'>,
  { companyIds }: { readonly companyIds: readonly string[] },
): Promise<ListTime[]> {
  return db.prisma.$queryRaw`
    SELECT environment, company_id AS "companyId", resource, next_sync_at AS at FROM muster.scheduled_lists
    WHERE environment IN ('production', 'test') AND company_id = ANY(${companyIds}::uuid[])`;
}
