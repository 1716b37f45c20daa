import { Prisma } from '../../generated/prisma/client.js';
import { readCursor } from './cursor.js';

/** Which rows of a table, newest first. */
interface Newest {
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

/** The query of the rows, newest first. Throws `invalid_request` for a cursor that no answer gave. */
export function newestRows({ table, choices, conditions = [], above = [], below = [], limit, cursor }: Newest): Prisma.Sql {
  const names = Object.keys(choices ?? {});
  const before = cursor === undefined ? [] : [Prisma.sql`${BigInt(readCursor(cursor, /^\d{1,18}$/))}::bigint`];
  const all = [
    Prisma.sql`TRUE`,
    ...conditions,
    ...names.map((name) => Prisma.sql`t.${Prisma.raw(name)} = chosen.${Prisma.raw(name)}`),
    ...above.map((seq) => (choices ? Prisma.sql`-t.seq < -${seq}` : Prisma.sql`t.seq > ${seq}`)),
    ...[...before, ...below].map((seq) => (choices ? Prisma.sql`-t.seq > -${seq}` : Prisma.sql`t.seq < ${seq}`)),
  ];
  const order = choices ? Prisma.sql`-t.seq` : Prisma.sql`t.seq DESC`;
  const rows = Prisma.sql`
    SELECT t.* FROM muster.${Prisma.raw(table)} t WHERE ${Prisma.join(all, ' AND ')} ORDER BY ${order} LIMIT ${limit}::int`;
  if (!choices) return rows;
  const combinations = combine(Object.values(choices));
  const columns = names.map((_, column) => Prisma.sql`${combinations.map((values) => values[column]!)}::text[]`);
  return Prisma.sql`
    SELECT t.* FROM unnest(${Prisma.join(columns)}) AS chosen(${Prisma.raw(names.join(', '))}) CROSS JOIN LATERAL (${rows}) t
    ORDER BY t.seq DESC LIMIT ${limit}::int`;
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
