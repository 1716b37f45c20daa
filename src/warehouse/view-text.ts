import pg from 'pg';
import type { ColumnRow, ColumnType } from '../db/tables/schema-columns.js';
import { textColumn } from './column-names.js';

/** A column of a typed view, and the expression of its value over a record. */
export interface ViewColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly expression: string;
}

/**
 * The columns of a view's keys, in the order in which they were added. `data` is the name of the record or the element, a jsonb. No expression fails, whatever the record
 * holds: a value that does not fit is null. PostgreSQL leaves out the expressions that a query does not ask for.
 */
export function keyColumns(rows: readonly ColumnRow[], data: string): ViewColumn[] {
  return rows
    .flatMap((row) => {
      const { name, type, position, textPosition, twins } = row;
      const columns = [
        { at: position, column: { name, type, expression: valueOf(row, data) } },
        ...twins.map((twin) => ({
          at: twin.position,
          column: {
            name: twin.name,
            type: twin.type,
            expression: valueOf({ ...row, type: twin.type, converts: twin.converts ?? false }, data),
          },
        })),
      ];
      if (textPosition === null) return columns;
      return [
        ...columns,
        { at: textPosition, column: { name: textColumn(name), type: 'text' as const, expression: mismatchOf(row, data) } },
      ];
    })
    .toSorted((a, b) => a.at - b.at)
    .map(({ column }) => column);
}

/**
 * The expression of the members that are in none of these columns; null where there are none. That is nearly always so, and cheap to find out; only
 * otherwise is the record searched. A null is not a value that could be missing.
 */
export function restOf(rows: readonly ColumnRow[], data: string): string {
  const held = keysHeld(rows);
  const levels = Math.max(1, ...rows.map(({ path }) => path.length));
  const rest = `muster.rest_of_${levels}(${data}, ${pg.escapeLiteral(JSON.stringify(planOf(held)))}::jsonb)`;
  return `CASE WHEN ${areHeld(held, data)} THEN NULL ELSE ${rest} END`;
}

/** The keys of an object that have a column, or members with one. */
type KeysHeld = ReadonlyMap<string, KeyHeld>;

interface KeyHeld {
  /** The key's own column; undefined if it has none. */
  readonly column: ColumnRow | undefined;
  /** The keys with a column in the objects of the key: these are flattened. */
  readonly members: KeysHeld;
}

function keysHeld(rows: readonly ColumnRow[], depth = 0): KeysHeld {
  const keys = new Set(rows.map(({ path }) => path[depth]!));
  return new Map(
    [...keys].map((key) => {
      const those = rows.filter(({ path }) => path[depth] === key);
      const column = those.find(({ path }) => path.length === depth + 1);
      return [
        key,
        {
          column,
          members: keysHeld(
            those.filter((row) => row !== column),
            depth + 1,
          ),
        },
      ];
    }),
  );
}

/** Whether the key's own column, or its text column, shows every value, objects included. */
function isWhole({ column, members }: KeyHeld): boolean {
  return column !== undefined && (members.size === 0 || column.type === 'jsonb' || column.textPosition !== null);
}

/** The plan for the functions muster.rest_of_N. */
function planOf(held: KeysHeld): object {
  return Object.fromEntries(
    [...held].map(([key, each]) => [key, isWhole(each) || { own: each.column !== undefined, keys: planOf(each.members) }]),
  );
}

/** Whether an object has no member with a value but those that are in columns. A member that holds only nulls may be taken for a value. */
function areHeld(held: KeysHeld, object: string): string {
  const flattened = [...held]
    .filter(([, each]) => !isWhole(each))
    .map(([key, { column, members }]) => {
      const value = jsonAt([key], object);
      const isObjectHeld = `${value} <> '{}' AND ${areHeld(members, value)}`;
      return `CASE jsonb_typeof(${value}) WHEN 'object' THEN ${isObjectHeld} WHEN 'null' THEN true ELSE ${value} IS NULL OR ${column !== undefined} END`;
    });
  return [`jsonb_strip_nulls(${object} - ${textArray([...held.keys()])}) = '{}'`, ...flattened].join(' AND ');
}

