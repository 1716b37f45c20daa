// muster.connections as people search them: by name, in several orders. Reads only, and locks nothing.
import { type CompanyKey, ENVIRONMENTS, parseCompanyId } from '../../core/company.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { readByIndex } from '../statements/by-index.js';
import { type Page, type PageQuery, pageOf, readStart } from '../statements/cursor.js';
import { folded, foldText } from '../statements/folding.js';
import { type ConnectionRow, selectFrom } from './connections.js';
import { hasListLike, type ListFilter } from './list-states.js';
import { staleAfter, UNAVAILABLE } from './lists.js';

export const CONNECTION_ORDERS = ['worst', 'name', 'status', 'records', 'proved', 'next_sync'] as const;
export type ConnectionOrder = (typeof CONNECTION_ORDERS)[number];

export type ConnectionFilter = Partial<Pick<ConnectionRow, 'status' | 'environment'>> &
  PageQuery & {
    /** Part of the name, in any letter case and with or without diacritics, or the beginning of the company_id. */
    readonly search?: string | undefined;
    /** Companies that have such a list. */
    readonly list?: ListFilter | undefined;
    /** Otherwise by environment and company_id, which also order companies that are equal. */
    readonly sort?:
      | { readonly by: ConnectionOrder; readonly resources: readonly string[]; readonly staleAfterHours: StaleAfterHours }
      | undefined;
    readonly isDescending?: boolean | undefined;
  };

const COMPANY = '(production|test)\\|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const CURSOR = new RegExp(`^${COMPANY}$`);
const CURSOR_OF_NUMBER = new RegExp(`^${COMPANY}\\|-?\\d{1,18}$`);
/** PostgreSQL takes no NUL. */
const CURSOR_OF_TEXT = new RegExp(`^${COMPANY}\\|[^\\0]{0,1000}$`);

/**
 * Throws `invalid_request` for a cursor that no response gave. The statement contains only the filters that are given: a plan that fits all of them
 * would read all companies. A search reads companies and names side by side: an index on parts of names would need an extension of the server.
 */
export function listConnections(db: Database, filter: ConnectionFilter): Promise<Page<ConnectionRow>> {
  return filter.sort ? listSorted(db, filter, filter.sort) : listByKey(db, filter);
}

async function listByKey(db: Database, filter: ConnectionFilter): Promise<Page<ConnectionRow>> {
  const { limit, cursor, isDescending = false } = filter;
  const start = readStart(cursor, CURSOR);
  const [environment, id] = start?.position.split('|') ?? [];
  const [direction, after] = directionOf(isDescending, start);
  const conditions = [
    ...conditionsOf(filter),
    ...(id ? [Prisma.sql`(c.environment, c.company_id) ${after} (${environment}, ${id}::uuid)`] : []),
  ];
  const page = Prisma.sql`(
    SELECT c.* FROM ${companiesFor(filter)} WHERE ${Prisma.join(conditions, ' AND ')}
    ORDER BY c.environment ${direction}, c.company_id ${direction} LIMIT ${limit + 1}::int)`;
  const shown = Prisma.raw(isDescending ? 'DESC' : 'ASC');
  const read = (by: Pick<Transaction, '$queryRaw'>) =>
    by.$queryRaw<ConnectionRow[]>`${selectFrom(page)} ORDER BY environment ${shown}, company_id ${shown}`;
  const rows = await (isSimple(filter) ? read(db.prisma) : readByIndex(db, read));
  return pageOf(rows, limit, (row) => `${row.environment}|${row.companyId}`, start ?? null);
}

/** How many companies match, on all pages. */
export async function countConnections(db: Database, filter: Omit<ConnectionFilter, keyof PageQuery>): Promise<number> {
  const read = (by: Pick<Transaction, '$queryRaw'>) => by.$queryRaw<[{ count: number }]>`
    SELECT count(*)::int AS count FROM ${companiesFor(filter)} WHERE ${Prisma.join(conditionsOf(filter), ' AND ')}`;
  const [{ count }] = await readByIndex(db, read);
  return count;
}

/**
 * Companies whose name has this part or whose id begins with it. A whole id counts, too, where no company has it: what is known of a removed company is
 * found by it.
 */
