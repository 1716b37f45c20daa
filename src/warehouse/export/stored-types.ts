import pg from 'pg';
import type { Column, Source } from './source.js';

/** How Parquet keeps the values of a column. */
export type StoredType =
  | { readonly kind: 'text' | 'boolean' | 'date' | 'timestamptz' | 'bigint' | 'double' }
  | { readonly kind: 'decimal'; readonly precision: 18 | 38; readonly scale: number };

/** Microseconds since 1970 in 64 bits reach a little less far than what PostgreSQL keeps. */
const BEYOND_PARQUET = '294247-01-01 00:00:00+00';

/**
 * Decides by the values, in the snapshot that the export reads: numbers are decimals where each fits with every digit, of 18 digits or
 * else of 38. Zeros at the end are kept where they fit, too: a price is 490.50. A column is text where a number does not fit, or is a NaN or an
 * infinity, which Parquet lacks.
 */
export async function storedTypes(client: pg.ClientBase, { columns, from }: Source): Promise<StoredType[]> {
  const looked = columns.filter(({ kind }) => kind in LOOKS);
  if (looked.length === 0) return columns.map(({ kind }) => typeWithoutLook(kind));
  const looks = looked.flatMap(({ name, kind }) => LOOKS[kind as keyof typeof LOOKS](`r.${pg.escapeIdentifier(name)}`));
  // One array: a view may need more looks than a row can have columns.
  const { rows } = await client.query<{ seen: (string | null)[] }>(
    `SELECT ARRAY[${looks.join(', ')}]::text[] AS seen FROM ${from}`,
  );
  const seen = rows[0]!.seen;
  const found = new Map(looked.map((column, n) => [column, decide(column, seen.slice(LOOKS_EACH * n))]));
  return columns.map((column) => found.get(column) ?? typeWithoutLook(column.kind));
}

const LOOKS_EACH = 3;

/** LOOKS_EACH expressions for a column of each kind, whose values `decide` understands. */
const LOOKS = {
  numeric: (value: string) => [`max(abs(${value}))`, `max(scale(${value}))`, `max(min_scale(${value}))`],
  date: (value: string) => [`bool_and(isfinite(${value}))`, 'NULL', 'NULL'],
  timestamptz: (value: string) => [`bool_and(${value} > '-infinity' AND ${value} < '${BEYOND_PARQUET}')`, 'NULL', 'NULL'],
};

function decide({ kind }: Column, [first = null, ...scales]: readonly (string | null)[]): StoredType {
  // A column without values may have any type.
  if (kind !== 'numeric') return first === 'false' ? { kind: 'text' } : typeWithoutLook(kind);
  if (first !== null && !/^\d/.test(first)) return { kind: 'text' };
  const before = (first ?? '').replace(/\..*$/, '').replace(/^0+/, '').length;
  const scale = scales
    .slice(0, 2)
    .map(Number)
    .find((each) => before + each <= 38);
  return scale === undefined ? { kind: 'text' } : { kind: 'decimal', precision: before + scale > 18 ? 38 : 18, scale };
}

function typeWithoutLook(kind: Column['kind']): StoredType {
  return { kind: kind === 'jsonb' || kind === 'numeric' ? 'text' : kind };
}

/** The type's name in the manifest. */
export function describeType(type: StoredType): string {
  if (type.kind === 'decimal') return `DECIMAL(${type.precision},${type.scale})`;
  return { text: 'STRING', boolean: 'BOOLEAN', date: 'DATE', timestamptz: 'TIMESTAMP', bigint: 'INT64', double: 'DOUBLE' }[
    type.kind
  ];
}
