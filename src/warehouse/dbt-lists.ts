import type { Catalogue, Endpoint } from '../catalogue/endpoint.js';
import type { Reader } from '../db/connection/read-only.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { Prisma } from '../generated/prisma/client.js';
import { describe } from './dbt-descriptions.js';
import type { DbtColumn, DbtInput, DbtList, DbtRecords, DbtView } from './dbt-input.js';
import { findReferences, findRepeatedId } from './dbt-references.js';

/** A key of the records that has a column: a row of `warehouse.columns`. */
interface KeyColumn {
  readonly resource: string;
  readonly view: string;
  readonly column: string;
  readonly path: readonly string[];
  readonly type: string;
  readonly firstSeen: string;
}

const FACTS = ['companies', 'lists', 'runs', 'walks', 'barriers', 'feed', 'as_of_limits', 'columns'];

/** The views of the catalogue's lists, with descriptions, and the references between them. */
export async function readDbtInput(db: Reader, { endpoints }: Pick<Catalogue, 'endpoints'>): Promise<DbtInput> {
  const keys = await readKeyColumns(db);
  const views = await readViews(db, keys);
  const arrays = await readArrays(db);
  const present = endpoints.filter(({ resource }) => views.has(resource));
  const resources = present.map(({ resource }) => resource);
  const missing: string[] = [];

  const records = async (endpoint: Endpoint, view: DbtView): Promise<DbtRecords> => {
    const outer = view.name === endpoint.resource ? [] : arrays.get(view.name);
    const found = await findReferences(db, { endpoint, view, outer, resources });
    return { ...view, ...found, repeated: outer?.length === 0 ? await findRepeatedId(db, endpoint, view) : [] };
  };
  const lists: DbtList[] = [];
  for (const endpoint of present) {
    const { resource } = endpoint;
    const living = await records(endpoint, views.get(resource)!);
    const names = new Set(keys.filter((key) => key.resource === resource && key.view !== resource).map(({ view }) => view));
    const elements: DbtRecords[] = [];
    for (const name of [...names].toSorted()) {
      const view = views.get(name);
      if (view !== undefined) elements.push(await records(endpoint, view));
    }
    const found = new Set([living, ...elements].flatMap(({ references }) => references.map(({ path }) => path)));
    const declared = Object.keys(endpoint.references ?? {});
    missing.push(...declared.filter((path) => !found.has(path)).map((path) => `${resource}.${path}`));
    lists.push({
      resource,
      living,
      elements,
      history: views.get(`${resource}_history`),
      changes: views.get(`${resource}_changes`),
    });
  }
  return { lists, facts: FACTS.flatMap((name) => views.get(name) ?? []), missing };
}

/** Every view of schema `warehouse` by its name. */
async function readViews(db: Reader, keys: readonly KeyColumn[]): Promise<Map<string, DbtView>> {
  const { rows } = await withDatabaseErrors(
    db.query<{ view: string; comment: string | null; name: string; type: string; columnComment: string | null }>(Prisma.sql`
      SELECT c.relname::text AS view, obj_description(c.oid, 'pg_class') AS comment, a.attname::text AS name,
        format_type(a.atttypid, a.atttypmod) AS type, col_description(c.oid, a.attnum) AS "columnComment"
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      WHERE c.relnamespace = to_regnamespace('warehouse') AND c.relkind IN ('v', 'm', 'r', 'p', 'f') ORDER BY c.relname, a.attnum`),
  );
  const keyOf = new Map(keys.map((key) => [`${key.view} ${key.column}`, key]));
  const views = new Map<string, DbtView & { columns: DbtColumn[] }>();
  for (const { view: name, comment, name: column, type, columnComment } of rows) {
    const view = views.get(name) ?? { name, description: comment ?? '', columns: [] };
    // The history and the changes have the columns of the list.
    const key = keyOf.get(`${name.replace(/_(history|changes)$/, '')} ${column}`) ?? keyOf.get(`${name} ${column}`);
    const description = columnComment ?? describe(column, key);
    view.columns.push({ name: column, type, description, ...(key && { path: key.path }) });
    views.set(name, view);
  }
  return views;
}

/** An older database has no views of array elements, and no column that names them. */
async function readKeyColumns(db: Reader): Promise<KeyColumn[]> {
  const { rows } = await withDatabaseErrors(
    db.query<KeyColumn>(Prisma.sql`
      SELECT resource, COALESCE(to_jsonb(c) ->> 'view', resource) AS view, "column", path, type,
        to_char(first_seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS "firstSeen"
      FROM warehouse.columns c ORDER BY resource, position`),
  );
  return rows;
}

/** Where in the record the array of each view of elements is; of an array in an array, the path through both. Readers of `warehouse` alone do not know it. */
async function readArrays(db: Reader): Promise<Map<string, readonly string[]>> {
  const { rows: known } = await withDatabaseErrors(
    db.query<{ known: boolean }>(
      Prisma.sql`SELECT COALESCE(has_table_privilege(to_regclass('muster.schema_arrays'), 'SELECT'), false) AS known`,
    ),
  );
  if (!known[0]!.known) return new Map();
  const { rows } = await withDatabaseErrors(
    db.query<{ view: string; path: string[] }>(
      Prisma.sql`SELECT view, path || COALESCE(inner_path, '{}') AS path FROM muster.schema_arrays`,
    ),
  );
  return new Map(rows.map(({ view, path }) => [view, path]));
}
