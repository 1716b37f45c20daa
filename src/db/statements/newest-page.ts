import type { CompanyKey } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { readByIndex } from './by-index.js';
import { readNumberedStart } from './cursor.js';

/** Companies that are looked up one by one. More are a good part of all, so that reading the newest rows finds a page of them soon. */
export const FEW_COMPANIES = 200;

export interface OfCompanies {
  /** Only rows of these companies. */
  readonly companies?: readonly CompanyKey[] | undefined;
}

/** Which rows of a table, newest first. */
interface Newest extends OfCompanies {
  readonly table: 'runs' | 'holds' | 'notifications';
  /**
   * Columns with the values that they may have: one where a filter fixes it, else all. The index `…_by_filters` begins with these columns and ends with
   * `-seq`; each combination of the values is looked up in it, so that one index serves every choice of filters. Fifty combinations at most.
   */
  readonly choices?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Over columns of the table, which is called `t`. */
  readonly conditions?: readonly Prisma.Sql[];
  /** Values between which `seq` stands. */
  readonly above?: readonly Prisma.Sql[] | undefined;
  readonly below?: readonly Prisma.Sql[] | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** Reads newest rows. Those of many companies are read by index, since the planner expects to find few of them, and would sort the whole table. */
export function readNewest<T>(
  db: Pick<Database, 'prisma'>,
  { companies }: OfCompanies,
  read: (by: Pick<Transaction, '$queryRaw'>) => Promise<T>,
): Promise<T> {
  return companies !== undefined && companies.length > FEW_COMPANIES ? readByIndex(db, read) : read(db.prisma);
}

/**
 * The query of the rows, newest first; from a cursor that leads back, the rows next to it, oldest first. Throws `invalid_request` for a cursor that no
 * answer gave.
 */
export function newestRows(query: Newest): Prisma.Sql {
  const { table, companies, conditions = [], above = [], below = [], limit } = query;
  const start = readNumberedStart(query.cursor);
  const at = start ? [Prisma.sql`${start.position}::bigint`] : [];
  const isOfFew = companies !== undefined && companies.length <= FEW_COMPANIES;
  const choices = isOfFew ? undefined : query.choices;
  const unchosen = isOfFew ? Object.entries(query.choices ?? {}) : [];
  const names = Object.keys(choices ?? {});
  const [lower, upper] = start?.isBefore ? [[...above, ...at], below] : [above, [...below, ...at]];
  const all = [
    Prisma.sql`TRUE`,
    ...conditions,
    ...unchosen.map(([name, values]) => Prisma.sql`t.${Prisma.raw(name)} = ANY(${[...values]}::text[])`),
    ...names.map((name) => Prisma.sql`t.${Prisma.raw(name)} = chosen.${Prisma.raw(name)}`),
    ...lower.map((seq) => (choices ? Prisma.sql`-t.seq < -${seq}` : Prisma.sql`t.seq > ${seq}`)),
    ...upper.map((seq) => (choices ? Prisma.sql`-t.seq > -${seq}` : Prisma.sql`t.seq < ${seq}`)),
  ];
  const direction = Prisma.raw(start?.isBefore ? 'ASC' : 'DESC');
  const order = choices ? Prisma.sql`-t.seq ${Prisma.raw(start?.isBefore ? 'DESC' : 'ASC')}` : Prisma.sql`t.seq ${direction}`;
  const rowsWith = (more: readonly Prisma.Sql[]) => Prisma.sql`
    SELECT t.* FROM muster.${Prisma.raw(table)} t WHERE ${Prisma.join([...all, ...more], ' AND ')} ORDER BY ${order} LIMIT ${limit}::int`;
  const end = Prisma.sql`ORDER BY t.seq ${direction} LIMIT ${limit}::int`;
  if (!choices) return rowsOfCompanies(companies, rowsWith, end);
  const combinations = combine(Object.values(choices));
  const columns = names.map((_, column) => Prisma.sql`${combinations.map((values) => values[column]!)}::text[]`);
  return Prisma.sql`
    SELECT t.* FROM unnest(${Prisma.join(columns)}) AS chosen(${Prisma.raw(names.join(', '))})
    CROSS JOIN LATERAL (${rowsOfCompanies(companies, rowsWith, end)}) t ${end}`;
}

/**
 * Rows of these companies, or of all without any. `rowsWith` reads a table or a view `t` with further conditions, and `end` has the order and the limit
 * of all rows.
 */
export function rowsOfCompanies(
  companies: readonly CompanyKey[] | undefined,
  rowsWith: (conditions: readonly Prisma.Sql[]) => Prisma.Sql,
  end: Prisma.Sql,
): Prisma.Sql {
  if (companies === undefined) return rowsWith([]);
  const environments = companies.map(({ environment }) => environment);
  const ids = companies.map(({ companyId }) => companyId);
  const given = Prisma.sql`unnest(${environments}::text[], ${ids}::uuid[])`;
  if (companies.length > FEW_COMPANIES) return rowsWith([Prisma.sql`(t.environment, t.company_id) IN (SELECT * FROM ${given})`]);
  return Prisma.sql`
    SELECT t.* FROM ${given} AS given(environment, company_id)
    CROSS JOIN LATERAL (${rowsWith([Prisma.sql`t.environment = given.environment AND t.company_id = given.company_id`])}) t ${end}`;
}

/** The condition that a column has the value, where one is given. */
export function isGiven(column: string, value: string | undefined, type: 'text' | 'uuid' = 'text'): Prisma.Sql[] {
  return value === undefined ? [] : [Prisma.sql`t.${Prisma.raw(column)} = ${value}::${Prisma.raw(type)}`];
}

function combine(lists: readonly (readonly string[])[]): string[][] {
  let all: string[][] = [[]];
  for (const values of lists) all = all.flatMap((before) => values.map((value) => [...before, value]));
  return all;
}