function textArray(texts: readonly string[]): string {
  return `ARRAY[${texts.map((text) => pg.escapeLiteral(text)).join(', ')}]::text[]`;
}

/** A text column shows an object as its text until the next sweep has made the column for mismatches: it would be nowhere else. */
function valueOf({ path, type, textPosition, converts }: ColumnRow, data: string): string {
  if (converts) return convertedOf({ path, type }, data);
  const value = jsonAt(path, data);
  const text = textAt(path, data);
  switch (type) {
    case 'text':
      return textPosition === null ? text : `CASE WHEN jsonb_typeof(${value}) IN ('object', 'array') THEN NULL ELSE ${text} END`;
    case 'boolean':
      return `CASE ${value} WHEN 'true'::jsonb THEN true WHEN 'false'::jsonb THEN false END`;
    case 'numeric':
      return `CASE WHEN jsonb_typeof(${value}) = 'number' THEN (${value})::numeric END`;
    case 'date':
      return `muster.date_at(${data}, ${jsonPath(path)}, ${text})`;
    case 'timestamp':
      return `muster.timestamp_at(${data}, ${jsonPath(path)}, ${text})`;
    case 'timestamptz':
      return `muster.timestamptz_at(${data}, ${jsonPath(path)}, ${text})`;
    case 'jsonb':
      return `NULLIF(${value}, 'null'::jsonb)`;
  }
}

/** The value of a column that converts: one of its type, or a text that says the same. */
function convertedOf({ path, type }: Pick<ColumnRow, 'path' | 'type'>, data: string): string {
  const isOfDays = type === 'date' || type === 'timestamp';
  const value = isOfDays ? `${data}, ${jsonPath(path)}` : jsonAt(path, data);
  return `muster.declared_${type}(${value}, ${textAt(path, data)})`;
}

/** The value as a text where it does not fit. */
function mismatchOf({ path, type, converts }: ColumnRow, data: string): string {
  const value = jsonAt(path, data);
  const text = textAt(path, data);
  if (converts) return `CASE WHEN ${convertedOf({ path, type }, data)} IS NULL THEN ${text} END`;
  switch (type) {
    case 'text':
      return `CASE WHEN jsonb_typeof(${value}) IN ('object', 'array') THEN ${text} END`;
    case 'boolean':
      return `CASE WHEN jsonb_typeof(${value}) <> 'boolean' THEN ${text} END`;
    case 'numeric':
      return `CASE WHEN jsonb_typeof(${value}) <> 'number' THEN ${text} END`;
    case 'date':
      return `CASE WHEN muster.is_date(${text}) THEN NULL ELSE ${text} END`;
    case 'timestamp':
      return `CASE WHEN muster.is_timestamp(${text}) THEN NULL ELSE ${text} END`;
    case 'timestamptz':
      return `CASE WHEN muster.is_timestamptz(${text}) THEN NULL ELSE ${text} END`;
    case 'jsonb':
      return 'NULL::text';
  }
}

// Keys and not a path, in which 0 would be the first element of an array.
export function jsonAt(path: readonly string[], data: string): string {
  return path.reduce((value, key) => `(${value} -> ${pg.escapeLiteral(key)}::text)`, data);
}

function textAt(path: readonly string[], data: string): string {
  return `(${jsonAt(path.slice(0, -1), data)} ->> ${pg.escapeLiteral(path.at(-1)!)}::text)`;
}

/** A path of keys only: it does not search arrays. */
function jsonPath(path: readonly string[]): string {
  return `${pg.escapeLiteral(`strict $${path.map((key) => `.${JSON.stringify(key)}`).join('')}`)}::jsonpath`;
}
