import pg from 'pg';
import type { Database } from '../db/connection/database.js';
import type { Transaction } from '../db/connection/transaction.js';
import type { ColumnRow } from '../db/tables/schema-columns.js';
import { textColumn } from './column-names.js';

/** A view of a list's records. */
interface CommentedView {
  readonly comment: string;
  /** Quoted, with its schema. */
  readonly name: string;
}

/** A longer path in a comment is cut: a record may bring keys of any length. */
const LONGEST_PATH = 500;

const FIXED_COLUMNS: Readonly<Record<string, string>> = {
  environment: 'production or test',
  company_id: 'The company',
  id: 'The id of the record within its list and company',
  _first_seen_at: 'When the record was first received',
  _changed_at: 'When the record was last changed; in a view of changes, when this change was made',
  _verified_at: 'As of when the list was last proved complete; null if it never was',
  _valid_from: 'From when on the version was valid',
  _valid_to: 'Until when the version was valid, this instant excluded; null for the current version',
  _is_current: 'Whether the version is the current one',
  _op: 'What the change was: insert, update, delete or restore',
  _seq: 'The number of the change',
  _next_seq: 'The number of the change that ended the version; null for the newest one',
  _idx: 'The place of the element in its array, from 0',
  _idx_2: 'The place of the inner element in the inner array, from 0',
  _rest: 'Members without a column; null where there are none',
};

/**
 * Writes what a view and its columns are as their comments, where these differ from what is there. The view's owner alone may; readers of the view are not
 * waited for.
 */
export async function commentOnView(tx: Transaction, view: CommentedView, rows: readonly ColumnRow[]): Promise<void> {
  const present = await tx.$queryRaw<{ column: string | null; comment: string | null }[]>`
    SELECT a.attname::text AS column, COALESCE(col_description(v.oid, a.attnum), '') AS comment
    FROM pg_class v JOIN pg_attribute a ON a.attrelid = v.oid AND a.attnum > 0 WHERE v.oid = to_regclass(${view.name})
    UNION ALL SELECT NULL, COALESCE(obj_description(to_regclass(${view.name}), 'pg_class'), '')`;
  const texts = new Map(Object.entries(FIXED_COLUMNS));
  for (const [column, text] of rows.flatMap(keyComments)) texts.set(column, text);
  const statements = present.flatMap(({ column, comment }) => {
    const text = column === null ? view.comment : texts.get(column);
    if (text === undefined || text === comment) return [];
    const object = column === null ? `VIEW ${view.name}` : `COLUMN ${view.name}.${pg.escapeIdentifier(column)}`;
    return [`COMMENT ON ${object} IS ${pg.escapeLiteral(text)};`];
  });
  if (statements.length > 0) await tx.$executeRawUnsafe(`DO ${pg.escapeLiteral(`BEGIN ${statements.join('\n')} END`)}`);
}

/** The views whose own comment is missing or is that of another release, among those that this role owns. */
export async function findUncommented<View extends CommentedView>(
  db: Pick<Database, 'prisma'>,
  views: readonly View[],
): Promise<View[]> {
  const rows = await db.prisma.$queryRaw<{ name: string }[]>`
    SELECT v.name FROM unnest(${views.map(({ name }) => name)}::text[], ${views.map(({ comment }) => comment)}::text[]) AS v(name, text)
    JOIN pg_class c ON c.oid = to_regclass(v.name)
    WHERE pg_has_role(c.relowner, 'USAGE') AND obj_description(c.oid, 'pg_class') IS DISTINCT FROM v.text`;
  const names = new Set(rows.map(({ name }) => name));
  return views.filter(({ name }) => names.has(name));
}

/** The comments on the columns of a key, by the columns' names. */
function keyComments(row: ColumnRow): [string, string][] {
  const { name, type, declared, twins, firstSeenAt } = row;
  const path = pathText(row.path);
  const declaration = declared === null ? '' : `, declared as ${declared}`;
  return [
    [name, `${path}: ${type}${declaration}, first seen ${firstSeenAt.toISOString()}`],
    [textColumn(name), `${path}: text, the values that are not ${type}`],
    ...twins.map((twin): [string, string] => [twin.name, `${path}: ${twin.type}, the values of ${name} that are one`]),
  ];
}

/** The keys joined by dots. A key that could be read otherwise is in quotes. */
export function pathText(path: readonly string[]): string {
  const text = path.map((key) => (/^[^\s."\\\p{C}]+$/u.test(key) ? key : JSON.stringify(key))).join('.');
  return text.length > LONGEST_PATH ? `${text.slice(0, LONGEST_PATH).toWellFormed()}…` : text;
}
