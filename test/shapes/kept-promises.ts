import type pg from 'pg';
import type { Json } from '../warehouse/warehouse-fixture.js';
import type { HrShape } from './hr-shapes.js';
import { isMembers, type Members } from './people.js';

// The promises of schema warehouse, asked of the views of one list: columns keep name, type and place; and every value of every record is somewhere.

/** A column of a view of the list. */
interface ViewColumn {
  readonly view: string;
  readonly name: string;
  readonly type: string;
}

/** The columns of every view of the list, in their places. */
export async function viewColumns(pool: pg.Pool, list: string): Promise<Map<string, ViewColumn[]>> {
  const { rows } = await pool.query<ViewColumn>(
    `SELECT c.relname::text AS view, a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
     WHERE c.relnamespace = 'warehouse'::regnamespace AND c.relkind = 'v' AND starts_with(c.relname, $1) ORDER BY c.relname, a.attnum`,
    [list],
  );
  const views = new Map<string, ViewColumn[]>();
  for (const row of rows) views.set(row.view, [...(views.get(row.view) ?? []), row]);
  return views;
}

const IN_USE: Readonly<Record<string, (column: string) => string>> = {
  numeric: (column) => `sum(${column} * 2)`,
  boolean: (column) => `bool_or(NOT ${column})`,
  date: (column) => `max(${column} + 1)`,
  'timestamp without time zone': (column) => `max(${column} + interval '1 day')`,
  'timestamp with time zone': (column) => `max(${column} + interval '1 day')`,
  text: (column) => `max(upper(${column}))`,
  jsonb: (column) => `count(${column} -> 'value')`,
};

