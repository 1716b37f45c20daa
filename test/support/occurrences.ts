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
  const found: string[] = [];
  for (const { place, from, name, type } of columns) {
    const isBytes = type === 'bytea';
    const value = place === 'muster.rejected_records.text' ? `decode(${name}, 'base64')` : name;
    const holds =
      isBytes || value !== name ? `position(convert_to($1, 'UTF8') IN ${value}) > 0` : `strpos(${value}::text, $1) > 0`;
    const { rows } = await pool.query<{ any: boolean }>(`SELECT EXISTS (SELECT FROM ${from} WHERE ${holds}) AS any`, [text]);
    if (rows[0]!.any) found.push(place);
  }
  return found;
}
