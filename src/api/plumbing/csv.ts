import { stringify } from 'csv-stringify/sync';

export const CSV = 'text/csv';

/** Rows as RFC 4180 has it, with a line of names. A cell that a spreadsheet would take for a formula begins with an apostrophe. */
export function csvOf(rows: readonly object[], columns: readonly string[]): string {
  return stringify([...rows], { header: true, columns, record_delimiter: 'windows', escape_formulas: true });
}
