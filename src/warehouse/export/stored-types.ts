import type { Column } from './source.js';

/** How Parquet keeps the values of a column. */
export type StoredType =
  | {
      readonly kind: 'text' | 'json' | 'uuid' | 'boolean' | 'date' | 'timestamp' | 'timestamptz' | 'bigint' | 'double';
    }
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number };

/** The decimals of a numeric column without a declared type. Twenty digits before the point and eighteen after it fit what services send. */
const UNDECLARED = { kind: 'decimal', precision: 38, scale: 18 } as const;
const MOST_DIGITS = 38;

/**
 * The type of a column, by its own type and its declaration alone: it is the same in every file of an installation, whatever the values
 * are, so that readers can put files together.
 */
export function storedType({ kind, declared }: Column): StoredType {
  if (kind === 'numeric') return declaredDecimal(declared) ?? UNDECLARED;
  return { kind: kind === 'jsonb' ? 'json' : kind };
}

/** The decimals of `numeric(p,s)` or `numeric(p)`; undefined for any other text. */
function declaredDecimal(declared: string | undefined): StoredType | undefined {
  const [, digits, places = '0'] = /^numeric\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)$/i.exec(declared ?? '') ?? [];
  const [precision, scale] = [Number(digits), Number(places)];
  return precision >= 1 && precision <= MOST_DIGITS && scale <= precision ? { kind: 'decimal', precision, scale } : undefined;
}

/** Readers of Parquet that have years at all have those of one to four digits. */
const YEARS = { from: '0001-01-01', before: '10000-01-01' };

/**
 * The condition under which Parquet has the value of an expression; undefined where it has every value. The condition is never null for a value. NaN and
 * infinity are greater than any number.
 */
export function fittingCondition(value: string, type: StoredType): string | undefined {
  switch (type.kind) {
    case 'decimal':
      return `(abs(${value}) < 1${'0'.repeat(type.precision - type.scale)} AND min_scale(${value}) <= ${type.scale})`;
    case 'date':
    case 'timestamp':
      return `(${value} >= '${YEARS.from}' AND ${value} < '${YEARS.before}')`;
    case 'timestamptz':
      return `(${value} >= '${YEARS.from} 00:00:00+00' AND ${value} < '${YEARS.before} 00:00:00+00')`;
    case 'text':
    case 'json':
    case 'uuid':
    case 'boolean':
    case 'bigint':
    case 'double':
      return undefined;
  }
}

const NAMES = {
  text: 'STRING',
  json: 'JSON',
  uuid: 'UUID',
  boolean: 'BOOLEAN',
  date: 'DATE',
  timestamp: 'LOCAL TIMESTAMP',
  timestamptz: 'TIMESTAMP',
  bigint: 'INT64',
  double: 'DOUBLE',
};

/** The type's name in the manifest. */
export function describeType(type: StoredType): string {
  return type.kind === 'decimal' ? `DECIMAL(${type.precision},${type.scale})` : NAMES[type.kind];
}
