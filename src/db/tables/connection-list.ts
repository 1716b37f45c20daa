// muster.connections as people search them: by key or worst first, and by name. Reads only, and locks nothing.
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { readByIndex } from '../statements/by-index.js';
import { type Page, type PageQuery, pageOf, readCursor } from '../statements/cursor.js';
import { type ConnectionRow, selectFrom } from './connections.js';
import { hasListLike, type ListFilter } from './list-states.js';
import { UNAVAILABLE } from './lists.js';

export type ConnectionFilter = Partial<Pick<ConnectionRow, 'status' | 'environment'>> &
  PageQuery & {
    /** Part of the name, or the beginning of the company_id, in any letter case. */
    readonly search?: string | undefined;
    /** Companies that have such a list. */
    readonly list?: ListFilter | undefined;
    /** Worst first (`RANKS`); otherwise by environment and company_id. */
    readonly worst?: { readonly resources: readonly string[]; readonly staleAfterHours: number } | undefined;
  };

const COMPANY = '(production|test)\\|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const CURSOR = new RegExp(`^${COMPANY}$`);
const CURSOR_OF_WORST = new RegExp(`^\\d\\|${COMPANY}$`);

/**
 * Throws `invalid_request` for a cursor that no response gave. The statement contains only the filters that are given: a plan that fits all of them
 * would read all companies. A search reads companies and names side by side in key order until a page is full: an index on parts of names would need
 * an extension of the server.
 */
export async function listConnections(db: Database, filter: ConnectionFilter): Promise<Page<ConnectionRow>> {
  if (filter.worst) return listWorst(db, filter, filter.worst);
  const { limit, cursor } = filter;
  const [afterEnvironment, afterId] = cursor === undefined ? [] : readCursor(cursor, CURSOR).split('|');
  const conditions = [
    ...conditionsOf(filter),
    ...(afterId ? [Prisma.sql`(c.environment, c.company_id) > (${afterEnvironment}, ${afterId}::uuid)`] : []),
  ];
  const page = Prisma.sql`(
    SELECT c.* FROM ${companiesFor(filter)} WHERE ${Prisma.join(conditions, ' AND ')} ORDER BY c.environment, c.company_id LIMIT ${limit + 1}::int)`;
  const read = (by: Pick<Transaction, '$queryRaw'>) =>
    by.$queryRaw<ConnectionRow[]>`${selectFrom(page)} ORDER BY environment, company_id`;
  const rows = await (filter.search === undefined && filter.list === undefined ? read(db.prisma) : readByIndex(db, read));
  return pageOf(rows, limit, (row) => `${row.environment}|${row.companyId}`);
}

/** With their names, if names are searched. */
function companiesFor({ search }: Pick<ConnectionFilter, 'search'>): Prisma.Sql {
  if (search === undefined) return Prisma.sql`muster.connections c`;
  return Prisma.sql`muster.connections c
    LEFT JOIN mirror.companies m ON m.environment = c.environment AND m.company_id = c.company_id`;
}

function conditionsOf({ status, environment, search, list }: Omit<ConnectionFilter, 'limit'>): Prisma.Sql[] {
  return [
    Prisma.sql`TRUE`,
    ...(status ? [Prisma.sql`c.status = ${status}`] : []),
    ...(environment ? [Prisma.sql`c.environment = ${environment}`] : []),
    ...(list ? [hasListLike(list)] : []),
    ...(search === undefined
      ? []
      : [
          Prisma.sql`(starts_with(c.company_id::text, lower(${search}::text)) OR position(lower(${search}::text) IN lower(m.name)) > 0)`,
        ]),
  ];
}

/** The first rank that applies to a company. A company without a list was never synced. */
const RANKS = { mustAuthorize: 0, failed: 1, late: 2, unverified: 3, fine: 4, paused: 5 } as const;

/** The rank of a row of muster.lists, by its newest walk that ended and its last proof. */
function rankOfList(staleAfterHours: number): Prisma.Sql {
  return Prisma.sql`LEAST(
    COALESCE((
      SELECT CASE w.status WHEN 'failed' THEN ${RANKS.failed}::int ELSE ${RANKS.unverified}::int END FROM muster.walks w
      WHERE w.run_id = l.last_run_id AND w.resource = l.resource AND (w.error IS NOT NULL OR w.unverified_reason IS NOT NULL)
        AND w.unverified_reason IS DISTINCT FROM ${UNAVAILABLE}
        AND (w.status = 'failed' OR (w.status = 'succeeded' AND NOT w.verified)) LIMIT 1), ${RANKS.fine}::int),
    CASE WHEN l.last_verified_at >= now() - make_interval(hours => ${staleAfterHours}::int) OR l.unavailable_since IS NOT NULL THEN ${RANKS.fine}::int ELSE ${RANKS.late}::int END)`;
}

/** Orders by rank, environment and company_id. Ranks are computed for every page from all lists. */
async function listWorst(
  db: Database,
  { limit, cursor, ...filter }: ConnectionFilter,
  { resources, staleAfterHours }: NonNullable<ConnectionFilter['worst']>,
): Promise<Page<ConnectionRow>> {
  const [afterRank, afterEnvironment, afterId] = cursor === undefined ? [] : readCursor(cursor, CURSOR_OF_WORST).split('|');
  const after = afterId
    ? Prisma.sql`WHERE (rank, environment, company_id) > (${Number(afterRank)}::int, ${afterEnvironment}, ${afterId}::uuid)`
    : Prisma.empty;
  const page = Prisma.sql`(
    SELECT * FROM (
      SELECT c.*, CASE c.status WHEN 'reauthorization_required' THEN ${RANKS.mustAuthorize}::int WHEN 'paused' THEN ${RANKS.paused}::int
        ELSE COALESCE(l.rank, ${RANKS.late}::int) END AS rank
      FROM ${companiesFor(filter)} LEFT JOIN (
        SELECT environment, company_id, min(${rankOfList(staleAfterHours)}) AS rank FROM muster.lists l
        WHERE l.resource = ANY(${resources}::text[]) GROUP BY environment, company_id
      ) l ON l.environment = c.environment AND l.company_id = c.company_id
      WHERE ${Prisma.join(conditionsOf(filter), ' AND ')}
    ) ranked ${after} ORDER BY rank, environment, company_id LIMIT ${limit + 1}::int)`;
  const rows = await readByIndex(
    db,
    (tx) => tx.$queryRaw<(ConnectionRow & { rank: number })[]>`
      SELECT rows.* FROM (${selectFrom(page, Prisma.sql`, c.rank`)}) rows ORDER BY rank, environment, "companyId"::uuid`,
  );
  return pageOf(rows, limit, (row) => `${row.rank}|${row.environment}|${row.companyId}`);
}
