import { CONVERTING_TYPES, type ColumnType, type KeyRow } from '../db/tables/schema-columns.js';

/** The key with the conversion of its column, or twin, of a declared type. A column that converts does so from then on; the same object if nothing changes. */
export function withConversion(row: KeyRow, type: ColumnType): KeyRow {
  if (!CONVERTING_TYPES.includes(type)) return row;
  const isTwin = row.twins.some((twin) => twin.type === type && !twin.converts);
  if (!isTwin && (row.converts || row.type !== type)) return row;
  const twins = row.twins.map((twin) => (twin.type === type ? { ...twin, converts: true as const } : twin));
  return { ...row, converts: row.converts || row.type === type, twins };
}