export async function findCompaniesLike(
  db: Database,
  { search, environment }: { readonly search: string; readonly environment?: ConnectionRow['environment'] },
): Promise<CompanyKey[]> {
  const companyId = parseCompanyId(search);
  if (companyId !== undefined) return ENVIRONMENTS.map((each) => ({ environment: each, companyId }));
  return readByIndex(
    db,
    (tx) => tx.$queryRaw<CompanyKey[]>`
      SELECT c.environment, c.company_id::text AS "companyId" FROM ${companiesFor({ search })}
      WHERE ${Prisma.join(conditionsOf({ search, ...(environment && { environment }) }), ' AND ')}`,
  );
}

const isSimple = ({ search, list }: Omit<ConnectionFilter, keyof PageQuery>) => search === undefined && list === undefined;

/** How a page is read, and how the rows after its start compare with it. */
function directionOf(isDescending: boolean, start: { readonly isBefore: boolean } | undefined): [Prisma.Sql, Prisma.Sql] {
  const isReversed = isDescending !== (start?.isBefore === true);
  return isReversed ? [Prisma.raw('DESC'), Prisma.raw('<')] : [Prisma.raw('ASC'), Prisma.raw('>')];
}

/** With their names, if names are asked for. */
function companiesFor({ search }: Pick<ConnectionFilter, 'search'>, hasNames = search !== undefined): Prisma.Sql {
  if (!hasNames) return Prisma.sql`muster.connections c`;
  return Prisma.sql`muster.connections c
    LEFT JOIN mirror.companies m ON m.environment = c.environment AND m.company_id = c.company_id`;
}

function conditionsOf({ status, environment, search, list }: Omit<ConnectionFilter, 'limit'>): Prisma.Sql[] {
  return [
    // Without a condition the planner has no path by index.
    Prisma.sql`c.environment = ANY(${[...ENVIRONMENTS]}::text[])`,
    ...(status ? [Prisma.sql`c.status = ${status}`] : []),
    ...(environment ? [Prisma.sql`c.environment = ${environment}`] : []),
    ...(list ? [hasListLike(list)] : []),
    ...(search === undefined
      ? []
      : [
          Prisma.sql`(starts_with(c.company_id::text, ${search.trim().toLowerCase()}::text)
            OR position(${foldText(search.trim())}::text IN ${folded(Prisma.sql`m.name`)}) > 0)`,
        ]),
  ];
}

/** The first rank that applies to a company. A company without a list was never synced. */
const RANKS = { mustAuthorize: 0, failed: 1, late: 2, unverified: 3, fine: 4, paused: 5 } as const;

/** The rank of a row of muster.lists, by its newest walk that ended and its last proof. */
function rankOfList(staleAfterHours: StaleAfterHours): Prisma.Sql {
  return Prisma.sql`LEAST(
    COALESCE((
      SELECT CASE w.status WHEN 'failed' THEN ${RANKS.failed}::int ELSE ${RANKS.unverified}::int END FROM muster.walks w
      WHERE w.run_id = l.last_run_id AND w.resource = l.resource AND (w.error IS NOT NULL OR w.unverified_reason IS NOT NULL)
        AND w.unverified_reason IS DISTINCT FROM ${UNAVAILABLE}
        AND (w.status = 'failed' OR (w.status = 'succeeded' AND NOT w.verified)) LIMIT 1), ${RANKS.fine}::int),
    CASE WHEN l.last_verified_at >= now() - ${staleAfter(staleAfterHours, Prisma.sql`l.resource`)} OR l.unavailable_since IS NOT NULL THEN ${RANKS.fine}::int ELSE ${RANKS.late}::int END)`;
}

/** Microseconds, so that a cursor has every digit. */
const micros = (time: Prisma.Sql) => Prisma.sql`(extract(epoch FROM ${time}) * 1000000)::bigint`;
/** After every time, for a company that has none. */
const NO_TIME = 999_999_999_999_999_999n;