/** Queries that an analyst writes of these columns: each of them in use as its type allows. */
export function queriesOf(view: string, columns: readonly ViewColumn[]): string[] {
  const uses = columns.map(({ name, type }) => (IN_USE[type] ?? ((column) => `count(${column})`))(`"${name}"`));
  return [`SELECT ${uses.join(', ')} FROM warehouse."${view}"`];
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** A JSON text whose numbers keep their digits: each becomes a text that begins with `#`. */
export function withDigits(text: string): Json {
  return JSON.parse(text.replace(TOKEN, (found) => (found.startsWith('"') ? found : `"#${found}"`))) as Json;
}

/** The scalars in a value. */
function leavesOf(value: Json): Json[] {
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(leavesOf);
  if (isMembers(value)) return Object.values(value).flatMap(leavesOf);
  return value === null ? [] : [value];
}

/** A value as it is compared, whatever column shows it: digits as a text, moments as an instant. */
function comparable(value: Json): string {
  if (typeof value !== 'string') return String(value);
  if (/^#?-?\d+(\.\d+)?$/.test(value))
    return value
      .replace('#', '')
      .replace(/(\.\d*?)0+$/, '$1')
      .replace(/\.$/, '');
  return /^\d{4}-\d\d-\d\d[T ]\d\d:/.test(value) ? `at ${Date.parse(value)}` : value;
}

/** Whether a row shows a value: in a column of its type, as a text, or within an array or the rest. */
function shownBy(row: Members): (value: Json) => boolean {
  const shown = new Set<string>();
  const show = (value: Json) => {
    for (const leaf of leavesOf(value)) {
      shown.add(comparable(leaf));
      if (typeof leaf !== 'string' || !/^[[{]/.test(leaf)) continue;
      try {
        show(withDigits(leaf)); // an array or object in a column of texts
      } catch {} // a text that looks like one
    }
  };
  show(row);
  return (value) => shown.has(comparable(value));
}

/** Values of the record that the list's row does not show. */
export function lostValues(record: Members, row: Members): Json[] {
  const isShown = shownBy(row);
  return leavesOf(record).filter((value) => !isShown(value));
}

/** A view of array elements: of the arrays at `path` in the record, and of those at `inner` in their elements. */
export interface ArrayView {
  readonly view: string;
  readonly path: readonly string[];
  readonly inner: readonly string[] | null;
}

export async function arrayViews(pool: pg.Pool, list: string): Promise<ArrayView[]> {
  const { rows } = await pool.query<Record<string, never>>(
    `SELECT to_jsonb(a) AS row FROM muster.schema_arrays a WHERE resource = $1 ORDER BY view`,
    [list],
  );
  return rows.map(({ row }) => {
    const { view, path, inner_path: inner } = row as unknown as { view: string; path: string[]; inner_path: string[] | null };
    return { view, path, inner: inner && inner.length > 0 ? inner : null };
  });
}

/** An element with its places, which its view must have a row for. */
interface Element {
  readonly places: readonly number[];
  readonly value: Members;
}

/** The elements that the view must show of a record: an object counts as a list of one, and what is no object has no row. */
function elementsOf(record: Members, { path, inner }: ArrayView): Element[] {
  const outer = elementsAt(record, path);
  if (inner === null) return outer;
  return outer.flatMap(({ places, value }) =>
    elementsAt(value, inner).map((element) => ({ places: [...places, ...element.places], value: element.value })),
  );
}

function elementsAt(record: Members, path: readonly string[]): Element[] {
  let value: Json | undefined = record;
  for (const key of path) value = isMembers(value) ? value[key] : undefined;
  const all = Array.isArray(value) ? (value as readonly Json[]) : isMembers(value) ? [value] : [];
  return all.flatMap((each, place) => (isMembers(each) ? [{ places: [place], value: each }] : []));
}

/** The rows of views, by company and id, with all digits. */
export async function rowsOf(
  pool: pg.Pool,
  view: string,
  companyId: string,
  ids: readonly string[],
): Promise<Map<string, Members[]>> {
  const { rows } = await pool.query<{ id: string; row: string }>(
    `SELECT id, to_jsonb(v)::text AS row FROM warehouse."${view}" v WHERE company_id = $1 AND id = ANY($2::text[])`,
    [companyId, ids],
  );
  const found = new Map<string, Members[]>();
  for (const { id, row } of rows) found.set(id, [...(found.get(id) ?? []), withDigits(row) as Members]);
  return found;
}

/** What is lost of these records: values that no column shows, and elements without their row. */
export async function lostIn(
  pool: pg.Pool,
  shape: HrShape,
  companyId: string,
  records: ReadonlyMap<string, string>,
): Promise<object[]> {
  const ids = [...records.keys()];
  const lost: object[] = [];
  const rows = await rowsOf(pool, shape.name, companyId, ids);
  const views = await arrayViews(pool, shape.name);
  const elements = await Promise.all(views.map(({ view }) => rowsOf(pool, view, companyId, ids)));
  for (const [id, text] of records) {
    const record = withDigits(text) as Members;
    const [row, ...more] = rows.get(id) ?? [];
    if (row === undefined || more.length > 0) lost.push({ view: shape.name, id, rows: rows.get(id)?.length ?? 0 });
    else {
      const values = lostValues(record, row);
      if (values.length > 0) lost.push({ view: shape.name, id, values });
    }
    for (const [i, view] of views.entries()) {
      const shown = elements[i]!.get(id) ?? [];
      const expected = elementsOf(record, view);
      const placesOf = (each: Members) => [each['_idx'], each['_idx_2']].filter((place) => place !== undefined).join();
      const byPlace = new Map(shown.map((each) => [placesOf(each), each]));
      if (shown.length !== expected.length || byPlace.size !== shown.length)
        lost.push({ view: view.view, id, elements: expected.length, rows: shown.length });
      for (const { places, value } of expected) {
        const element = byPlace.get(places.map((place) => `#${place}`).join());
        const values = element === undefined ? 'no row' : lostValues(value, element);
        if (values.length > 0) lost.push({ view: view.view, id, places, values });
      }
    }
  }
  return lost;
}
