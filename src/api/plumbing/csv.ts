import { stringify } from 'csv-stringify/sync';

export const CSV = 'text/csv';

/** CSV has no member for the cursor, so it is a header. */
export const NEXT_CURSOR = 'X-Next-Cursor';

/**
 * Rows as RFC 4180 has it, with a line of names unless `header` is false. A cell that a spreadsheet would take for a formula begins with an
 * apostrophe.
 */
export function csvOf(rows: readonly object[], columns: readonly string[], { header = true } = {}): string {
  return stringify([...rows], { header, columns, record_delimiter: 'windows', escape_formulas: true });
}