/** The value by which companies are ordered, of `c`, `m` and `l`, which sums up the lists of `c`. */
function keyOf({ by, staleAfterHours }: NonNullable<ConnectionFilter['sort']>): {
  readonly key: Prisma.Sql;
  readonly ofLists: Prisma.Sql;
} {
  const none = Prisma.sql`NULL`;
  switch (by) {
    case 'worst':
      return {
        key: Prisma.sql`CASE c.status WHEN 'reauthorization_required' THEN ${RANKS.mustAuthorize}::bigint WHEN 'paused' THEN ${RANKS.paused}::bigint
          ELSE COALESCE(l.value, ${RANKS.late}::bigint) END`,
        ofLists: Prisma.sql`min(${rankOfList(staleAfterHours)})`,
      };
    case 'name':
      return {
        key: Prisma.sql`(COALESCE(left(${folded(Prisma.sql`m.name`)}, 900), c.company_id::text) COLLATE "C")`,
        ofLists: none,
      };
    case 'status':
      return { key: Prisma.sql`(c.status COLLATE "C")`, ofLists: none };
    case 'records':
      return { key: Prisma.sql`COALESCE(l.value, 0)`, ofLists: Prisma.sql`sum(l.records)::bigint` };
    case 'proved':
      // The oldest proof of its lists; a company with a list that was never proved comes first.
      return {
        key: Prisma.sql`COALESCE(l.value, 0)`,
        ofLists: Prisma.sql`min(COALESCE(${micros(Prisma.sql`l.last_verified_at`)}, 0)) FILTER (WHERE l.unavailable_since IS NULL)`,
      };
    case 'next_sync':
      // The night, or the first of the lists with a schedule of their own.
      return {
        key: Prisma.sql`COALESCE(${micros(Prisma.sql`LEAST(c.next_sync_at, (
          SELECT min(s.next_sync_at) FROM muster.scheduled_lists s WHERE s.environment = c.environment AND s.company_id = c.company_id))`)}, ${NO_TIME}::bigint)`,
        ofLists: none,
      };
  }
}

/** Orders by a value, environment and company_id. The values are computed for every page from all companies. */
async function listSorted(
  db: Database,
  { limit, cursor, isDescending = false, ...filter }: ConnectionFilter,
  sort: NonNullable<ConnectionFilter['sort']>,
): Promise<Page<ConnectionRow>> {
  const isText = sort.by === 'name' || sort.by === 'status';
  const start = readStart(cursor, isText ? CURSOR_OF_TEXT : CURSOR_OF_NUMBER);
  const [environment, id, ...rest] = start?.position.split('|') ?? [];
  const value = isText ? Prisma.sql`${rest.join('|')}::text` : Prisma.sql`${BigInt(rest[0] ?? 0)}::bigint`;
  const [direction, after] = directionOf(isDescending, start);
  const condition = id
    ? Prisma.sql`WHERE (key, environment, company_id) ${after} (${value}, ${environment}, ${id}::uuid)`
    : Prisma.empty;
  const { key, ofLists } = keyOf(sort);
  const page = Prisma.sql`(
    SELECT * FROM (
      SELECT c.*, ${key} AS key FROM ${companiesFor(filter, true)} LEFT JOIN (
        SELECT environment, company_id, ${ofLists} AS value FROM muster.lists l
        WHERE l.resource = ANY(${sort.resources}::text[]) GROUP BY environment, company_id
      ) l ON l.environment = c.environment AND l.company_id = c.company_id
      WHERE ${Prisma.join(conditionsOf(filter), ' AND ')}
    ) sorted ${condition} ORDER BY key ${direction}, environment ${direction}, company_id ${direction} LIMIT ${limit + 1}::int)`;
  const shown = Prisma.raw(isDescending ? 'DESC' : 'ASC');
  const rows = await readByIndex(
    db,
    (tx) => tx.$queryRaw<(ConnectionRow & { key: string })[]>`
      SELECT rows.* FROM (${selectFrom(page, Prisma.sql`, c.key::text AS key, c.key AS place`)}) rows
      ORDER BY place ${shown}, environment ${shown}, "companyId"::uuid ${shown}`,
  );
  return pageOf(rows, limit, (row) => `${row.environment}|${row.companyId}|${row.key}`, start ?? null);
}
