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
 * The columns of a resource's keys, in the order in which they were added. `data` is the name of the record, a jsonb. No expression fails, whatever the record
 * holds: a value that does not fit is null. PostgreSQL leaves out the expressions that a query does not ask for.
 */
export function keyColumns(rows: readonly ColumnRow[], data: string): ViewColumn[] {
  return rows
    .flatMap((row) => {
      const { name, type, position, textPosition } = row;
      const column = { at: position, column: { name, type, expression: valueOf(row, data) } };
      if (textPosition === null) return [column];
      return [
        column,
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
  const { whole, members } = keysHeld(rows);
  const flattened = [...members].map(([key, { own, keys }]) => {
    const value = jsonAt([key], data);
    const isHeld = `${value} <> '{}' AND jsonb_strip_nulls(${value} - ${textArray(keys)}) = '{}'`;
    return `CASE jsonb_typeof(${value}) WHEN 'object' THEN ${isHeld} WHEN 'null' THEN true ELSE ${value} IS NULL OR ${own} END`;
  });
  const others = `jsonb_strip_nulls(${data} - ${textArray([...whole, ...members.keys()])}) = '{}'`;
  const plan = pg.escapeLiteral(JSON.stringify(Object.fromEntries(members)));
  const rest = `muster.rest_of(${data}, ${textArray(whole)}, ${plan}::jsonb)`;
  return `CASE WHEN ${[others, ...flattened].join(' AND ')} THEN NULL ELSE ${rest} END`;
}

/** `whole`: keys whose every value is in a column. `members`: keys whose objects are flattened into the columns of the keys inside. */
function keysHeld(rows: readonly ColumnRow[]) {
  const members = new Map<string, { own: boolean; keys: string[] }>();
  for (const { path } of rows) {
    const [key, inner] = path as [string, string?];
    if (inner !== undefined) members.set(key, { own: false, keys: [...(members.get(key)?.keys ?? []), inner] });
  }
  const whole: string[] = [];
  for (const { path, type, textPosition } of rows) {
    if (path.length === 2) continue;
    const flattened = members.get(path[0]!);
    if (!flattened || type === 'jsonb' || textPosition !== null) {
      whole.push(path[0]!);
      members.delete(path[0]!);
    } else flattened.own = true;
  }
  return { whole, members };
}

function textArray(texts: readonly string[]): string {
  return `ARRAY[${texts.map((text) => pg.escapeLiteral(text)).join(', ')}]::text[]`;
}

/** A text column shows an object as its text until the next sweep has made the column for mismatches: it would be nowhere else. */
function valueOf({ path, type, textPosition }: ColumnRow, data: string): string {
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

/** The value as a text where it does not fit. */
function mismatchOf({ path, type }: ColumnRow, data: string): string {
  const value = jsonAt(path, data);
  const text = textAt(path, data);
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
function jsonAt(path: readonly string[], data: string): string {
  return path.reduce((value, key) => `(${value} -> ${pg.escapeLiteral(key)}::text)`, data);
}

function textAt(path: readonly string[], data: string): string {
  return `(${jsonAt(path.slice(0, -1), data)} ->> ${pg.escapeLiteral(path.at(-1)!)}::text)`;
}

/** A path of keys only: it does not search arrays. */
function jsonPath(path: readonly string[]): string {
  return `${pg.escapeLiteral(`strict $${path.map((key) => `.${JSON.stringify(key)}`).join('')}`)}::jsonpath`;
}
