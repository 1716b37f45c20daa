import type { Database } from '../../src/db/connection/database.js';

/** Where a text occurs in the database: as `table.column`, of every table and view of every schema that is not PostgreSQL's own, bytes and base64 included. */
export async function occurrencesOf({ pool }: Pick<Database, 'pool'>, text: string): Promise<string[]> {
  const { rows: columns } = await pool.query<{ place: string; from: string; name: string; type: string }>(
    `SELECT format('%s.%s.%s', n.nspname, c.relname, a.attname) AS place, format('%I.%I', n.nspname, c.relname) AS from,
            quote_ident(a.attname) AS name, a.atttypid::regtype::text AS type
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'v', 'm') AND a.attnum > 0 AND NOT a.attisdropped
       AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' ORDER BY 1`,
  );
  const found = new Set<string>();
  // Each table is read once: most of them are views, of which every reading computes all.
  for (const from of new Set(columns.map((column) => column.from))) {
    const own = columns.filter((column) => column.from === from);
    const { rows } = await pool.query<(boolean | null)[]>({
      text: `SELECT ${own.map((column) => `bool_or(${holds(column)})`).join(', ')} FROM ${from}`,
      values: [text],
      rowMode: 'array',
    });
    for (const [n, { place }] of own.entries()) if (rows[0]![n]) found.add(place);
  }
  return columns.map(({ place }) => place).filter((place) => found.has(place));
}

function holds({ place, name, type }: { readonly place: string; readonly name: string; readonly type: string }): string {
  const value = place === 'muster.rejected_records.text' ? `decode(${name}, 'base64')` : name;
  return type === 'bytea' || value !== name
    ? `position(convert_to($1, 'UTF8') IN ${value}) > 0`
    : `strpos(${value}::text, $1) > 0`;
}
