import pg from 'pg';
import type { Reader } from '../db/connection/read-only.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { Prisma } from '../generated/prisma/client.js';

/** The input for a dbt package. */
export interface DbtList {
  /** Name of the resource, and of its view in schema `warehouse`. */
  readonly resource: string;
  /** The view's columns, in its order. */
  readonly columns: readonly string[];
  /** Columns of `warehouse.<resource>_history`, in its order. */
  readonly historyColumns: readonly string[];
  /** Whether it was walked for any company: otherwise its freshness is unknown. */
  readonly isWalked: boolean;
  readonly references: readonly DbtReference[];
}

/** A reference: every examined value of `column` is the id of a record of `resource` of the same company; in the same list, the id of another record. */
export interface DbtReference {
  readonly column: string;
  readonly resource: string;
}

/** How many values of a column are examined: the first ones rule most columns out. */
const FIRST_LOOK = 20;
const LOOK = 5_000;

/** A reference needs at least this many values: a handful may agree by chance. */
const FEWEST_VALUES = 5;

/** The lists of these resources that have a view in schema `warehouse`, and the references between them that the records show. */
export async function readDbtLists(db: Reader, resources: readonly string[]): Promise<DbtList[]> {
  const columnsOfEach = new Map<string, Column[]>();
  for (const resource of resources) {
    const columns = await columnsOf(db, resource);
    if (columns.length > 0) columnsOfEach.set(resource, columns);
  }
  const lists: DbtList[] = [];
  for (const [resource, columns] of columnsOfEach) {
    const references: DbtReference[] = [];
    for (const { name: column } of columns.filter(mayRefer)) {
      const referred = await firstReferred(db, { resource, column }, [...columnsOfEach.keys()]);
      if (referred !== undefined) references.push({ column, resource: referred });
    }
    lists.push({
      resource,
      columns: columns.map(({ name }) => name),
      historyColumns: (await columnsOf(db, `${resource}_history`)).map(({ name }) => name),
      isWalked: await isWalked(db, resource),
      references,
    });
  }
  return lists;
}

interface Column {
  readonly name: string;
  /** The type's name in PostgreSQL. */
  readonly type: string;
}

/** Ids are texts, and the columns that Muster adds to every view are not references. */
function mayRefer({ name, type }: Column): boolean {
  return type === 'text' && !/^(environment|company_id|id|_.*)$/.test(name);
}

async function columnsOf(db: Reader, relation: string): Promise<Column[]> {
  const { rows } = await withDatabaseErrors(
    db.query<Column>(
      Prisma.sql`SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
       WHERE attrelid = to_regclass(${view(relation)}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    ),
  );
  return rows;
}

async function isWalked(db: Reader, resource: string): Promise<boolean> {
  const { rows } = await withDatabaseErrors(
    db.query<{ found: boolean }>(
      Prisma.sql`SELECT EXISTS (SELECT FROM ${Prisma.raw(view('lists'))} WHERE resource = ${resource}) AS found`,
    ),
  );
  return rows[0]!.found;
}

async function firstReferred(
  db: Reader,
  of: { readonly resource: string; readonly column: string },
  resources: readonly string[],
): Promise<string | undefined> {
  for (const resource of resources)
    if ((await refers(db, of, resource, FIRST_LOOK)) && (await refers(db, of, resource, LOOK))) return resource;
  return undefined;
}

async function refers(
  db: Reader,
  { resource, column }: { readonly resource: string; readonly column: string },
  referred: string,
  limit: number,
): Promise<boolean> {
  // A list's ids are also in the column of their own key, which refers to no other record.
  const ownId = referred === resource ? 'id' : 'NULL::text';
  const { rows } = await withDatabaseErrors(
    db.query<{ different: number; unknown: number }>(
      `SELECT (count(DISTINCT v.value) FILTER (WHERE v.id IS DISTINCT FROM v.value))::int AS different,
         (count(*) FILTER (WHERE r.id IS NULL))::int AS unknown
       FROM (SELECT environment, company_id, ${ownId} AS id, ${pg.escapeIdentifier(column)} AS value FROM ${view(resource)}
             WHERE ${pg.escapeIdentifier(column)} IS NOT NULL LIMIT ${limit}) v
       LEFT JOIN ${view(referred)} r ON r.environment = v.environment AND r.company_id = v.company_id AND r.id = v.value`,
    ),
  );
  return rows[0]!.unknown === 0 && rows[0]!.different >= FEWEST_VALUES;
}

function view(name: string): string {
  return `warehouse.${pg.escapeIdentifier(name)}`;
}
