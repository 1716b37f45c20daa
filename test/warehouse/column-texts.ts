import type { Manifest } from '../../src/warehouse/export/export-resource.js';

type Column = Manifest['columns'][number];

export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

const within = (value: string) => `${value} >= '0001-01-01' AND ${value} < '10000-01-01'`;

/** Where PostgreSQL has a value that Parquet lacks. */
export function misfit({ name, type, stored_as }: Column): string {
  const value = quoted(name);
  const [, precision, scale] = /^DECIMAL\((\d+),(\d+)\)$/.exec(stored_as ?? '') ?? [];
  if (precision !== undefined)
    return `(${value} IN ('NaN', 'Infinity', '-Infinity') OR abs(${value}) >= 10::numeric ^ ${Number(precision) - Number(scale)} OR trunc(${value}, ${scale}) <> ${value})`;
  return type === 'date' || type.startsWith('timestamp') ? `NOT (${within(value)})` : 'false';
}

/** Every column as a text that both databases write alike. The driver of DuckDB loses the mark U+FEFF where it begins a text. */
export const asText = {
  postgres: (column: Column) => {
    const { name, type, stored_as } = column;
    const value = quoted(name);
    const fitting = (text: string) => `CASE WHEN NOT ${misfit(column)} THEN ${text} END`;
    if (type.startsWith('timestamp')) return fitting(`(extract(epoch FROM ${value}) * 1000000)::bigint::text`);
    if (type === 'date') return fitting(`(${value} - date '1970-01-01')::text`);
    const decimal = /^DECIMAL\(\d+,(\d+)\)$/.exec(stored_as ?? '');
    if (decimal) return fitting(`'.' || ${value}::numeric(60, ${decimal[1]})::text`);
    return `'.' || ${value}::text`;
  },
  duck: ({ name, type }: Column) => {
    if (type.startsWith('timestamp')) return `epoch_us(${quoted(name)})::VARCHAR`;
    if (type === 'date') return `date_diff('day', DATE '1970-01-01', ${quoted(name)})::VARCHAR`;
    return `'.' || ${quoted(name)}::VARCHAR`;
  },
};

/** The columns of the file that the view has, and those that were appended for values that Parquet lacks. */
export function partedColumns({ columns, misfits = {} }: Manifest, view: ReadonlySet<string>) {
  const texts = Object.keys(misfits).map((name) => ({ of: columns.find((each) => each.name === name)!, name: `${name}__text` }));
  const appended = texts.filter(({ name }) => !view.has(name));
  return { own: columns.slice(0, columns.length - appended.length), appended };
}
